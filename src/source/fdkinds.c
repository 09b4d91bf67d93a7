/* fd kinds by readlinkat: of few descriptors by number, of listed ones in random order, of many by stratified random probes. */
#include "source/fdkinds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "source/pathpattern.h"

#define DENTS_SIZE (32 * 1024)
#define LINK_SIZE 1024        /* longer link texts are cut: the kind and a 127-byte pattern need no more */
#define ROUND_PROBES 128      /* probes between two looks at the clock, spread over the whole range */
#define LIST_MAX 32768        /* descriptors listed at most */
#define LIST_COST_NS 600      /* foreseen for one listed descriptor */
#define LISTED_PROBES 32      /* links of listed descriptors read between two looks at the clock */
#define DENSE_MAX 128         /* descriptors that are read by number */
#define DENSE_COST_NS 6000    /* foreseen for one, dear and after a gap: what is begun by number is not cut short */
#define ONE_DENT 32           /* room for one of at most 12 digits */
#define Z90 1.645

struct fdkinds {
    uint64_t rng;
    char link[LINK_SIZE];
    char folded[TALLY_KEY_MAX];
    char dents[DENTS_SIZE] __attribute__((aligned(8)));
    int32_t list[LIST_MAX];
};

struct dent64 {               /* struct linux_dirent64 of getdents64(2) */
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

/* What is done with each link. */
typedef void (*visit_fn)(void *ctx, int fd, const char *link, size_t len);

/* One walk over the descriptors of one process. */
struct walk {
    struct fdkinds *r;
    int dir;                  /* /proc/PID/fd */
    int64_t deadline_ns;
    int64_t seen;             /* links read */
    int64_t count;            /* descriptors there are */
    bool listed, exact;       /* drawn from a list; all of it was read */
    visit_fn visit;
    void *ctx;
    bool denied;         /* a link could not be read for lack of permission */
};

int fdkinds_new(struct fdkinds **ret)
{
    struct fdkinds *r = mem_zalloc(1, sizeof *r);

    if (!r)
        return LT_ENOMEM;
    r->rng = (uint64_t)clock_mono_ns() | 1;
    *ret = r;
    return 0;
}

void fdkinds_free(struct fdkinds *r)
{
    mem_free(r);
}

/* xorshift64*: good enough to pick descriptors. */
static uint64_t rng_next(struct fdkinds *r)
{
    r->rng ^= r->rng >> 12;
    r->rng ^= r->rng << 25;
    r->rng ^= r->rng >> 27;
    return r->rng * UINT64_C(2685821657736338717);
}

/* Decimal digits; -1 for "." and "..". */
static int64_t fd_of_name(const char *name)
{
    int64_t n = 0;

    if (*name < '0' || *name > '9')
        return -1;
    for (; *name >= '0' && *name <= '9'; name++)
        n = n * 10 + (*name - '0');
    return n;
}

static char *fd_name(int64_t fd, char out[24])
{
    char *p = out + 23;

    *p = '\0';
    do
        *--p = (char)('0' + fd % 10);
    while ((fd /= 10) > 0);
    return p;
}

/* False when there is no such descriptor (any more). */
static bool probe(struct walk *w, int64_t fd, const char *name)
{
    ssize_t n = readlinkat(w->dir, name, w->r->link, sizeof w->r->link - 1);

    if (n < 0) {
        w->denied |= errno == EACCES || errno == EPERM;
        return false;
    }
    w->r->link[n] = '\0';
    w->seen++;
    w->visit(w->ctx, (int)fd, w->r->link, (size_t)n);
    return true;
}

static ssize_t read_dents(struct walk *w, size_t size)
{
    return syscall(SYS_getdents64, w->dir, w->r->dents, size);
}

static int dents_code(void)
{
    return errno == ENOENT || errno == ESRCH ? LT_GONE : errno == EACCES || errno == EPERM ? LT_EPERM : LT_EIO;
}

/* The lowest descriptor >= from: the folder's offset is the number + 2. 1, 0 when there is none, or LT_GONE, LT_EPERM, LT_EIO. */
static int next_from(struct walk *w, int64_t from, int64_t *ret)
{
    const struct dent64 *d = (const struct dent64 *)(const void *)w->r->dents;
    ssize_t got;

    if (lseek(w->dir, from + 2, SEEK_SET) < 0)
        return LT_EIO;
    got = read_dents(w, ONE_DENT);
    if (got <= 0)
        return got < 0 ? dents_code() : 0;
    *ret = fd_of_name(d->name);
    return *ret < from ? LT_EIO : 1;
}

/* All of `known` descriptors by number. Where one is missing the folder says which is the next. */
static int read_dense(struct walk *w, int64_t known)
{
    int64_t fd = 0;
    int r = 1;

    while (r > 0 && w->seen < known) {
        char name[24];

        if (probe(w, fd, fd_name(fd, name)))
            fd++;
        else
            r = next_from(w, fd + 1, &fd);
    }
    w->exact = r >= 0;
    w->count = w->seen;
    return MIN(r, 0);
}

/* The numbers of all descriptors into r->list, the first LIST_MAX of them; w->count is how many there are. 0; LT_ELIMIT when the
 * time was spent before the end; LT_GONE, LT_EPERM, LT_EIO. */
static int list_all(struct walk *w, int64_t deadline_ns)
{
    w->count = 0;
    for (;;) {
        ssize_t got = read_dents(w, sizeof w->r->dents);
        if (got < 0)
            return dents_code();
        if (got == 0)
            return 0;
        for (ssize_t at = 0; at < got;) {
            const struct dent64 *d = (const struct dent64 *)(const void *)(w->r->dents + at);
            int64_t fd = fd_of_name(d->name);
            at += d->reclen;
            if (fd < 0)
                continue;
            if (w->count < LIST_MAX)
                w->r->list[w->count] = (int32_t)fd;
            w->count++;
        }
        if (clock_cpu_ns() > deadline_ns)
            return LT_ELIMIT;
    }
}

/* Reads the links of the listed ones in random order, so that those read when the time is spent are a fair sample, none twice. */
static void read_listed(struct walk *w)
{
    int32_t *list = w->r->list;

    for (int64_t i = 0; i < w->count; i++) {
        if (i && i % LISTED_PROBES == 0 && clock_cpu_ns() > w->deadline_ns)
            return;
        int64_t j = i + (int64_t)(rng_next(w->r) % (uint64_t)(w->count - i));
        int32_t fd = list[j];
        char name[24];
        list[j] = list[i];
        probe(w, fd, fd_name(fd, name));
    }
    w->exact = true;
}

static bool any_from(struct walk *w, int64_t fd)
{
    return next_from(w, fd, &fd) > 0;
}

/* One above the highest descriptor, by bisection; `known` of them exist, so it is at least that many. */
static int64_t range_of(struct walk *w, int64_t known)
{
    int64_t lo = MAX(known, INT64_C(1)), hi = lo;

    while (hi < INT_MAX / 2 && any_from(w, hi)) {
        lo = hi;
        hi *= 2;
    }
    while (lo < hi) { /* no descriptor >= hi */
        int64_t mid = lo + (hi - lo) / 2;
        if (any_from(w, mid))
            lo = mid + 1;
        else
            hi = mid;
    }
    return hi;
}

/* Rounds of ROUND_PROBES random probes, one in each of as many equal parts of [0, range), until the time is spent. */
static void probe_range(struct walk *w, int64_t range)
{
    int64_t made = 0, start = clock_cpu_ns(), now;

    do {
        for (int64_t i = 0; i < ROUND_PROBES; i++) {
            int64_t from = range * i / ROUND_PROBES, to = MAX(range * (i + 1) / ROUND_PROBES, from + 1);
            int64_t fd = from + (int64_t)(rng_next(w->r) % (uint64_t)(to - from));
            char name[24];
            probe(w, fd, fd_name(fd, name));
        }
        made += ROUND_PROBES;
        now = clock_cpu_ns();
    } while (now + (now - start) * ROUND_PROBES / made < w->deadline_ns && made < range); /* no round that would be cut short */
}

/* Lists when that leaves half of the time for the links (or the count must be had: known < 0), else probes. */
static int visit_all(struct walk *w, int64_t known, int64_t budget_ns)
{
    int64_t start = clock_cpu_ns();
    int r = LT_ELIMIT;

    w->deadline_ns = start + budget_ns;
    if (known < 0 || (known <= LIST_MAX && known * LIST_COST_NS <= budget_ns / 2))
        r = list_all(w, known < 0 ? INT64_MAX : w->deadline_ns - budget_ns / 4);
    if (r && r != LT_ELIMIT)
        return r;
    if (known < 0)
        w->deadline_ns = clock_cpu_ns() + budget_ns; /* listing took what it took */
    if (r == 0 && w->count <= LIST_MAX) {
        w->listed = true;
        read_listed(w);
    } else {
        w->count = MAX(known, w->count);
        probe_range(w, range_of(w, w->count));
    }
    return 0;
}

static int walk(struct walk *w, int pid_dirfd, int64_t known, int64_t budget_ns, struct err *err)
{
    budget_ns = budget_ns > 0 ? budget_ns : FDKINDS_BUDGET_NS;
    _cleanup_fd_ int dir = fd_open(pid_dirfd, "fd", O_RDONLY | O_DIRECTORY, 0);

    if (dir < 0)
        return dir == -ENOENT ? err_set(err, LT_GONE, "descriptors: the process is gone")
                              : err_errno(err, LT_EIO, -dir, "descriptors: cannot open /proc/PID/fd (needs CAP_SYS_PTRACE)");
    w->dir = dir;
    bool dense = known > 0 && known <= DENSE_MAX && known * DENSE_COST_NS <= budget_ns;
    int r = dense ? read_dense(w, known) : visit_all(w, known, budget_ns);
    if (r == 0 && w->denied && !w->seen)
        r = LT_EPERM; /* there are some, but no link could be read: unknown, not none */
    if (r)
        return err_set(err, r, "descriptors: %s", err_sentence(r));
    return w->exact || w->seen ? 0 : err_set(err, LT_GONE, "descriptors: none is left of %lld", (long long)w->count);
}

/* ---- kinds ---------------------------------------------------------------------------------------------------- */

struct kinds_ctx {
    struct fd_kinds k;
    struct vec *sockets;
    size_t lost;
};

static bool has_prefix(const char *s, size_t len, const char *prefix, size_t plen)
{
    return len >= plen && !memcmp(s, prefix, plen);
}

#define HAS_PREFIX(s, len, lit) has_prefix(s, len, lit, sizeof lit - 1)

static void see_socket(struct kinds_ctx *c, int fd, const char *link)
{
    c->k.sockets++;
    if (!c->sockets)
        return;
    struct fd_socket s = { .fd = fd };
    for (const char *p = link + sizeof "socket:[" - 1; *p >= '0' && *p <= '9'; p++)
        s.inode = s.inode * 10 + (uint64_t)(*p - '0');
    if (vec_append(c->sockets, &s))
        c->lost++;
}

static bool is_deleted(const char *link, size_t len)
{
    static const char suffix[] = " (deleted)";

    return len >= sizeof suffix - 1 && !memcmp(link + len - (sizeof suffix - 1), suffix, sizeof suffix - 1);
}

static void see_kind(void *ctx, int fd, const char *link, size_t len)
{
    struct kinds_ctx *c = ctx;

    if (HAS_PREFIX(link, len, "socket:[")) {
        see_socket(c, fd, link);
    } else if (HAS_PREFIX(link, len, "pipe:[")) {
        c->k.pipes++;
    } else if (len && link[0] == '/') {
        c->k.files++;
        c->k.deleted += is_deleted(link, len);
        c->k.shm += HAS_PREFIX(link, len, "/dev/shm/");
    } else {
        c->k.anon++;
    }
}

double fdkinds_half_width(int64_t hits, int64_t n, double all)
{
    double nt = (double)n + Z90 * Z90, p = ((double)hits + Z90 * Z90 / 2) / nt;

    return Z90 * sqrt(p * (1 - p) / nt) * all;
}

/* From the sample to the whole. Listed ones are drawn without repetition: what is read leaves less to err about. */
static void scale_kinds(struct fd_kinds *k, const struct walk *w)
{
    const int64_t hits[] = { k->sockets, k->pipes, k->files, k->anon, k->deleted };
    int64_t *const out[] = { &k->sockets, &k->pipes, &k->files, &k->anon, &k->deleted };
    double widest = 0, n = (double)w->seen, all = (double)w->count;

    for (size_t i = 0; i < ARRAY_SIZE(hits); i++) {
        widest = fmax(widest, fdkinds_half_width(hits[i], w->seen, all));
        *out[i] = llround((double)hits[i] * all / n);
    }
    if (w->listed && n < all)
        widest *= sqrt((all - n) / (all - 1));
    k->err = MAX((int64_t)ceil(widest), INT64_C(1));
    k->scale = all / n;
}

int fdkinds_read(struct fdkinds *r, int pid_dirfd, int64_t known_fds, int64_t budget_ns, struct fd_kinds *ret,
                 struct vec *sockets, size_t *ret_lost, struct err *err)
{
    struct kinds_ctx c = { .sockets = sockets };
    struct walk w = { .r = r, .visit = see_kind, .ctx = &c };
    size_t before = sockets ? sockets->n : 0;
    int res = walk(&w, pid_dirfd, known_fds, budget_ns, err);

    if (res) {
        if (sockets)
            sockets->n = before;
        return res;
    }
    c.k.exact = w.exact;
    c.k.seen = w.seen;
    c.k.fds = w.exact ? w.seen : w.count;
    c.k.scale = 1;
    if (!w.exact)
        scale_kinds(&c.k, &w);
    *ret = c.k;
    if (ret_lost)
        *ret_lost = c.lost;
    return 0;
}

void fdkinds_metrics(const struct fd_kinds *k, int64_t v[METRIC_N])
{
    v[METRIC_SOCKETS] = k->sockets;
    v[METRIC_PIPES] = k->pipes;
    v[METRIC_FILES] = k->files;
    v[METRIC_ANON_INODES] = k->anon;
    v[METRIC_FDS_DELETED] = k->deleted;
    v[METRIC_FD_KINDS_ERR] = k->err;
}

/* ---- paths ---------------------------------------------------------------------------------------------------- */

struct paths_ctx {
    struct fdkinds *r;
    struct tally *tally;
};

static void see_path(void *ctx, int fd, const char *link, size_t len)
{
    struct paths_ctx *c = ctx;

    (void)fd;
    if (len && link[0] != '/' && !HAS_PREFIX(link, len, "anon_inode:")) {
        const char *colon = memchr(link, ':', len); /* "socket:[7]" is a socket, "net:[4026]" a net: the number says nothing */
        tally_add(c->tally, link, colon ? (size_t)(colon - link) : len, 1);
        return;
    }
    size_t n = path_pattern(link, len, c->r->folded, sizeof c->r->folded);
    tally_add(c->tally, c->r->folded, MIN(n, sizeof c->r->folded - 1), 1);
}

int fdkinds_paths(struct fdkinds *r, int pid_dirfd, int64_t known_fds, int64_t budget_ns, struct tally *ret, struct err *err)
{
    struct paths_ctx c = { .r = r, .tally = ret };
    struct walk w = { .r = r, .visit = see_path, .ctx = &c };

    tally_clear(ret);
    int res = walk(&w, pid_dirfd, known_fds, budget_ns, err);
    if (res == 0 && !w.exact)
        tally_scale(ret, (double)w.count / (double)w.seen);
    return res;
}
