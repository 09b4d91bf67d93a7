/* What the store's tests share: a made-up host whose values are known for every life and time, and its reading back. */
#ifndef LT_STORE_TEST_KIT_H
#define LT_STORE_TEST_KIT_H

#include <stdio.h>

#include "base/base.h"
#include "lib/harness.h"
#include "store/store.h"

#define T0 (INT64_C(1700000000) * NS_PER_S)
#define STEP (30 * NS_PER_S)

/* A value that anybody can compute: of life `id`'s metric m at sample i. Mixes constant, slowly growing, noisy, page-sized,
 * counting and missing columns. */
static inline int64_t truth(int64_t id, int m, int64_t i)
{
    uint64_t h = (uint64_t)(id * 1000003 + m * 7919 + i) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    switch (m % 8) {
    case 0: return (100000 + id * 10 + i / 3 + (int64_t)(h % 7)) * 4096;
    case 1: return 5;
    case 2: return 0;
    case 3: return 20 + (h % 50 == 0);
    case 4: return i * 10000000 * (1 + m) + (int64_t)(h % 3) * 10000000;
    case 5: return METRIC_NA;
    case 6: return (i + id) % 10 ? METRIC_NA : (int64_t)(h % 1000);
    default: return (int64_t)(h % 100000);
    }
}

static inline void truth_row(struct sample *row, int64_t id, int64_t i)
{
    row->life_id = id;
    for (int m = 0; m < METRIC_N; m++)
        row->v[m] = truth(id, m, i);
}

static inline struct life_info test_life(int64_t target, int32_t pid)
{
    struct life_info info = {.key = {.boot_id = {1, 2, 3}, .pid = pid, .start = (uint64_t)pid * 100}, .ppid = 1,
                             .target_id = target, .start_wall_ns = T0 - NS_PER_S};
    str_copy(info.comm, sizeof info.comm, "python3");
    str_copy(info.role, sizeof info.role, "uvicorn app:app");
    return info;
}

#define OK(call) test_ok((call), &err, #call, __FILE__, __LINE__)
static inline void test_ok(int rc, const struct err *err, const char *what, const char *file, int line)
{
    if (rc)
        fprintf(stderr, "%s: %s: %s\n", what, err_name(rc), err->code ? err->text : "");
    _assert_int_equal((unsigned long long)rc, 0, file, line);
}

static inline const char *test_path(const char *name)
{
    static char path[600];
    str_fmt(path, sizeof path, "%s/%s", harness_tmpdir(), name);
    return path;
}

/* Puts sweep i of `n` lives with these ids and commits it. */
static inline int put_sweep_at(struct store *s, const int64_t *ids, size_t n, int64_t i, struct err *err)
{
    static struct sample rows[2048];
    for (size_t k = 0; k < n; k++)
        truth_row(&rows[k], ids[k], i);
    struct sweep sweep = {.wall_ns = T0 + i * STEP, .n = n, .rows = rows};
    return store_put_sweep(s, &sweep, err);
}

/* Compares raw points of a life with the truth; counts them. */
struct check { int64_t id, next, n; bool holes; };
static inline int check_point(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    struct check *c = ctx;
    int64_t i = (p->ts_ns - T0) / STEP;
    assert_true(p->bin_ns == 0 && p->n == 1 && (p->ts_ns - T0) % STEP == 0);
    if (c->holes)
        assert_true(i >= c->next);
    else
        assert_int_equal(i, c->next);
    c->next = i + 1;
    c->n++;
    for (int m = 0; m < METRIC_N; m++) {
        int64_t t = truth(c->id, m, i);
        if (v[m].first != t)
            fprintf(stderr, "life %lld sample %lld %s: %lld is not %lld\n", (long long)c->id, (long long)i, metrics[m].name,
                    (long long)v[m].first, (long long)t);
        assert_true(v[m].first == t && v[m].last == t && v[m].min == t && v[m].p10 == t && v[m].max == t);
    }
    return 0;
}

static inline void print_line(void *ctx, const char *line)
{
    (void)ctx;
    fprintf(stderr, "verify: %s\n", line);
}

#endif
