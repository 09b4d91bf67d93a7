/* When there was traffic, and whether it kept its rate. From request counts, else from CPU time, else not known. */
#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/mem.h"

#define SLICES_MAX 60
#define TENTHS 10

/* Work done in equal slices of time. */
struct slices {
    size_t n;
    double width_s;
    double rate[SLICES_MAX]; /* per second; NaN where nothing is known */
};

double load_work(const struct series *s, enum load_source src, size_t from, size_t to)
{
    const double *v = src == LOAD_REQUESTS ? s->sum.req : s->sum.col[METRIC_CPU_NS].mid;
    double sum = 0;

    for (size_t i = from + 1; src != LOAD_NONE && i <= to; i++)
        sum += v[i] > v[i - 1] ? v[i] - v[i - 1] : 0; /* NaN: 0 as well; the stretch then has little weight */
    return sum;
}

static void slices_fill(struct slices *sl, const struct series *s, enum load_source src, size_t from, size_t to)
{
    const int64_t *t = s->sum.ts_ns;
    double span = (double)(t[to - 1] - t[from]) / 1e9, seen[SLICES_MAX] = { 0 };

    sl->width_s = span / (double)sl->n;
    for (size_t k = 0; k < sl->n; k++)
        sl->rate[k] = 0;
    for (size_t i = from + 1; i < to; i++) {
        double mid = ((double)(t[i] - t[from]) + (double)(t[i - 1] - t[from])) / 2e9;
        size_t k = MIN((size_t)(mid / span * (double)sl->n), sl->n - 1);

        sl->rate[k] += load_work(s, src, i - 1, i);
        seen[k] += (double)(t[i] - t[i - 1]) / 1e9;
    }
    for (size_t k = 0; k < sl->n; k++)
        sl->rate[k] = seen[k] > 0 ? sl->rate[k] / seen[k] : (double)NAN;
}

static size_t slice_count(const struct series *s, enum load_source src, size_t from, size_t to)
{
    double span = (double)(s->sum.ts_ns[to - 1] - s->sum.ts_ns[from]) / 1e9;
    size_t n = MIN((to - from) / 3, (size_t)SLICES_MAX);

    if (src == LOAD_REQUESTS && s->request_bin_s > 0)
        n = MIN(n, (size_t)(span / s->request_bin_s));
    return n;
}

/* First and last slice above a tenth of the usual rate (15 % for CPU: an idle process still ticks). */
static bool find_traffic(const struct slices *sl, enum load_source src, struct work *w, size_t *ret_a, size_t *ret_b)
{
    double limit;
    size_t n = 0;

    for (size_t k = 0; k < sl->n; k++)
        if (!isnan(sl->rate[k]))
            w->v[n++] = sl->rate[k];
    limit = stats_quantile(w->v, n, 0.75) * (src == LOAD_CPU ? 0.15 : 0.1);
    if (!(limit > 0))
        return false;
    *ret_a = 0;
    *ret_b = sl->n;
    while (*ret_a < sl->n && !(sl->rate[*ret_a] > limit))
        ++*ret_a;
    while (*ret_b > *ret_a && !(sl->rate[*ret_b - 1] > limit))
        --*ret_b;
    return *ret_b > *ret_a;
}

static size_t index_at(const struct series *s, size_t from, size_t to, double seconds)
{
    int64_t at = s->sum.ts_ns[from] + (int64_t)(seconds * 1e9);
    size_t lo = from, hi = to;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->sum.ts_ns[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Moves the ends inward or outward to the very point where the requests began and ended. */
static void sharpen(struct load *l, const struct series *s, size_t from, size_t to)
{
    const double *req = s->sum.req;

    if (l->source != LOAD_REQUESTS)
        return;
    while (l->from + 1 < l->to && !(req[l->from + 1] > req[l->from]))
        l->from++;
    while (l->from > from && req[l->from] > req[l->from - 1])
        l->from--;
    while (l->to > l->from + 2 && !(req[l->to - 1] > req[l->to - 2]))
        l->to--;
    while (l->to < to && req[l->to] > req[l->to - 1])
        l->to++;
}

/* Tenths of the traffic against their mean. The first and last may be cut by the begin and the end. */
static void judge_constancy(struct load *l, const struct series *s)
{
    struct slices sl = { .n = MIN((size_t)TENTHS, (l->to - l->from) / 3) };
    double mean = 0, half[2] = { 0 }, slack;
    size_t n = 0;

    if (l->source == LOAD_REQUESTS && s->request_bin_s > 0)
        sl.n = MIN(sl.n, (size_t)(l->seconds / s->request_bin_s));
    if (sl.n < 4)
        return;
    slices_fill(&sl, s, l->source, l->from, l->to);
    l->low = (double)INFINITY;
    for (size_t k = 1; k + 1 < sl.n; k++) {
        if (isnan(sl.rate[k]))
            continue;
        mean += (sl.rate[k] - mean) / (double)++n;
        l->low = MIN(l->low, sl.rate[k]);
        l->high = MAX(l->high, sl.rate[k]);
        if (k != sl.n / 2 || sl.n % 2 == 0)
            half[k >= sl.n / 2] += sl.rate[k];
    }
    if (!(mean > 0))
        return;
    l->per_s = mean;
    l->low /= mean;
    l->high /= mean;
    l->drift = half[0] > 0 ? half[1] / half[0] : (double)INFINITY;
    /* Few requests scatter by themselves: four standard deviations of a Poisson count are allowed on top. */
    slack = l->source == LOAD_REQUESTS ? 4 / sqrt(MAX(mean * sl.width_s, 1.0)) : 0.3;
    l->constant = l->low >= 0.5 - slack && l->high <= 1.6 + slack && l->drift >= 0.7 - slack / 2 && l->drift <= 1.4 + slack / 2;
}

/* Requests that stop being counted are not requests that stop: the processor would know. */
static bool still_working(const struct load *l, const struct series *s, size_t to)
{
    const struct column *cpu = &s->sum.col[METRIC_CPU_NS];
    double busy, tail;
    const int64_t *t = s->sum.ts_ns;

    if (l->source != LOAD_REQUESTS || !cpu->n || l->to + 1 >= to)
        return false;
    busy = load_work(s, LOAD_CPU, l->from, l->to - 1);
    tail = load_work(s, LOAD_CPU, l->to, to - 1);
    busy /= MAX((double)(t[l->to - 1] - t[l->from]) / 1e9, 1e-9);
    tail /= MAX((double)(t[to - 1] - t[l->to]) / 1e9, 1e-9);
    return busy > 0 && tail > 0.5 * busy;
}

static bool try_source(struct load *l, const struct series *s, enum load_source src, size_t from, size_t to, struct work *w)
{
    const int64_t *t = s->sum.ts_ns;
    struct slices sl = { .n = slice_count(s, src, from, to) };
    size_t a, b;
    double quiet;

    if (sl.n < 4)
        return false;
    slices_fill(&sl, s, src, from, to);
    if (!find_traffic(&sl, src, w, &a, &b))
        return false;
    l->source = src;
    l->from = index_at(s, from, to, (double)a * sl.width_s);
    l->to = b == sl.n ? to : index_at(s, from, to, (double)b * sl.width_s);
    sharpen(l, s, from, to);
    quiet = MAX(3 * s->interval_s, 0.5 * sl.width_s);
    l->head_s = (double)(t[l->from] - t[from]) / 1e9;
    l->tail_s = l->to < to ? (double)(t[to - 1] - t[l->to - 1]) / 1e9 : 0;
    if (l->head_s < quiet)
        l->head_s = 0;
    if (l->tail_s < quiet || still_working(l, s, to))
        l->tail_s = 0;
    return true;
}

void load_find(struct load *l, const struct series *s, size_t from, size_t to, struct work *w)
{
    const int64_t *t = s->sum.ts_ns;

    *l = (struct load){ .from = from, .to = to, .requests = (double)NAN, .drift = 1 };
    if (to < from + 2)
        return;
    if (!(s->sum.req && s->requests > 0 && try_source(l, s, LOAD_REQUESTS, from, to, w)) && s->sum.col[METRIC_CPU_NS].n)
        (void)try_source(l, s, LOAD_CPU, from, to, w);
    l->seconds = (double)(t[l->to - 1] - t[l->from]) / 1e9;
    if (l->source == LOAD_REQUESTS)
        l->requests = series_requests_between(&s->sum, l->from, l->to);
    if (l->source != LOAD_NONE)
        judge_constancy(l, s);
}
