/* What the store costs: bytes per value, time to write and to decode, beside plain SQLite tables with the same data.
 *
 *     bench-store [--procs N] [--days N] [--interval SECONDS] [--out FILE]    made-up hosts, one busy and one idle
 *     bench-store FILE                                                        a store that is there
 *
 * Prints "name value unit" lines, which bench/run.py reads as well.
 *
 * The made-up host is a Python service of N processes, with the columns a sweep has: memory that follows a daily load wave
 * with page-sized noise, leaks and restarts; descriptors, sockets and threads that move by ones; counters that grow
 * with the work done. Every third process idles. It is a model: quote figures of a recorded store beside it.
 */
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "store/store.h"

#define PROCS_MAX 2000
#define PAGE 4096
#define PLAIN_SWEEPS 720
#define VALUES 25 /* columns of the model that hold a value */

struct options { int procs, days, interval; const char *file, *out; };

static uint64_t seed = 42;

static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    double s = 0;
    for (int i = 0; i < 12; i++)
        s += uniform();
    return s - 6;
}

static void check(int rc, const struct err *err)
{
    if (!rc)
        return;
    fprintf(stderr, "bench-store: %s\n", err->text);
    exit(3);
}

static void row(const char *name, double value, const char *unit) { printf("%-44s %14.4f %s\n", name, value, unit); }

/* ---- the model ---- */

struct proc { double anon, leak, load_share, inflight; int64_t id, file, cpu, minflt, majflt, conns, fds, threads; bool idle; };

static void proc_start(struct proc *p, int k)
{
    *p = (struct proc){.id = p->id, .anon = 20000 + uniform() * 100000, .leak = k % 7 == 0 ? uniform() * 3 : 0,
                       .load_share = 0.5 + uniform(), .file = 4000 + (int64_t)(uniform() * 3000), .fds = 12, .threads = 5, .idle = k % 3 == 2};
}

static int64_t poisson(double mean)
{
    int64_t n = 0;
    for (double p = exp(-mean), s = p, u = uniform(); u > s && n < 200; s += p)
        p *= mean / (double)++n;
    return n;
}

static void proc_step(struct proc *p, double load, int interval, int64_t *v)
{
    double requests = p->idle ? 0 : load * p->load_share * interval;
    p->inflight = p->idle ? 0 : (double)poisson(load * p->load_share * 0.4);
    if (!p->idle) {
        p->anon += p->leak + normal() * (2 + 10 * load);
        p->cpu += (int64_t)((requests * 0.02 + uniform() * 0.05) * 100) * 10000000;
        p->minflt += (int64_t)(requests * 4 * (0.8 + 0.4 * uniform()));
        if (uniform() < 0.02)
            p->conns = 2 + poisson(3);
        if (uniform() < 0.001)
            p->threads++;
    } else if (uniform() < 0.1) {
        p->cpu += 10000000;
    }
    if (uniform() < 0.002)
        p->file += (int64_t)(uniform() * 40);
    for (int m = 0; m < METRIC_N; m++)
        v[m] = METRIC_NA;
    int64_t streams = (int64_t)p->inflight, sockets = 2 + p->conns + streams;
    v[METRIC_RSS_ANON] = (int64_t)p->anon * PAGE;
    v[METRIC_RSS_FILE] = p->file * PAGE;
    v[METRIC_RSS_SHMEM] = 0;
    v[METRIC_RSS] = v[METRIC_RSS_ANON] + v[METRIC_RSS_FILE];
    v[METRIC_SWAP] = 0;
    v[METRIC_SOCKETS] = sockets;
    v[METRIC_PIPES] = 2;
    v[METRIC_FILES] = 5;
    v[METRIC_ANON_INODES] = 2;
    v[METRIC_FDS] = sockets + 9;
    v[METRIC_FDS_DELETED] = v[METRIC_FD_KINDS_ERR] = 0;
    v[METRIC_TCP_ESTABLISHED] = p->conns + streams;
    v[METRIC_TCP_CLOSE_WAIT] = 0;
    v[METRIC_TCP_OTHER] = 0;
    v[METRIC_CONNECTIONS] = p->conns + streams;
    v[METRIC_TCP_LISTEN] = 1;
    v[METRIC_SOCKETS_NO_ROW] = 0;
    v[METRIC_UNIX_SOCKETS] = 1;
    v[METRIC_THREADS] = p->threads;
    v[METRIC_CHILDREN] = 0;
    v[METRIC_ZOMBIES] = 0;
    v[METRIC_CPU_NS] = p->cpu;
    v[METRIC_MINFLT] = p->minflt;
    v[METRIC_MAJFLT] = p->majflt;
}

/* ---- plain tables, to compare ---- */

struct plain { sqlite3 *db; sqlite3_stmt *put; bool wide; int64_t cpu_ns; char path[600]; };

static void plain_sql(struct plain *p, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(p->db, sql, NULL, NULL, &text) == SQLITE_OK)
        return;
    fprintf(stderr, "bench-store: %s\n", text);
    exit(3);
}

static void plain_open(struct plain *p, const char *folder, bool wide)
{
    struct buf sql;
    buf_init(&sql, 8192);
    p->wide = wide;
    p->cpu_ns = 0;
    str_fmt(p->path, sizeof p->path, "%s/%s.db", folder, wide ? "wide" : "long");
    sqlite3_open(p->path, &p->db);
    plain_sql(p, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
    buf_puts(&sql, "CREATE TABLE sample(");
    buf_puts(&sql, wide ? "life INTEGER, ts INTEGER" : "series INTEGER, ts INTEGER, value INTEGER, PRIMARY KEY(series, ts)) WITHOUT ROWID");
    for (int m = 0; wide && m < METRIC_N; m++)
        buf_printf(&sql, ", %s INTEGER", metrics[m].name);
    buf_puts(&sql, wide ? ", PRIMARY KEY(life, ts)) WITHOUT ROWID" : "");
    plain_sql(p, sql.p);
    buf_clear(&sql);
    buf_puts(&sql, "INSERT INTO sample VALUES(?,?");
    for (int m = 0; m < (wide ? METRIC_N : 1); m++)
        buf_puts(&sql, ",?");
    buf_puts(&sql, ")");
    sqlite3_prepare_v2(p->db, sql.p, -1, &p->put, NULL);
    buf_release(&sql);
}

static void plain_step(struct plain *p)
{
    if (sqlite3_step(p->put) != SQLITE_DONE) {
        fprintf(stderr, "bench-store: %s\n", sqlite3_errmsg(p->db));
        exit(3);
    }
    sqlite3_reset(p->put);
}

static void plain_put(struct plain *p, const struct sweep *sweep)
{
    int64_t began = clock_cpu_ns();
    plain_sql(p, "BEGIN");
    for (size_t i = 0; i < sweep->n; i++) {
        const struct sample *s = &sweep->rows[i];
        sqlite3_bind_int64(p->put, 2, sweep->wall_ns / NS_PER_MS);
        if (p->wide)
            sqlite3_bind_int64(p->put, 1, s->life_id);
        for (int m = 0; m < METRIC_N; m++) {
            if (p->wide) {
                s->v[m] < 0 ? sqlite3_bind_null(p->put, m + 3) : sqlite3_bind_int64(p->put, m + 3, s->v[m]);
            } else if (s->v[m] >= 0) {
                sqlite3_bind_int64(p->put, 1, s->life_id * METRIC_N + m);
                sqlite3_bind_int64(p->put, 3, s->v[m]);
                plain_step(p);
            }
        }
        if (p->wide)
            plain_step(p);
    }
    plain_sql(p, "COMMIT");
    p->cpu_ns += clock_cpu_ns() - began;
}

static int64_t plain_close(struct plain *p)
{
    struct stat st = {0};
    plain_sql(p, "PRAGMA wal_checkpoint(TRUNCATE)");
    sqlite3_finalize(p->put);
    sqlite3_close(p->db);
    stat(p->path, &st);
    unlink(p->path);
    return st.st_size;
}

/* ---- reading a store ---- */

static int count_point(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    uint64_t *sum = ctx;
    sum[0]++;
    sum[1] += (uint64_t)v[METRIC_RSS_ANON].last + (uint64_t)p->ts_ns;
    return 0;
}

struct lives { struct store *s; int64_t longest, samples; uint64_t n; };

static int find_longest(void *ctx, const struct life_row *r)
{
    struct lives *l = ctx;
    l->n++;
    if ((int64_t)r->samples > l->samples) {
        l->samples = (int64_t)r->samples;
        l->longest = r->id;
    }
    return 0;
}

static int each_target(void *ctx, const struct target_row *t)
{
    struct lives *l = ctx;
    struct err err;
    check(store_each_life(l->s, t->id, INT64_MIN, INT64_MAX, find_longest, l, &err), &err);
    return 0;
}

static double decode_ms(struct store *s, int64_t life, uint64_t *ret_points)
{
    struct err err;
    double best = 1e9;
    for (int i = 0; i < 7; i++) {
        uint64_t sum[2] = {0};
        int64_t began = clock_mono_ns();
        check(store_each_point(s, life, INT64_MIN, INT64_MAX, 0, count_point, sum, &err), &err);
        best = fmin(best, (double)(clock_mono_ns() - began) / 1e6);
        *ret_points = sum[0];
    }
    return best;
}

static void report(const char *path)
{
    struct err err;
    struct store *s;
    struct store_info info;
    uint64_t points;
    check(store_open(&s, path, STORE_READ, NULL, &err), &err);
    check(store_info(s, &info, &err), &err);
    struct lives l = {.s = s};
    check(store_each_target(s, each_target, &l, &err), &err);
    double values = (double)info.tier[0].values, samples = (double)info.tier[0].samples;
    row("lives", (double)l.n, "");
    row("file", (double)info.file_bytes, "bytes");
    row("raw samples sealed", samples, "");
    row("values per sample", values / samples, "");
    row("raw chunks, content alone", (double)info.tier[0].bytes / values, "bytes/value");
    row("whole file", (double)info.file_bytes / values, "bytes/value");
    row("whole file, per 20 columns", 20 * (double)info.file_bytes / values, "bytes/process-sample");
    double ms = decode_ms(s, l.longest, &points);
    row("decode longest life, all series", ms, "ms");
    row("points of it", (double)points, "");
    row("decode a week at 30 s (scaled)", ms * 20160 / (double)points, "ms");
    check(store_close(s, &err), &err);
}

/* ---- the run ---- */

static struct proc procs[PROCS_MAX];
static struct sample rows[PROCS_MAX];

static void begin_all(struct store *s, const struct options *o, int64_t target)
{
    struct err err;
    for (int k = 0; k < o->procs; k++) {
        struct life_info info = {.key = {.pid = 1000 + k, .start = (uint64_t)k + 1}, .target_id = target, .start_wall_ns = INT64_C(1700000000) * NS_PER_S};
        str_copy(info.comm, sizeof info.comm, "python3");
        check(store_life_begin(s, &info, &procs[k].id, &err), &err);
        proc_start(&procs[k], k);
    }
}

static void run(const struct options *o, const char *folder, const char *path)
{
    struct err err;
    struct store *s;
    struct plain wide, narrow;
    int64_t target, start = INT64_C(1700000000) * NS_PER_S, cpu = 0, worst = 0;
    struct store_config config = {.disk_budget_bytes = INT64_C(8) << 30, .raw_keep_ns = 400 * INT64_C(86400) * NS_PER_S};
    check(store_open(&s, path, STORE_WATCH, &config, &err), &err);
    check(store_target(s, "api", "port:8000", &target, &err), &err);
    begin_all(s, o, target);
    plain_open(&wide, folder, true);
    plain_open(&narrow, folder, false);
    int64_t n = (int64_t)o->days * 86400 / o->interval / 120 * 120, allocs = 0;
    int64_t plain_n = MIN(n, PLAIN_SWEEPS); /* their cost a value does not fall with time, and they are slow */
    for (int64_t i = 0; i < n; i++) {
        double load = 5 * (1.1 + sin((double)i * o->interval / 86400 * 2 * M_PI)) * (1 + 0.1 * normal());
        for (int k = 0; k < o->procs; k++) {
            rows[k].life_id = procs[k].id;
            proc_step(&procs[k], fmax(load, 0), o->interval, rows[k].v);
        }
        struct sweep sweep = {start + i * o->interval * NS_PER_S + (int64_t)(uniform() * 300000), (size_t)o->procs, rows};
        int64_t began = clock_cpu_ns(), allocs_before = (int64_t)mem_total_allocs();
        check(store_put_sweep(s, &sweep, &err), &err);
        check(store_commit(s, &err), &err);
        int64_t took = clock_cpu_ns() - began;
        cpu += took;
        worst = i > 1 ? MAX(worst, took) : 0;
        allocs = i > 130 ? allocs + (int64_t)mem_total_allocs() - allocs_before : 0;
        if (i < plain_n) {
            plain_put(&wide, &sweep);
            plain_put(&narrow, &sweep);
        }
    }
    check(store_close(s, &err), &err);
    double samples = (double)n * o->procs, plain = (double)plain_n * o->procs;
    row("store, write", (double)cpu / 1e3 / samples, "us CPU/process-sample");
    row("store, longest commit", (double)worst / 1e6, "ms CPU");
    row("store, own allocations after warm-up", (double)allocs / (double)(n - 131), "/sweep");
    row("SQLite wide rows, write", (double)wide.cpu_ns / 1e3 / plain, "us CPU/process-sample");
    row("SQLite (series, ts, value), write", (double)narrow.cpu_ns / 1e3 / plain, "us CPU/process-sample");
    row("SQLite wide rows", (double)plain_close(&wide) / plain / VALUES, "bytes/value");
    row("SQLite (series, ts, value)", (double)plain_close(&narrow) / plain / VALUES, "bytes/value");
}

static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        int64_t n = 0;
        bool more = i + 1 < argc;
        if (str_eq(argv[i], "--out") && more)
            o->out = argv[++i];
        else if (argv[i][0] != '-')
            o->file = argv[i];
        else if (!more || units_int(argv[i + 1], strlen(argv[i + 1]), &n) || n < 1)
            return -1;
        else if (str_eq(argv[i], "--procs") && n <= PROCS_MAX)
            o->procs = (int)n, i++;
        else if (str_eq(argv[i], "--days") && n <= 366)
            o->days = (int)n, i++;
        else if (str_eq(argv[i], "--interval") && n <= 3600)
            o->interval = (int)n, i++;
        else
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.procs = 100, .days = 7, .interval = 30};
    char folder[64] = "/tmp/bench-store-XXXXXX", path[600];
    if (parse(argc, argv, &o)) {
        fprintf(stderr, "usage: bench-store [--procs N] [--days N] [--interval SECONDS] [--out FILE] | FILE\n");
        return 2;
    }
    if (o.file) {
        report(o.file);
        return 0;
    }
    if (!mkdtemp(folder))
        return 3;
    str_fmt(path, sizeof path, "%s", o.out ? o.out : "");
    if (!o.out)
        str_fmt(path, sizeof path, "%s/store.db", folder);
    run(&o, folder, path);
    report(path);
    static const char *const left[] = { "", "-watch", "-wal", "-shm" };
    for (size_t i = 0; !o.out && i < ARRAY_SIZE(left); i++) {
        str_fmt(path, sizeof path, "%s/store.db%s", folder, left[i]);
        unlink(path);
    }
    return rmdir(folder) == 0 ? 0 : 3;
}
