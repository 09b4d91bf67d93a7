/* Which shared memory segments count for a target: the rules S1-S4 and P1-P3 of shm.h. */
#include "source/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "source/lines.h"
#include "source/namespace.h"
#include "source/shmfiles.h"

#define SLACK_S 2              /* start times are counted in ticks from a boot time that is known to a second */
#define SYSV_BUFFER 16384
#define REST_ROUNDS 15         /* after a /dev/shm was too full to be counted */

enum { BY_OWNER, PROVEN };     /* values of the counted maps: by which right a segment counted; SysV: creation time * 2 + right */

struct shm {
    uid_t uids[SHM_UIDS];
    size_t nuids;
    struct map lives;          /* pid to start_s << 32 | end_s, end 0 while it runs; the newest life of each pid */
    struct map sysv, sysv_next;   /* id to (ctime_s << 1 | right) */
    struct map posix, posix_next; /* device and inode to PROVEN: seen open (P1, P2) */
    char mnt[64];              /* the mount namespace that `where` was found in, in this round; "": not looked yet */
    struct netmount where;
    unsigned rest;             /* rounds in which a /dev/shm that was too full is left alone */
};

int shm_new(struct shm **ret)
{
    struct shm *s = mem_zalloc(1, sizeof *s);

    if (!s)
        return LT_ENOMEM;
    map_init(&s->lives, SHM_LIVES);
    map_init(&s->sysv, SHM_MAX);
    map_init(&s->sysv_next, SHM_MAX);
    map_init(&s->posix, SHM_MAX);
    map_init(&s->posix_next, SHM_MAX);
    *ret = s;
    return 0;
}

void shm_free(struct shm *s)
{
    if (!s)
        return;
    map_release(&s->lives);
    map_release(&s->sysv);
    map_release(&s->sysv_next);
    map_release(&s->posix);
    map_release(&s->posix_next);
    mem_free(s);
}

/* ---- lives ------------------------------------------------------------------------------------------------------ */

static uint64_t pack(int64_t start_s, int64_t end_s)
{
    return (uint64_t)start_s << 32 | (uint32_t)end_s;
}

static int64_t start_of(uint64_t life)
{
    return (int64_t)(life >> 32);
}

static int64_t end_of(uint64_t life)
{
    return (int64_t)(uint32_t)life;
}

/* The map is full: the ended life that began first is forgotten, else the running one that did. */
static void forget_oldest(struct map *lives)
{
    struct map_entry *e, *oldest = NULL;

    for (size_t pos = 0; (e = map_next(lives, &pos));) {
        if (!oldest || (end_of(oldest->value) == 0 && end_of(e->value) != 0) ||
            ((end_of(oldest->value) == 0) == (end_of(e->value) == 0) && start_of(e->value) < start_of(oldest->value)))
            oldest = e;
    }
    if (oldest)
        map_remove(lives, oldest->key);
}

int shm_life(struct shm *s, int32_t pid, int64_t start_wall_ns)
{
    uint64_t life = pack(start_wall_ns / NS_PER_S, 0);
    int r = map_put(&s->lives, (uint64_t)pid, life);

    if (r == LT_ELIMIT) {
        forget_oldest(&s->lives);
        r = map_put(&s->lives, (uint64_t)pid, life);
    }
    return r;
}

void shm_life_ended(struct shm *s, int32_t pid)
{
    uint64_t life;

    if (map_get(&s->lives, (uint64_t)pid, &life) && end_of(life) == 0)
        map_put(&s->lives, (uint64_t)pid, pack(start_of(life), clock_wall_ns() / NS_PER_S));
}

/* Whether pid was a life of the target at that time. */
bool shm_was_life(const struct shm *s, int32_t pid, int64_t at_s)
{
    uint64_t life;

    if (pid <= 0 || !map_get(&s->lives, (uint64_t)pid, &life))
        return false;
    return start_of(life) <= at_s + SLACK_S && (end_of(life) == 0 || at_s <= end_of(life) + SLACK_S);
}

static bool is_running_life(const struct shm *s, int32_t pid)
{
    uint64_t life;

    return pid > 0 && map_get(&s->lives, (uint64_t)pid, &life) && end_of(life) == 0;
}

/* ---- users ------------------------------------------------------------------------------------------------------ */

static bool has_uid(const struct shm *s, uid_t uid)
{
    for (size_t i = 0; i < s->nuids; i++)
        if (s->uids[i] == uid)
            return true;
    return false;
}

/* "Uid:\treal\teffective\tsaved\tfile system" */
static bool parse_uid(const char *status, uid_t *ret)
{
    const char *line = strstr(status, "\nUid:\t");
    struct slice rest, word;
    int64_t v = -1;

    if (!line)
        return false;
    rest = (struct slice){ line + 6, strcspn(line + 6, "\n") };
    for (int i = 0; i < 4; i++)
        if (!slice_next(&rest, '\t', &word) || units_int(word.p, word.len, &v))
            return false;
    if (v < 0 || v > UINT32_MAX)
        return false;
    *ret = (uid_t)v;
    return true;
}

int shm_user(struct shm *s, int pid_dirfd, struct err *err)
{
    char text[4096];
    uid_t uid;
    ssize_t n = fd_read_at(pid_dirfd, "status", text, sizeof text);

    if (n == -ENOENT || n == -ESRCH)
        return err_set(err, LT_GONE, "shared memory: the process is gone");
    if (n < 0 && n != -EFBIG)
        return err_errno(err, LT_EIO, (int)-n, "shared memory: cannot read /proc/PID/status");
    if (!parse_uid(text, &uid))
        return err_set(err, LT_EPARSE, "shared memory: no Uid line in /proc/PID/status");
    if (has_uid(s, uid))
        return 0;
    if (s->nuids == SHM_UIDS)
        return err_set(err, LT_ELIMIT, "shared memory: the target runs as more than %d users; the others are left out", SHM_UIDS);
    s->uids[s->nuids++] = uid;
    return 0;
}

/* ---- SysV ------------------------------------------------------------------------------------------------------- */

/* "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime ..." */
bool shm_parse(const char *line, size_t len, struct shm_row *ret)
{
    int64_t f[16];
    struct slice rest = { line, len }, word;
    size_t n = 0;

    while (n < ARRAY_SIZE(f) && slice_next(&rest, ' ', &word)) {
        if (word.len == 0)
            continue;
        if (units_int(word.p, word.len, &f[n]))
            return false;
        n++;
    }
    if (n != ARRAY_SIZE(f) || f[1] < 0 || f[1] > INT32_MAX || f[4] < 0 || f[4] > INT32_MAX || f[5] < 0 || f[5] > INT32_MAX ||
        f[7] < 0 || f[7] > UINT32_MAX || f[9] < 0 || f[9] > UINT32_MAX || f[3] < 0 || f[14] < 0 || f[15] < 0 || f[13] < 0)
        return false;
    *ret = (struct shm_row){ .id = (int32_t)f[1], .size = f[3], .cpid = (int32_t)f[4], .lpid = (int32_t)f[5], .nattch = f[6],
                             .uid = (uint32_t)f[7], .cuid = (uint32_t)f[9], .used_s = MAX(f[11], f[12]), .ctime_s = f[13],
                             .rss = f[14], .swap = f[15] };
    return true;
}

struct sysv_pass {
    struct shm *s;
    const char *proc_root;
    shm_foreign_fn foreign;
    void *ctx;
    struct shm_count *ret;
    int code;
};

/* Field 22 of stat, behind the last ')': ticks after boot. */
static bool start_ticks(const char *stat, uint64_t *ret)
{
    const char *p = strrchr(stat, ')');
    struct slice rest, word;
    int64_t v = 0;

    if (!p || p[1] != ' ')
        return false;
    rest = (struct slice){ p + 2, strlen(p + 2) };
    for (int i = 3; i <= 22; i++)
        if (!slice_next(&rest, ' ', &word))
            return false;
    if (units_int(word.p, word.len, &v) || v < 0)
        return false;
    *ret = (uint64_t)v;
    return true;
}

/* Whether the process that had this pid at that time may still run. */
static bool still_runs(const struct sysv_pass *p, int32_t pid, int64_t at_s)
{
    char path[512], text[1024];
    uint64_t ticks;

    if (pid <= 0)
        return false;
    str_fmt(path, sizeof path, "%s/%d/stat", p->proc_root, (int)pid);
    ssize_t n = fd_read_at(AT_FDCWD, path, text, sizeof text);
    if (n < 0 || !start_ticks(text, &ticks))
        return false;
    int64_t boot_s = (clock_wall_ns() - clock_boot_ns()) / NS_PER_S;
    return boot_s + (int64_t)(ticks / (uint64_t)sysconf(_SC_CLK_TCK)) <= at_s + SLACK_S;
}

/* By which right the segment counts: PROVEN, BY_OWNER, or -1: it does not. */
static int sysv_right(const struct sysv_pass *p, const struct shm_row *row)
{
    const struct shm *s = p->s;
    uint64_t before = 0;
    bool counted = map_get(&s->sysv, (uint64_t)row->id, &before) && (int64_t)(before >> 1) == row->ctime_s;

    if (shm_was_life(s, row->cpid, row->ctime_s))
        return PROVEN; /* S1 */
    if (is_running_life(s, row->lpid) && shm_was_life(s, row->lpid, row->used_s))
        return PROVEN; /* S2 */
    if (counted)
        return before & 1 ? PROVEN : BY_OWNER; /* S4 */
    if (!has_uid(s, row->uid) && !has_uid(s, row->cuid))
        return -1;
    if (p->foreign && p->foreign(p->ctx, row->cpid, row->ctime_s))
        return -1;
    return still_runs(p, row->cpid, row->ctime_s) ? -1 : BY_OWNER; /* S3 */
}

static bool take_segment(void *ctx, const char *line, size_t len)
{
    struct sysv_pass *p = ctx;
    struct shm_row row;

    if (!shm_parse(line, len, &row))
        return true;
    int right = sysv_right(p, &row);
    if (right < 0)
        return true;
    p->ret->segments++;
    p->ret->bytes += row.rss + row.swap;
    p->ret->by_owner += right == BY_OWNER;
    p->code = map_put(&p->s->sysv_next, (uint64_t)row.id, (uint64_t)row.ctime_s << 1 | (uint64_t)right);
    return p->code == 0;
}

/* In the target's IPC namespace: the file shows that of whoever opens it. */
static int read_sysv(void *ctx)
{
    struct sysv_pass *p = ctx;
    char path[512], buffer[SYSV_BUFFER];

    str_fmt(path, sizeof path, "%s/sysvipc/shm", p->proc_root);
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd == -ENOENT)
        return LT_EUNSUPPORTED;
    if (fd < 0)
        return fd == -EACCES || fd == -EPERM ? LT_EPERM : LT_EIO;
    int r = lines_each(fd, buffer, sizeof buffer, take_segment, p);
    return r < 0 ? LT_EIO : p->code;
}

static void swap_maps(struct map *a, struct map *b)
{
    struct map m = *a;

    *a = *b;
    *b = m;
}

static int count_sysv(struct sysv_pass *p, int pid_dirfd, struct err *err)
{
    struct err inner = { 0 };
    struct shm_count before = *p->ret;

    map_clear(&p->s->sysv_next);
    int r = namespace_run(pid_dirfd, "ipc", read_sysv, p, &inner);
    if (r) {
        *p->ret = before;
        return err_set(err, r, "SysV shared memory: %s", inner.code ? inner.text : err_sentence(r));
    }
    swap_maps(&p->s->sysv, &p->s->sysv_next);
    p->ret->sysv = true;
    return 0;
}

/* ---- POSIX ------------------------------------------------------------------------------------------------------ */

struct posix_pass {
    struct shm *s;
    struct shm_count *ret;
};

static int take_file(void *ctx, const struct shm_file *f)
{
    struct posix_pass *p = ctx;
    uint64_t right;
    bool proven = map_get(&p->s->posix, f->key, &right);

    if (!proven && !has_uid(p->s, f->uid))
        return 0;
    p->ret->segments++;
    p->ret->bytes += f->bytes;
    p->ret->by_owner += !proven;
    return proven ? map_put(&p->s->posix_next, f->key, PROVEN) : 0;
}

/* Where its /dev/shm lies; looked up once a round for all processes of a mount namespace. */
static int find_where(struct shm *s, int pid_dirfd, struct err *err)
{
    char mnt[sizeof s->mnt];
    ssize_t n = readlinkat(pid_dirfd, "ns/mnt", mnt, sizeof mnt - 1);
    int r;

    mnt[MAX(n, (ssize_t)0)] = '\0';
    if (mnt[0] && str_eq(mnt, s->mnt))
        return 0;
    s->mnt[0] = '\0';
    r = shm_files_where(pid_dirfd, &s->where);
    if (r)
        return err_set(err, r, "POSIX shared memory: mount table: %s", err_sentence(r));
    str_copy(s->mnt, sizeof s->mnt, mnt);
    return 0;
}

static int count_posix(struct shm *s, int pid_dirfd, struct shm_count *ret, struct err *err)
{
    struct posix_pass p = { s, ret };
    struct shm_count before = *ret;

    if (s->rest) {
        s->rest--;
        return err_set(err, LT_ELIMIT, "/dev/shm held more files than are looked at; it is looked at again later");
    }
    s->mnt[0] = '\0'; /* a round begins: what is mounted may have changed */
    map_clear(&s->posix_next);
    int r = find_where(s, pid_dirfd, err);
    if (!r)
        r = shm_files_each(pid_dirfd, &s->where, take_file, &p, err);
    if (r == LT_ELIMIT)
        s->rest = REST_ROUNDS;
    if (r) {
        *ret = before;
        return r;
    }
    swap_maps(&s->posix, &s->posix_next);
    ret->posix = true;
    return 0;
}

static int note_open(void *ctx, const struct shm_file *f)
{
    struct shm *s = ctx;

    return map_put(&s->posix, f->key, PROVEN);
}

int shm_open_files(struct shm *s, int pid_dirfd, unsigned probes, struct err *err)
{
    int r = find_where(s, pid_dirfd, err);

    return r ? r : shm_files_open(pid_dirfd, &s->where, probes, note_open, s, err);
}

int shm_count(struct shm *s, const char *proc_root, int pid_dirfd, shm_foreign_fn foreign, void *ctx, struct shm_count *ret,
              struct err *err)
{
    struct shm_count c = { 0 };
    struct sysv_pass p = { .s = s, .proc_root = proc_root, .foreign = foreign, .ctx = ctx, .ret = &c };
    int posix = count_posix(s, pid_dirfd, &c, err), sysv = count_sysv(&p, pid_dirfd, err);

    c.code = posix ? posix : sysv;
    if (posix && sysv)
        return posix == LT_GONE || sysv == LT_GONE ? LT_GONE : sysv;
    *ret = c;
    return 0;
}
