/* The disk fails: every write, sync, truncation, open and deletion in turn, once or for good; the disk is full; memory is
 * short. Nothing that was acknowledged is lost, nothing crashes, the store is sound afterwards. */
#include <errno.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/test_kit.h"

static struct err err;

/* ---- a VFS that fails on demand ---- */

static struct { int64_t count, at; int code; bool sticky, hit; } fault;
static sqlite3_vfs *real_vfs;

struct shim { sqlite3_file base; sqlite3_file *real; };
#define REAL(f) (((struct shim *)(f))->real)

static bool failing(void)
{
    fault.count++;
    bool now = fault.at && (fault.count == fault.at || (fault.sticky && fault.count > fault.at));
    fault.hit |= now;
    return now;
}

static int shim_close(sqlite3_file *f) { return REAL(f)->pMethods->xClose(REAL(f)); }
static int shim_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) { return REAL(f)->pMethods->xRead(REAL(f), p, n, at); }
static int shim_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (!failing())
        return REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
    if (n > 512) /* half of it got through */
        REAL(f)->pMethods->xWrite(REAL(f), p, n / 2, at);
    return fault.code;
}
static int shim_truncate(sqlite3_file *f, sqlite3_int64 n) { return failing() ? SQLITE_IOERR_TRUNCATE : REAL(f)->pMethods->xTruncate(REAL(f), n); }
static int shim_sync(sqlite3_file *f, int flags) { return failing() ? SQLITE_IOERR_FSYNC : REAL(f)->pMethods->xSync(REAL(f), flags); }
static int shim_size(sqlite3_file *f, sqlite3_int64 *n) { return REAL(f)->pMethods->xFileSize(REAL(f), n); }
static int shim_lock(sqlite3_file *f, int l) { return REAL(f)->pMethods->xLock(REAL(f), l); }
static int shim_unlock(sqlite3_file *f, int l) { return REAL(f)->pMethods->xUnlock(REAL(f), l); }
static int shim_reserved(sqlite3_file *f, int *r) { return REAL(f)->pMethods->xCheckReservedLock(REAL(f), r); }
static int shim_control(sqlite3_file *f, int op, void *p) { return REAL(f)->pMethods->xFileControl(REAL(f), op, p); }
static int shim_sector(sqlite3_file *f) { return REAL(f)->pMethods->xSectorSize(REAL(f)); }
static int shim_device(sqlite3_file *f) { return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f)); }
static int shim_shm_map(sqlite3_file *f, int pg, int sz, int ext, void volatile **p)
{
    return failing() ? SQLITE_IOERR_SHMMAP : REAL(f)->pMethods->xShmMap(REAL(f), pg, sz, ext, p);
}
static int shim_shm_lock(sqlite3_file *f, int at, int n, int flags) { return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags); }
static void shim_shm_barrier(sqlite3_file *f) { REAL(f)->pMethods->xShmBarrier(REAL(f)); }
static int shim_shm_unmap(sqlite3_file *f, int del) { return REAL(f)->pMethods->xShmUnmap(REAL(f), del); }

static const sqlite3_io_methods shim_methods = {
    2, shim_close, shim_read, shim_write, shim_truncate, shim_sync, shim_size, shim_lock, shim_unlock, shim_reserved, shim_control,
    shim_sector, shim_device, shim_shm_map, shim_shm_lock, shim_shm_barrier, shim_shm_unmap, NULL, NULL};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    struct shim *s = (struct shim *)f;
    (void)vfs;
    s->base.pMethods = NULL;
    s->real = (sqlite3_file *)(s + 1);
    if (failing())
        return SQLITE_CANTOPEN;
    int rc = real_vfs->xOpen(real_vfs, name, s->real, flags, out);
    if (rc == SQLITE_OK)
        s->base.pMethods = &shim_methods;
    return rc;
}
static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    return failing() ? SQLITE_IOERR_DELETE : real_vfs->xDelete(real_vfs, name, sync);
}

static sqlite3_vfs shim_vfs;

static void shim_install(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    shim_vfs = *real_vfs;
    shim_vfs.zName = "failing";
    shim_vfs.szOsFile = (int)sizeof(struct shim) + real_vfs->szOsFile;
    shim_vfs.xOpen = shim_open;
    shim_vfs.xDelete = shim_delete;
    sqlite3_vfs_register(&shim_vfs, 1);
}

static void shim_remove(void)
{
    memset(&fault, 0, sizeof fault);
    sqlite3_vfs_unregister(&shim_vfs);
}

/* ---- the work that is disturbed ---- */

#define SWEEPS 150

/* What was acknowledged: it must be there afterwards. */
struct acked { int64_t sweeps, put; bool event, import; };

static int work(const char *path, struct acked *a)
{
    struct store *s;
    struct err e;
    int64_t target, id, curve;
    struct sample rows[3];
    int64_t ts[3] = {T0, T0 + STEP, T0 + 2 * STEP};
    const struct request_row r = {T0, "/a", "", "ok", 0, 0, 1};
    int rc = store_open(&s, path, STORE_WATCH, NULL, &e), rc2 = 0;
    if (rc)
        return rc;
    struct life_info info;
    rc = store_target(s, "api", "pid:1", &target, &e);
    if (!rc) {
        info = test_life(target, 7);
        rc = store_life_begin(s, &info, &id, &e);
    }
    for (int64_t i = 0; i < SWEEPS && !rc; i++) {
        rc = put_sweep_at(s, &id, 1, i, &e);
        a->put += !rc;
        if (!rc && i % 10 == 9 && !(rc2 = store_commit(s, &e))) /* a commit that fails is tried again with the next */
            a->sweeps = i + 1;
        rc = rc2 == LT_ENOMEM ? rc2 : rc;
    }
    if (!rc && !(rc = store_put_event(s, target, T0, "deploy", "v2", &e)))
        a->event = true;
    if (!rc)
        rc = store_put_request(s, target, &r, false, &e);
    if (!rc)
        rc = store_import_life(s, &info, &curve, &e);
    for (int k = 0; k < 3 && !rc; k++)
        truth_row(&rows[k], curve, k);
    if (!rc && !(rc = store_import_samples(s, curve, ts, rows, 3, &e)))
        a->import = true;
    int rc3 = store_close(s, &e);
    if (!rc3)
        a->sweeps = MAX(a->sweeps, a->put);
    return rc ? rc : rc2 ? rc2 : rc3;
}

static int count_event(void *ctx, const struct event_row *row)
{
    ++*(int *)ctx;
    (void)row;
    return 0;
}

static void expect_acked(const char *path, const struct acked *a)
{
    struct store *s;
    int64_t target;
    int events = 0;
    int rc = store_open(&s, path, STORE_READ, NULL, &err);
    if (rc) {
        assert_true(!a->sweeps && !a->event && !a->import);
        return;
    }
    rc = store_find_target(s, "api", &target, &err);
    if (!rc) {
        struct check c = {.id = 1};
        OK(store_each_point(s, 1, INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
        assert_in_range(c.n, a->sweeps, SWEEPS);
        OK(store_each_event(s, target, INT64_MIN, INT64_MAX, count_event, &events, &err));
        assert_true(events || !a->event);
        c = (struct check){.id = -1};
        OK(store_each_point(s, -1, INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
        assert_int_equal(c.n, a->import ? 3 : c.n ? 3 : 0);
    } else {
        assert_true(!a->sweeps && !a->event);
    }
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static void remove_store(const char *path)
{
    static const char *const suffix[] = {"", "-wal", "-shm", "-watch", "-journal"};
    for (size_t i = 0; i < ARRAY_SIZE(suffix); i++) {
        char name[700];
        str_fmt(name, sizeof name, "%s%s", path, suffix[i]);
        unlink(name);
    }
}

static void sweep_faults(const char *path, int code, bool sticky)
{
    /* Every one of the first, where the store is made; then ever fewer of what repeats itself. */
    for (int64_t at = 1; at < 1000000; at += 1 + at / 40) {
        struct acked a = {0};
        remove_store(path);
        memset(&fault, 0, sizeof fault);
        fault.at = at;
        fault.code = code;
        fault.sticky = sticky;
        int rc = work(path, &a);
        assert_true(rc <= 0);
        bool hit = fault.hit;
        memset(&fault, 0, sizeof fault);
        expect_acked(path, &a);
        if (!hit)
            return;
        struct acked again = {0}; /* the disk is well again: the same work succeeds on what was left */
        assert_int_equal(work(path, &again), 0);
        expect_acked(path, &again);
    }
}

static void test_every_io_fails_once(void **state)
{
    (void)state;
    char path[700];
    str_copy(path, sizeof path, test_path("a.db"));
    shim_install();
    sweep_faults(path, SQLITE_IOERR_WRITE, false);
    shim_remove();
}

static void test_the_disk_fails_for_good(void **state)
{
    (void)state;
    char path[700];
    str_copy(path, sizeof path, test_path("b.db"));
    shim_install();
    sweep_faults(path, SQLITE_FULL, true);
    shim_remove();
}

/* ---- a full disk ---- */

struct gaps { int n; int64_t from_ns, to_ns; };
static int take_gap(void *ctx, const struct gap_row *row)
{
    struct gaps *g = ctx;
    g->n++;
    g->from_ns = row->from_ns;
    g->to_ns = row->to_ns;
    return 0;
}

/* An hour without room: all of it is kept and written when there is room. Then longer than the queue: what is lost is a gap. */
static void full_disk(const char *path, void (*full)(bool))
{
    struct store *s;
    int64_t target, ids[20];
    struct gaps gaps = {0};
    struct store_config config = {.queue_max_bytes = 256 << 10};
    OK(store_open(&s, path, STORE_WATCH, &config, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    for (int k = 0; k < 20; k++) {
        struct life_info info = test_life(target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
    }
    OK(store_commit(s, &err));
    full(true);
    int64_t i = 0;
    int refused = 0;
    for (; i < 120; i++) {
        OK(put_sweep_at(s, ids, 20, i, &err));
        int rc = store_commit(s, &err);
        assert_true(rc == 0 || rc == LT_EFULL);
        refused += rc == LT_EFULL;
    }
    assert_true(refused > 0);
    size_t queued = store_queued_bytes(s);
    assert_true(queued > 0);
    full(false);
    OK(store_commit(s, &err));
    assert_int_equal(store_queued_bytes(s), 0);
    struct check c = {.id = ids[3]};
    OK(store_each_point(s, ids[3], INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
    assert_int_equal(c.n, 120);
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, take_gap, &gaps, &err));
    assert_int_equal(gaps.n, 0);

    full(true);
    for (; i < 1120; i++) {
        OK(put_sweep_at(s, ids, 20, i, &err));
        store_commit(s, &err);
        assert_true(store_queued_bytes(s) <= 256 << 10);
    }
    full(false);
    OK(store_commit(s, &err));
    OK(store_each_gap(s, INT64_MIN, INT64_MAX, take_gap, &gaps, &err));
    assert_int_equal(gaps.n, 1);
    c = (struct check){.id = ids[3], .holes = true};
    OK(store_each_point(s, ids[3], INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
    assert_int_equal(c.next, 1120); /* up to the last */
    int64_t lost = 1 + (gaps.to_ns - gaps.from_ns) / STEP;
    assert_int_equal(c.n, 1120 - lost); /* and the gap is exactly what is missing */
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
}

static void shim_full(bool on)
{
    memset(&fault, 0, sizeof fault);
    fault.at = on;
    fault.sticky = on;
    fault.code = SQLITE_FULL;
}

static void test_full_disk(void **state)
{
    (void)state;
    shim_install();
    full_disk(test_path("c.db"), shim_full);
    shim_remove();
}

/* A queue that holds fewer sweeps than stand between two keys is cut up to its end again and again: what follows must not
 * be read as differing from a sweep it does not differ from. */
static void test_short_queue_keeps_values_right(void **state)
{
    (void)state;
    struct store *s;
    int64_t target, ids[20];
    shim_install();
    struct store_config config = {.queue_max_bytes = 6 << 10};
    OK(store_open(&s, test_path("short.db"), STORE_WATCH, &config, &err));
    OK(store_target(s, "api", "pid:1", &target, &err));
    for (int k = 0; k < 20; k++) {
        struct life_info info = test_life(target, 100 + k);
        OK(store_life_begin(s, &info, &ids[k], &err));
        OK(store_commit(s, &err));
    }
    for (int64_t i = 0; i < 400; i++) {
        shim_full(i % 100 >= 20); /* room now and then */
        OK(put_sweep_at(s, ids, 20, i, &err));
        store_commit(s, &err);
    }
    shim_full(false);
    OK(store_commit(s, &err));
    for (int k = 0; k < 20; k++) {
        struct check c = {.id = ids[k], .holes = true};
        OK(store_each_point(s, ids[k], INT64_MIN, INT64_MAX, 0, check_point, &c, &err));
        assert_int_equal(c.next, 400);
        assert_true(c.n >= 80 && c.n < 400);
    }
    OK(store_verify(s, print_line, NULL, &err));
    OK(store_close(s, &err));
    shim_remove();
}

static void test_lock_file_is_no_link(void **state)
{
    (void)state;
    struct store *s;
    char lock[4200], other[4200];
    str_copy(other, sizeof other, test_path("precious"));
    assert_int_equal(fd_write_file(other, "keep", 4), 0);
    str_fmt(lock, sizeof lock, "%s-watch", test_path("linked.db"));
    assert_int_equal(symlink(other, lock), 0);
    assert_true(store_open(&s, test_path("linked.db"), STORE_WATCH, NULL, &err) < 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(link(other, lock), 0);
    assert_int_equal(store_open(&s, test_path("linked.db"), STORE_WATCH, NULL, &err), LT_EPERM);
    char text[8];
    assert_int_equal(fd_read_at(AT_FDCWD, other, text, sizeof text), 4);
    assert_string_equal(text, "keep");
}

static char ballast[700];

/* Fills the file system to its last block, or gives the room back. */
static void tmpfs_full(bool on)
{
    static char block[4096];
    int fd = open(ballast, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    if (!on)
        assert_int_equal(ftruncate(fd, 0), 0);
    while (on && write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

/* On a real file system that is really full; the mount lives in a name space of the child alone. */
static void test_full_tmpfs(void **state)
{
    char folder[600], path[700];
    int status;
    (void)state;
    str_fmt(folder, sizeof folder, "%s/small", harness_tmpdir());
    assert_int_equal(fd_mkdir_p(folder, 0700), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("tmpfs", folder, "tmpfs", 0, "size=4m"))
            _exit(77);
        str_fmt(path, sizeof path, "%s/a.db", folder);
        str_fmt(ballast, sizeof ballast, "%s/ballast", folder);
        full_disk(path, tmpfs_full);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no right to mount here; test_full_disk stands for it */
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- memory ---- */

static int small_work(void *ctx)
{
    struct acked a = {0};
    remove_store(ctx);
    return work(ctx, &a);
}

static void test_our_memory_is_short(void **state)
{
    char path[700];
    (void)state;
    str_copy(path, sizeof path, test_path("d.db"));
    harness_sweep_allocs(small_work, path);
}

/* SQLite's memory through ours, so that it fails too. */
static void *lite_alloc(int n)
{
    int64_t *p = mem_alloc((size_t)n + 16);
    if (p)
        *p = n;
    return p ? p + 2 : NULL;
}
static void lite_free(void *p) { mem_free(p ? (int64_t *)p - 2 : NULL); }
static void *lite_realloc(void *p, int n)
{
    int64_t *q = mem_realloc(p ? (int64_t *)p - 2 : NULL, (size_t)n + 16);
    if (q)
        *q = n;
    return q ? q + 2 : NULL;
}
static int lite_size(void *p) { return p ? (int)((int64_t *)p)[-2] : 0; }
static int lite_roundup(int n) { return (n + 7) & ~7; }
static int lite_init(void *p) { return (void)p, SQLITE_OK; }
static void lite_shutdown(void *p) { (void)p; }

static void test_sqlites_memory_is_short(void **state)
{
    char path[700];
    sqlite3_mem_methods ours = {lite_alloc, lite_free, lite_realloc, lite_size, lite_roundup, lite_init, lite_shutdown, NULL}, was;
    (void)state;
    str_copy(path, sizeof path, test_path("e.db"));
    sqlite3_shutdown();
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &was), SQLITE_OK);
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
    assert_int_equal(sqlite3_initialize(), SQLITE_OK);
    for (uint64_t at = 1;; at += 1 + at / 20) {
        struct acked a = {0};
        remove_store(path);
        mem_fail_nth(at);
        int rc = work(path, &a);
        bool hit = mem_failed();
        mem_fail_nth(0);
        if (rc && rc != LT_ENOMEM)
            fail_msg("allocation %llu: %s", (unsigned long long)at, err_name(rc));
        expect_acked(path, &a);
        if (!hit)
            break;
    }
    sqlite3_shutdown();
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &was), SQLITE_OK);
}

HARNESS_MAIN(CASE(test_every_io_fails_once), CASE(test_the_disk_fails_for_good), CASE(test_full_disk),
             CASE(test_short_queue_keeps_values_right), CASE(test_lock_file_is_no_link),
             CASE(test_full_tmpfs),
             CASE(test_our_memory_is_short), CASE(test_sqlites_memory_is_short))
