/* The processes shown and what was seen of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/top/top.h"

void top_rows_init(struct top_rows *t)
{
    vec_init(&t->rows, sizeof(struct top_row), TOP_ROWS_MAX);
    map_init(&t->index, TOP_ROWS_MAX);
    t->note[0] = '\0';
}

void top_rows_release(struct top_rows *t)
{
    vec_release(&t->rows);
    map_release(&t->index);
}

void top_rows_clear(struct top_rows *t)
{
    vec_clear(&t->rows);
    map_clear(&t->index);
}

struct top_row *top_rows_find(const struct top_rows *t, int64_t life_id)
{
    uint64_t i;
    return map_get(&t->index, (uint64_t)life_id, &i) ? vec_at(&t->rows, i) : NULL;
}

struct top_row *top_rows_add(struct top_rows *t, int64_t life_id, const struct life_info *info, const char *target)
{
    struct top_row *r = vec_push(&t->rows);
    if (!r)
        return NULL;
    if (map_put(&t->index, (uint64_t)life_id, t->rows.n - 1)) {
        t->rows.n--;
        return NULL;
    }
    r->life_id = life_id;
    r->pid = info->key.pid;
    r->ts_ns = CLOCK_INVALID;
    r->first_anon = METRIC_NA;
    r->cpu_pct = NAN;
    for (int m = 0; m < METRIC_N; m++)
        r->v[m] = METRIC_NA;
    str_copy(r->target, sizeof r->target, target);
    str_copy(r->what, sizeof r->what, *info->role ? info->role : info->comm);
    str_printable(r->target); /* a selector as it was typed, and cut */
    str_printable(r->what);
    return r;
}

static void reindex(struct top_rows *t)
{
    map_clear(&t->index);
    for (size_t i = 0; i < t->rows.n; i++)
        map_put(&t->index, (uint64_t)((struct top_row *)vec_at(&t->rows, i))->life_id, i); /* fits: it held as many before */
}

void top_rows_remove(struct top_rows *t, int64_t life_id)
{
    uint64_t i;
    if (!map_get(&t->index, (uint64_t)life_id, &i))
        return;
    vec_remove_unordered(&t->rows, i);
    reindex(t);
}

static void remember(struct top_row *r, double anon)
{
    if (r->nhistory == TOP_HISTORY)
        memmove(r->history, r->history + 1, --r->nhistory * sizeof *r->history);
    r->history[r->nhistory++] = anon;
}

void top_row_sample(struct top_row *r, int64_t ts_ns, const int64_t v[METRIC_N])
{
    int64_t cpu = v[METRIC_CPU_NS], before = r->v[METRIC_CPU_NS], anon = v[METRIC_RSS_ANON];
    if (r->ts_ns != CLOCK_INVALID && ts_ns > r->ts_ns && cpu != METRIC_NA && before != METRIC_NA && cpu >= before)
        r->cpu_pct = 100.0 * (double)(cpu - before) / (double)(ts_ns - r->ts_ns);
    for (int m = 0; m < METRIC_N; m++)
        if (v[m] != METRIC_NA)
            r->v[m] = v[m]; /* what is read more rarely stays */
    if (r->first_anon == METRIC_NA)
        r->first_anon = anon;
    remember(r, anon == METRIC_NA ? NAN : (double)anon);
    r->ts_ns = ts_ns;
}

/* ---- order ---------------------------------------------------------------------------------------------------- */

static double sort_value(const struct top_row *r, enum top_order order)
{
    switch (order) {
    case TOP_BY_ANON: return (double)r->v[METRIC_RSS_ANON];
    case TOP_BY_GROWN: return (double)(r->v[METRIC_RSS_ANON] - r->first_anon);
    case TOP_BY_FDS: return (double)r->v[METRIC_FDS];
    case TOP_BY_CPU: return isnan(r->cpu_pct) ? -1 : r->cpu_pct;
    case TOP_BY_PID: return -(double)r->pid;
    case TOP_ORDER_N: break;
    }
    return 0;
}

/* Largest first; equal ones by pid, so that rows do not jump about. */
static int compare(const void *a, const void *b, void *order)
{
    const struct top_row *x = a, *y = b;
    double vx = sort_value(x, *(enum top_order *)order), vy = sort_value(y, *(enum top_order *)order);
    if (vx < vy || vx > vy)
        return vx < vy ? 1 : -1;
    return x->pid - y->pid;
}

void top_rows_sort(struct top_rows *t, enum top_order order)
{
    if (t->rows.n)
        qsort_r(t->rows.items, t->rows.n, sizeof(struct top_row), compare, &order);
    reindex(t);
}

const char *top_order_name(enum top_order order)
{
    static const char *const names[TOP_ORDER_N] = { "anon", "grown", "fds", "cpu", "pid" };
    return order < TOP_ORDER_N ? names[order] : "";
}
