/* What lives tell: restarts, start values, growth inside each life. */
#include <stdlib.h>

#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/clock.h"
#include "base/mem.h"

/* The last epoch when it is at least half as long as the longest, else the longest. */
size_t epoch_choose(const struct series *s)
{
    size_t best = 0, longest = 0;

    for (size_t i = 0; i < s->epochs.n; i++) {
        const struct series_epoch *e = series_epoch_at(s, i);

        if (e->to - e->from >= longest) {
            longest = e->to - e->from;
            best = i;
        }
    }
    if (s->epochs.n) {
        const struct series_epoch *last = series_epoch_at(s, s->epochs.n - 1);

        if ((last->to - last->from) * 2 >= longest)
            best = s->epochs.n - 1;
    }
    return best;
}

/* Runs of at least three lives that each lasted less than a twentieth of the window (methods.md: "Restarts hide"). */
void restarts_find(struct analysis *a)
{
    const struct series *s = a->series;
    int64_t window = s->to_ns - s->from_ns;
    struct dense run = { 0 };

    a->restarts = s->epochs.n > 1 ? s->epochs.n - 1 : 0;
    for (size_t i = 0; i <= s->epochs.n; i++) {
        const struct series_epoch *e = i < s->epochs.n ? series_epoch_at(s, i) : NULL;
        int64_t from = e ? s->sum.ts_ns[e->from] : 0, to = e ? s->sum.ts_ns[e->to - 1] : 0;

        if (e && (to - from) * 20 < window) {
            if (!run.n++)
                run.from_ns = from;
            run.to_ns = to;
            continue;
        }
        if (run.n >= 3 && a->ndense < DENSE_MAX)
            a->dense[a->ndense++] = run;
        run.n = 0;
    }
}

static size_t index_at(const struct series *s, int64_t ts)
{
    size_t lo = 0, hi = s->sum.n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->sum.ts_ns[mid] < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct start { double at, floor, rate; };

/* The floor of a life's first three hours, or of its first tenth when that is shorter. What belongs to the whole target is read
 * seldom, and what is read first may be from before: there it is the median of the first third. */
static bool start_of(const struct series *s, const struct series_life *l, enum metric_id m, struct work *w, struct start *ret)
{
    bool target = metrics[m].scope == METRIC_SCOPE_T;
    int64_t length = MIN((l->last_ns - l->first_ns) / (target ? 3 : 10), 3 * 3600 * NS_PER_S);
    struct curve c = { .track = &s->sum, .col = &s->sum.col[m] };

    if (!l->root || l->whole || l->samples < 3 || l->first_ns == CLOCK_INVALID || l->first_ns < s->from_ns || !c.col->n)
        return false;
    c.from = index_at(s, l->first_ns);
    c.to = MIN(MAX(index_at(s, l->first_ns + length), c.from + 3), s->sum.n);
    if (c.to <= c.from)
        return false;
    ret->at = (double)l->start_ns / 1e9;
    ret->floor = target ? curve_median(&c, w, c.from, c.to) : curve_floor(&c, w, c.from, c.to, 0.1);
    ret->rate = series_requests_between(&s->sum, c.from, c.to) / MAX(curve_seconds(&c, c.from, c.to), 1e-9);
    return !isnan(ret->floor);
}

static int by_start(const void *a, const void *b)
{
    const struct start *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* The newest lives' starts, in order of time. */
static size_t find_starts(const struct series *s, enum metric_id m, struct work *w, struct start *ret)
{
    size_t n = 0;

    for (size_t i = s->lives.n; i-- > 0 && n < THEIL_SEN_MAX;)
        n += start_of(s, series_life_at(s, i), m, w, &ret[n]);
    qsort(ret, n, sizeof *ret, by_start);
    return n;
}

static int by_rate(const void *a, const void *b)
{
    const struct start *x = a, *y = b;

    return (x->rate > y->rate) - (x->rate < y->rate);
}

/* Starts at ever busier hours begin ever higher without any leak: then traffic tells as much as the order does. */
static bool traffic_explains(const struct start *in_order, size_t n, double tau_of_order)
{
    struct start st[THEIL_SEN_MAX];
    double v[THEIL_SEN_MAX], of_order, of_floor, p, least = (double)INFINITY, most = 0;

    if (isnan(in_order[0].rate))
        return false;
    for (size_t i = 0; i < n; i++) {
        st[i] = in_order[i];
        v[i] = st[i].rate;
        least = MIN(least, v[i]);
        most = MAX(most, v[i]);
    }
    if (most < 1.25 * least)
        return false;
    stats_kendall(v, n, &of_order, &p);
    qsort(st, n, sizeof *st, by_rate);
    for (size_t i = 0; i < n; i++)
        v[i] = st[i].floor;
    stats_kendall(v, n, &of_floor, &p);
    return of_order > 0.2 || of_floor > MIN(0.5, tau_of_order - 0.3);
}

/* One jump, flat before and after it, is a change that came with a restart, not growth from restart to restart. */
static bool one_jump(const double *y, size_t n)
{
    double most = 0;

    for (size_t i = 1; i < n; i++)
        most = MAX(most, y[i] - y[i - 1]);
    return most > 0.7 * (y[n - 1] - y[0]);
}

/* methods.md 2.7: Kendall's tau and p, and the Theil-Sen lower bound above zero, over at least four lives. tau > 0.7 here,
 * since starts at odd hours make 0.6; p < 0.01 where there are enough lives for it. */
void starts_measure(struct starts *ret, const struct series *s, enum metric_id m, struct work *w)
{
    struct start st[THEIL_SEN_MAX];
    double x[THEIL_SEN_MAX], y[THEIL_SEN_MAX], slope;

    *ret = (struct starts){ .p = 1, .first = (double)NAN, .last = (double)NAN, .slope_lo = (double)NAN };
    ret->n = find_starts(s, m, w, st);
    if (!ret->n)
        return;
    ret->first = st[0].floor;
    ret->last = st[ret->n - 1].floor;
    ret->traffic_known = !isnan(st[0].rate);
    if (ret->n < 4)
        return;
    for (size_t i = 0; i < ret->n; i++) {
        x[i] = st[i].at;
        y[i] = st[i].floor;
    }
    stats_kendall(y, ret->n, &ret->tau, &ret->p);
    stats_theil_sen(x, y, ret->n, &slope, &ret->slope_lo);
    ret->rising = ret->tau > 0.7 && ret->p < (ret->n < 6 ? 0.05 : 0.01) && ret->slope_lo > 0 && !one_jump(y, ret->n);
    /* What lies outside the process does not follow its traffic. */
    if (metrics[m].scope == METRIC_SCOPE_P && traffic_explains(st, ret->n, ret->tau))
        ret->rising = false;
}

static bool own_curve(struct curve *c, const struct series_life *l, enum metric_id m)
{
    if (!l->own || l->whole || !l->own->col[m].n)
        return false;
    c->track = l->own;
    c->col = &l->own->col[m];
    c->from = 0;
    c->to = l->own->n;
    return true;
}

/* Memory: halves that agree, no logarithm. Counts: monotone, on a line, not dying away. Both: beyond what healthy lives do. */
static bool rises(const struct growth *g, bool memory)
{
    if (!(g->slope.lo > 0) || g->last - g->first <= g->band)
        return false;
    if (memory)
        return g->halves_agree && g->against_log <= 1;
    return g->monotone && g->r2 >= 0.9 && g->half[0] > 0 && g->half[1] >= 0.5 * g->half[0];
}

/* Less than that: a service on a busy machine starts late, drains at its end, and loses descriptors in between. */
static bool may_rise(const struct growth *g)
{
    double rise = g->last - g->first;

    return rise >= 10 * g->quantum && rise > g->band && g->drawdown <= 0.25 * rise && g->late >= 0.25 * rise;
}

static size_t count_workers(const struct series *s, enum metric_id m)
{
    struct curve c;
    size_t n = 0;

    VEC_EACH(struct series_life, l, &s->lives)
        n += !l->root && own_curve(&c, l, m);
    return n;
}

/* A worker's work is its own processor time: the target's requests are not shared out evenly. NULL when not known. */
static const double *work_of(const struct series_life *l)
{
    const struct column *cpu = &l->own->col[METRIC_CPU_NS];

    if (cpu->n != l->own->n)
        return NULL;
    for (size_t i = 1; i < l->own->n; i++)
        if (cpu->mid[i] < cpu->mid[i - 1])
            return NULL;
    return cpu->mid;
}

/* Growth of one life over its work, else over time, after a quarter (counts: a tenth) of it is cut as warm-up. */
static bool measure_life(struct growth *g, struct curve *c, const struct series_life *l, struct work *w)
{
    struct track own = *l->own;
    struct blocks b;
    double begin;

    if (l->end.cause != LIFE_RUNNING)
        c->to -= MIN(c->to, MAX(c->to / 16, (size_t)2)); /* closing down is not part of the growth */
    own.req = work_of(l);
    c->track = &own;
    c->by_requests = c->by_points = own.req != NULL;
    c->from = c->to / (c->memory ? 4 : 10);
    begin = own.req ? own.req[0] : -curve_seconds(c, 0, c->from + 1);
    growth_measure(g, &b, c, w, begin);
    c->track = l->own; /* ours ends here */
    return g->usable;
}

void within_measure(struct within *in, const struct series *s, enum metric_id m, double quantum, struct work *w)
{
    double rise[WORKERS_MAX], total = 0, seconds = (double)(s->to_ns - s->from_ns) / 1e9;
    bool memory = metrics[m].unit == METRIC_UNIT_BYTES, workers = count_workers(s, m) >= 3;

    *in = (struct within){ .per_kreq = (double)NAN };
    VEC_EACH(struct series_life, l, &s->lives) {
        struct curve c = { .quantum = quantum, .memory = memory };
        struct growth g;

        if (in->lives >= WORKERS_MAX || l->root == workers || !own_curve(&c, l, m) || !measure_life(&g, &c, l, w))
            continue;
        if (rises(&g, memory)) {
            rise[in->rising++] = g.last - g.first;
            in->replaced += l->own->ts_ns + l->own->n + 2 < s->sum.ts_ns + s->sum.n;
        }
        in->maybe += !memory && (rises(&g, memory) || may_rise(&g));
        in->calm += g.slope.lo * g.x_span <= g.band && g.visible <= 0.3 * g.level + 10 * quantum;
        total += g.rise * (double)l->own->n / (double)(c.to - c.from);
        in->lives++;
    }
    in->median_rise = stats_median(rise, in->rising);
    in->per_hour = seconds > 0 ? total / seconds * 3600 : (double)NAN;
    in->per_kreq = s->requests > 0 ? total / s->requests * 1000 : (double)NAN;
}

/* The one root that lives through [from, to) of the grid: what it alone gained there. */
double root_rise(const struct series *s, enum metric_id m, size_t from, size_t to, struct work *w)
{
    size_t edge = MAX((to - from) / 12, (size_t)3);
    double rise = (double)NAN;

    if (to < from + 2 * edge)
        return rise;
    VEC_EACH(struct series_life, l, &s->lives) {
        struct curve c;
        size_t base;

        if (!l->root || !own_curve(&c, l, m))
            continue;
        base = (size_t)(l->own->ts_ns - s->sum.ts_ns);
        if (base > from || base + l->own->n < to)
            continue;
        if (!isnan(rise))
            return (double)NAN; /* several roots: none of them is the process itself */
        rise = curve_floor(&c, w, to - edge - base, to - base, 0.1) - curve_floor(&c, w, from - base, from + edge - base, 0.1);
    }
    return rise;
}
