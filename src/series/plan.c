/* The grid, who the roots are, epochs, and which lives keep columns of their own. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "series/parts.h"

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Sorted, without duplicates, at most SERIES_POINTS_MAX: every k-th moment begins a bin. */
static void make_grid(struct series *s)
{
    int64_t *t = s->times.items;
    size_t n = 0, kept = 0;

    if (s->times.n)
        qsort(t, s->times.n, sizeof *t, by_time);
    for (size_t i = 0; i < s->times.n; i++)
        if (!n || t[i] != t[n - 1])
            t[n++] = t[i];
    s->grid_step = n ? (n + SERIES_POINTS_MAX - 1) / SERIES_POINTS_MAX : 1;
    for (size_t i = 0; i < n; i += s->grid_step)
        t[kept++] = t[i];
    s->times.n = kept;
    s->sum.n = kept;
    s->sum.ts_ns = t;
}

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median distance of neighbours, over at most 1,001 of them spread over the grid. */
static double median_interval(const struct series *s)
{
    double d[1001];
    const int64_t *t = s->sum.ts_ns;
    size_t n = 0, step = s->sum.n / ARRAY_SIZE(d) + 1;

    for (size_t i = 1; i < s->sum.n && n < ARRAY_SIZE(d); i += step)
        d[n++] = (double)(t[i] - t[i - 1]) / 1e9;
    if (!n)
        return 0;
    qsort(d, n, sizeof *d, by_double);
    return d[n / 2];
}

size_t grid_index(const struct series *s, int64_t ts_ns)
{
    const int64_t *t = s->sum.ts_ns;
    size_t lo = 0, hi = s->sum.n;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (t[mid] <= ts_ns)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* ---- roots ---------------------------------------------------------------------------------------------------- */

struct by_pid { int32_t pid; size_t life; };

static int by_pid(const void *a, const void *b)
{
    const struct by_pid *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool sampled(const struct series_life *l)
{
    return l->first_ns != CLOCK_INVALID && l->last_ns != CLOCK_INVALID;
}

/* Whether one of the lives with pid l->ppid was there when l began. */
static bool has_parent(const struct series *s, const struct by_pid *idx, size_t n, const struct series_life *l)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (idx[mid].pid < l->ppid)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n && idx[lo].pid == l->ppid; lo++) {
        const struct series_life *p = series_life_at(s, idx[lo].life);

        if (p != l && p->start_ns <= l->start_ns && (!sampled(p) || p->last_ns >= l->first_ns - 60 * NS_PER_S))
            return true;
    }
    return false;
}

/* The row of the target as a whole counts as a root only where there is nothing else (a curve without processes). */
static int find_roots(struct series *s)
{
    _cleanup_mem_ struct by_pid *idx = mem_alloc((s->lives.n + 1) * sizeof *idx);
    size_t n = 0;

    if (!idx)
        return LT_ENOMEM;
    for (size_t i = 0; i < s->lives.n; i++)
        if (!series_life_at(s, i)->whole)
            idx[n++] = (struct by_pid){ series_life_at(s, i)->key.pid, i };
    qsort(idx, n, sizeof *idx, by_pid);
    VEC_EACH(struct series_life, l, &s->lives)
        l->root = l->whole ? n == 0 : l->ppid <= 0 || !has_parent(s, idx, n, l);
    return 0;
}

/* ---- epochs --------------------------------------------------------------------------------------------------- */

struct span { size_t from, to; };

static int by_length_down(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    size_t nx = x->to - x->from, ny = y->to - y->from;

    return (nx < ny) - (nx > ny);
}

/* A root that comes and goes within the life of one five times as long is a passing process, not a restart. */
static bool passing(const struct span *spans, size_t n, struct span sp)
{
    for (size_t i = 0; i < n && i < 64; i++)
        if (spans[i].from <= sp.from && spans[i].to >= sp.to && (sp.to - sp.from) * 5 < spans[i].to - spans[i].from)
            return true;
    return false;
}

struct mark { size_t at; int change; };

static int by_mark(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

static int cut_epochs(struct series *s, struct mark *marks, size_t n)
{
    int roots = 0;

    qsort(marks, n, sizeof *marks, by_mark);
    for (size_t i = 0; i < n;) {
        size_t at = marks[i].at, j = i;
        struct series_epoch e;

        for (; j < n && marks[j].at == at; j++)
            roots += marks[j].change;
        if (roots > 0 && j < n) {
            e = (struct series_epoch){ at, marks[j].at, (size_t)roots };
            if (s->epochs.n < s->epochs.max && vec_append(&s->epochs, &e))
                return LT_ENOMEM;
        }
        i = j;
    }
    return 0;
}

static int find_epochs(struct series *s)
{
    _cleanup_mem_ struct span *spans = mem_alloc((s->lives.n + 1) * sizeof *spans);
    _cleanup_mem_ struct mark *marks = mem_alloc((2 * s->lives.n + 1) * sizeof *marks);
    size_t n = 0, nmarks = 0;

    if (!spans || !marks)
        return LT_ENOMEM;
    VEC_EACH(struct series_life, l, &s->lives) {
        if (!l->root || !sampled(l) || l->last_ns < s->sum.ts_ns[0] || l->first_ns > s->sum.ts_ns[s->sum.n - 1])
            continue;
        spans[n++] = (struct span){ grid_index(s, l->first_ns), grid_index(s, l->last_ns) + 1 };
    }
    qsort(spans, n, sizeof *spans, by_length_down);
    for (size_t i = 0; i < n; i++) {
        if (passing(spans, n, spans[i]))
            continue;
        marks[nmarks++] = (struct mark){ spans[i].from, 1 };
        marks[nmarks++] = (struct mark){ spans[i].to, -1 };
    }
    return cut_epochs(s, marks, nmarks);
}

/* ---- what the sums hold ---------------------------------------------------------------------------------------- */

/* A process that comes and goes is not part of what the target keeps, and while it is being started it is a copy of its
 * parent, descriptors, memory and all. The sum holds the roots, what lasts a tenth of the window, and what is still there
 * at the end. */
static void choose_summed(struct series *s)
{
    int64_t first = s->sum.ts_ns[0], last = s->sum.ts_ns[s->sum.n - 1];

    VEC_EACH(struct series_life, l, &s->lives)
        l->summed = l->root || l->whole
                 || (sampled(l) && (l->last_ns - l->first_ns >= (last - first) / 10 || last - l->last_ns <= (int64_t)(2e9 * s->interval_s)));
}

/* ---- lives with columns of their own -------------------------------------------------------------------------- */

struct candidate { size_t life, from, to; };

static int by_points_down(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    size_t nx = x->to - x->from, ny = y->to - y->from;

    return nx == ny ? (x->life > y->life) - (x->life < y->life) : (nx < ny) - (nx > ny);
}

static int give_own(struct series *s, const struct candidate *c)
{
    struct series_life *l = series_life_at(s, c->life);

    l->own = mem_zalloc(1, sizeof *l->own);
    if (!l->own)
        return LT_ENOMEM;
    l->own->n = c->to - c->from;
    l->own->ts_ns = s->sum.ts_ns + c->from;
    return 0;
}

/* The longest lives, when there is more than one: of a single process the sum tells all. */
static int choose_own(struct series *s)
{
    _cleanup_mem_ struct candidate *c = mem_alloc((s->lives.n + 1) * sizeof *c);
    size_t n = 0, points = 0;
    int r = 0;

    if (!c)
        return LT_ENOMEM;
    for (size_t i = 0; i < s->lives.n; i++) {
        const struct series_life *l = series_life_at(s, i);

        if (l->whole || !sampled(l) || l->last_ns < s->sum.ts_ns[0] || l->first_ns > s->sum.ts_ns[s->sum.n - 1])
            continue;
        c[n++] = (struct candidate){ i, grid_index(s, l->first_ns), grid_index(s, l->last_ns) + 1 };
    }
    if (n < 2)
        return 0;
    qsort(c, n, sizeof *c, by_points_down);
    for (size_t i = 0; i < n && i < SERIES_OWN_MAX && !r; i++) {
        points += c[i].to - c[i].from;
        if (c[i].to - c[i].from < SERIES_OWN_MIN_POINTS || points > OWN_POINTS_MAX)
            break;
        r = give_own(s, &c[i]);
    }
    return r;
}

int series_plan(struct series *s)
{
    int r;

    make_grid(s);
    if (!s->sum.n)
        return LT_ENODATA;
    s->interval_s = median_interval(s);
    s->gather = mem_alloc(METRIC_N * GATHER_MAX * sizeof *s->gather);
    if (!s->gather)
        return LT_ENOMEM;
    r = find_roots(s);
    if (!r)
        r = find_epochs(s);
    choose_summed(s);
    return r ? r : choose_own(s);
}
