/* fd kinds by readlinkat: whole when it fits the time budget, else stratified random probes. */
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

#define DENTS_SIZE (32 * 1024)
#define LINK_SIZE 1024        /* longer link texts are cut: the kind and a 127-byte pattern need no more */
#define ROUND_PROBES 128      /* probes between two looks at the clock, spread over the whole range */
#define FIRST_COST_NS 1500    /* per link, until measured */
#define Z90 1.645

struct fdkinds {
    uint64_t rng;
    int64_t cost_ns;          /* of listing and reading one link, a moving average */
    char link[LINK_SIZE];
    char folded[TALLY_KEY_MAX];
    char dents[DENTS_SIZE] __attribute__((aligned(8)));
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
    int64_t seen;
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
    r->cost_ns = FIRST_COST_NS;
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

/* Reads every link: 0; LT_ELIMIT when the time was spent before the end; LT_GONE, LT_EIO. */
static int walk_whole(struct walk *w)
{
    for (;;) {
        ssize_t got = read_dents(w, sizeof w->r->dents);
        if (got < 0)
            return errno == ENOENT || errno == ESRCH ? LT_GONE : errno == EACCES || errno == EPERM ? LT_EPERM : LT_EIO;
        if (got == 0)
            return 0;
        unsigned since = 0;
        for (ssize_t at = 0; at < got;) {
            const struct dent64 *d = (const struct dent64 *)(const void *)(w->r->dents + at);
            int64_t fd = fd_of_name(d->name);
            if (fd >= 0)
                probe(w, fd, d->name);
            at += d->reclen;
            if (++since % 64 == 0 && clock_mono_ns() > w->deadline_ns)
                return LT_ELIMIT;
        }
    }
}

/* Whether there is a descriptor >= fd: the folder's offset is the number + 2. */
static bool any_from(struct walk *w, int64_t fd)
{
    if (lseek(w->dir, fd + 2, SEEK_SET) < 0)
        return false;
    return read_dents(w, 64) > 0;
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

/* Rounds of ROUND_PROBES random probes, one in each of as many equal parts of [0, range), until the time is spent. Returns
 * the probes made. */
static int64_t walk_sampled(struct walk *w, int64_t range)
{
    int64_t made = 0;

    do {
        for (int64_t i = 0; i < ROUND_PROBES; i++) {
            int64_t from = range * i / ROUND_PROBES, to = MAX(range * (i + 1) / ROUND_PROBES, from + 1);
            int64_t fd = from + (int64_t)(rng_next(w->r) % (uint64_t)(to - from));
            char name[24];
            probe(w, fd, fd_name(fd, name));
        }
        made += ROUND_PROBES;
    } while (clock_mono_ns() < w->deadline_ns && made < range);
    return made;
}

static void learn_cost(struct fdkinds *r, int64_t spent_ns, int64_t links)
{
    if (links < 16)
        return;
    r->cost_ns += (spent_ns / links - r->cost_ns) / 4;
    r->cost_ns = MIN(MAX(r->cost_ns, INT64_C(200)), INT64_C(20000));
}

/* Walks the descriptors: *ret_exact whether all were read. `restart` is called when a walk is begun anew as a sample. */
static int walk(struct walk *w, int pid_dirfd, int64_t known, int64_t budget_ns, void (*restart)(void *ctx), bool *ret_exact,
                struct err *err)
{
    _cleanup_fd_ int dir = fd_open(pid_dirfd, "fd", O_RDONLY | O_DIRECTORY, 0);

    if (dir < 0)
        return dir == -ENOENT ? err_set(err, LT_GONE, "descriptors: the process is gone")
                              : err_errno(err, LT_EIO, -dir, "descriptors: cannot open /proc/PID/fd (needs CAP_SYS_PTRACE)");
    w->dir = dir;
    int64_t start = clock_mono_ns();
    if (budget_ns <= 0)
        budget_ns = FDKINDS_BUDGET_NS;
    int64_t whole_ns = budget_ns / 4 * 3; /* the rest is for a sample, should it take longer than foreseen */
    w->deadline_ns = known < 0 ? INT64_MAX : start + whole_ns;
    if (known < 0 || known * w->r->cost_ns <= whole_ns) {
        int r = walk_whole(w);
        learn_cost(w->r, clock_mono_ns() - start, w->seen);
        if (r != LT_ELIMIT) {
            *ret_exact = true;
            if (!r && w->denied && !w->seen)
                r = LT_EPERM; /* the folder can be listed, no link in it read: unknown, not none */
            return r ? err_set(err, r, "descriptors: %s", err_sentence(r)) : 0;
        }
        restart(w->ctx); /* slower than it was last time: what was read is the low numbers only, no fair sample */
        w->seen = 0;
    }
    w->deadline_ns = start + budget_ns;
    *ret_exact = false;
    walk_sampled(w, range_of(w, known));
    if (w->denied && !w->seen)
        return err_set(err, LT_EPERM, "descriptors: %s", err_sentence(LT_EPERM));
    return 0;
}

/* ---- kinds ---------------------------------------------------------------------------------------------------- */

struct kinds_ctx {
    struct fd_kinds k;
    struct vec *sockets;
    size_t sockets_before;
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
    } else {
        c->k.anon++;
    }
}

static void restart_kinds(void *ctx)
{
    struct kinds_ctx *c = ctx;

    c->k = (struct fd_kinds){ 0 };
    c->lost = 0;
    if (c->sockets)
        c->sockets->n = c->sockets_before;
}

/* The 90 % half-width of a count scaled from hits among n. */
static double half_width(int64_t hits, int64_t n, int64_t fds)
{
    double nt = (double)n + Z90 * Z90, p = ((double)hits + Z90 * Z90 / 2) / nt;

    return Z90 * sqrt(p * (1 - p) / nt) * (double)fds;
}

static void scale_kinds(struct fd_kinds *k, int64_t fds)
{
    const int64_t hits[] = { k->sockets, k->pipes, k->files, k->anon, k->deleted };
    int64_t *const out[] = { &k->sockets, &k->pipes, &k->files, &k->anon, &k->deleted };
    double widest = 0;

    for (size_t i = 0; i < ARRAY_SIZE(hits); i++) {
        widest = fmax(widest, half_width(hits[i], k->seen, fds));
        *out[i] = llround((double)hits[i] * (double)fds / (double)k->seen);
    }
    k->err = MAX((int64_t)ceil(widest), INT64_C(1));
    k->scale = (double)fds / (double)k->seen;
    k->fds = fds;
}

int fdkinds_read(struct fdkinds *r, int pid_dirfd, int64_t known_fds, int64_t budget_ns, struct fd_kinds *ret,
                 struct vec *sockets, size_t *ret_lost, struct err *err)
{
    struct kinds_ctx c = { .sockets = sockets, .sockets_before = sockets ? sockets->n : 0 };
    struct walk w = { .r = r, .visit = see_kind, .ctx = &c };
    int res = walk(&w, pid_dirfd, known_fds, budget_ns, restart_kinds, &c.k.exact, err);

    if (res == 0 && !c.k.exact && w.seen == 0)
        res = err_set(err, LT_GONE, "descriptors: none is left of %lld", (long long)known_fds);
    if (res) {
        restart_kinds(&c);
        return res;
    }
    c.k.seen = w.seen;
    if (c.k.exact) {
        c.k.fds = w.seen;
        c.k.scale = 1;
    } else {
        scale_kinds(&c.k, known_fds);
    }
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
    size_t n = str_fold_digits(link, len, c->r->folded, sizeof c->r->folded);
    tally_add(c->tally, c->r->folded, MIN(n, sizeof c->r->folded - 1), 1);
}

static void restart_paths(void *ctx)
{
    tally_clear(((struct paths_ctx *)ctx)->tally);
}

int fdkinds_paths(struct fdkinds *r, int pid_dirfd, int64_t known_fds, int64_t budget_ns, struct tally *ret, struct err *err)
{
    struct paths_ctx c = { .r = r, .tally = ret };
    struct walk w = { .r = r, .visit = see_path, .ctx = &c };
    bool exact = false;

    tally_clear(ret);
    int res = walk(&w, pid_dirfd, known_fds, budget_ns, restart_paths, &exact, err);
    if (res)
        return res;
    if (!exact && w.seen)
        tally_scale(ret, (double)known_fds / (double)w.seen);
    return 0;
}
