/* Every judged metric of a series, one finding each. */
#include <string.h>

#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/clock.h"
#include "base/mem.h"

/* The smallest jump that counts. Allocators take memory in chunks of this size (glibc's brk step); files have none. */
static double quantum_of(const struct series *s, enum metric_id m, struct work *w)
{
    const struct column *err = &s->sum.col[METRIC_FD_KINDS_ERR];
    size_t n = 0;

    if (metrics[m].unit == METRIC_UNIT_BYTES)
        return m == METRIC_TMP_BYTES || m == METRIC_SHM_BYTES ? 4096 : 132 * 1024;
    if (m < METRIC_SOCKETS || m > METRIC_UNIX_SOCKETS || !err->n)
        return 1;
    /* Kinds of descriptors may be an estimate: its 90 % error is then the smallest thing to see. */
    for (size_t i = 0; i < s->sum.n; i++)
        if (!isnan(err->mid[i]))
            w->v[n++] = err->mid[i];
    return MAX(1.0, stats_quantile(w->v, n, 0.9));
}

static void measure_values(struct finding *f, const struct curve *c, struct work *w)
{
    size_t n = 0;
    double sum = 0;

    f->min = (double)INFINITY;
    f->max = -(double)INFINITY;
    for (size_t i = c->from; i < c->to; i++) {
        if (isnan(c->col->mid[i]))
            continue;
        f->min = MIN(f->min, c->col->floor[i]);
        f->max = MAX(f->max, c->col->max[i]);
        f->now = c->col->mid[i];
        sum += c->col->max[i];
        w->v[n++] = c->col->mid[i];
    }
    f->in_use = n;
    f->median = stats_median(w->v, n);
    f->all_zero = n && sum == 0 && f->max == 0;
    f->constant = n && f->min == f->max;
}

/* Share of the epoch that is not a hole: distances of more than five of the column's own intervals are holes. */
static double coverage(const struct finding *f, const struct curve *c)
{
    const int64_t *t = c->track->ts_ns;
    double span = curve_seconds(c, c->from, c->to), limit = 5 * f->interval_s, holes = 0;
    int64_t last = t[c->from];

    for (size_t i = c->from; i < c->to; i++) {
        double d;

        if (isnan(c->col->mid[i]) && i + 1 < c->to)
            continue;
        d = (double)(t[i] - last) / 1e9;
        if (d > limit)
            holes += d - f->interval_s;
        last = t[i];
    }
    return span > 0 ? 1 - holes / span : 1;
}

static double own_interval(const struct curve *c, struct work *w)
{
    const int64_t *t = c->track->ts_ns;
    int64_t last = CLOCK_INVALID;
    size_t n = 0;

    for (size_t i = c->from; i < c->to; i++) {
        if (isnan(c->col->mid[i]))
            continue;
        if (last != CLOCK_INVALID)
            w->v[n++] = (double)(t[i] - last) / 1e9;
        last = t[i];
    }
    return n ? stats_median(w->v, n) : 0;
}

static void rates(struct finding *f)
{
    const struct growth *g = &f->growth;
    double hour = 3600.0, scale;

    f->per_hour = f->per_kreq = (struct interval){ (double)NAN, (double)NAN, (double)NAN };
    f->band_per_kreq = (double)NAN;
    if (!g->usable)
        return;
    scale = f->blocks.by_requests ? hour * g->x_span / MAX(g->seconds, 1e-9) : hour;
    f->per_hour = (struct interval){ g->slope.value * scale, g->slope.lo * scale, g->slope.hi * scale };
    if (isnan(g->requests) || !(g->requests > 0))
        return;
    scale = f->blocks.by_requests ? 1000 : 1000 * g->x_span / g->requests;
    f->per_kreq = (struct interval){ g->slope.value * scale, g->slope.lo * scale, g->slope.hi * scale };
    f->band_per_kreq = g->band / g->requests * 1000;
}

/* Requests are the better clock as long as there are enough of them to tell blocks apart. */
static bool by_requests(const struct load *l)
{
    return l->source == LOAD_REQUESTS && l->requests >= 50;
}

static void measure_growth(struct finding *f, const struct series *s, struct curve *c, struct work *w)
{
    struct curve all = *c;
    double before = (double)NAN, x_begin;

    c->from = f->load.from;
    c->to = f->load.to;
    c->by_requests = by_requests(&f->load);
    if (f->load.head_s > 0)
        before = curve_floor(&all, w, all.from, f->load.from + 1, 0.25);
    x_begin = curve_x(c, c->from);
    warmup_find(&f->warmup, c, w, c->memory ? 1.0 / 8 : 1.0 / 16, &c->from);
    if (!c->by_requests)
        x_begin = -f->warmup.seconds; /* seconds count from c->from, which has moved */
    growth_measure(&f->growth, &f->blocks, c, w, x_begin);
    steps_find(f, s, c, w);
    if (isnan(before) && f->growth.usable)
        before = f->growth.first - MAX(f->warmup.rise, 0.0);
    ebb_look(&f->ebb, &all, w, &f->load, f->load.to, before);
    rates(f);
}

/* The load is that of the epoch, the same for every metric: it is looked at once for each. */
static struct load load_of(const struct analysis *a, size_t from, size_t to, struct work *w)
{
    struct load l;

    for (size_t i = a->n; i-- > 0;)
        if (a->finding[i].from == from && a->finding[i].to == to)
            return a->finding[i].load;
    load_find(&l, a->series, from, to, w);
    return l;
}

/* Over days the steps are those that the decomposition took out. */
static void steps_of_days(struct finding *f)
{
    const struct decomposition *d = &f->parts;

    if (!d->usable || d->hours < 47.5)
        return;
    f->nsteps = d->nsteps;
    memcpy(f->steps, d->steps, sizeof f->steps);
}

static void look_at(struct finding *f, const struct analysis *a, enum metric_id m, struct work *w, struct apart *apart)
{
    const struct series *s = a->series;
    bool target = metrics[m].scope == METRIC_SCOPE_T;
    const struct series_epoch *e = s->epochs.n ? series_epoch_at(s, a->epoch) : NULL;
    struct curve c = { .track = &s->sum, .col = &s->sum.col[m], .to = s->sum.n };

    f->metric = m;
    f->n = c.col->n;
    c.memory = metrics[m].unit == METRIC_UNIT_BYTES;
    c.quantum = quantum_of(s, m, w);
    if (e && !target) {
        c.from = e->from;
        c.to = e->to;
    }
    f->from = c.from;
    f->to = c.to;
    measure_values(f, &c, w);
    f->interval_s = own_interval(&c, w);
    f->coverage = c.to > c.from ? coverage(f, &c) : 0;
    f->load = load_of(a, c.from, c.to, w);
    if (!a->options.steady)
        days_measure(&f->days, s, &c, w, a->options.utc_offset_ns);
    if (!a->options.steady && c.memory)
        decompose(&f->parts, apart, s, &c, w);
    starts_measure(&f->starts, s, m, w);
    within_measure(&f->within, s, m, c.quantum, w);
    if (c.to > c.from + 1)
        measure_growth(f, s, &c, w);
    steps_of_days(f);
    f->root_rise = target ? (double)NAN : root_rise(s, m, f->growth.from, f->growth.to, w);
}

/* Share of the window that lies in recorded gaps or in holes of the grid. */
static double gap_share(const struct series *s)
{
    double hole = 0, span = (double)(s->to_ns - s->from_ns);
    int64_t limit = (int64_t)(5e9 * s->interval_s);

    for (size_t i = 1; i < s->sum.n; i++)
        if (s->sum.ts_ns[i] - s->sum.ts_ns[i - 1] > limit)
            hole += (double)(s->sum.ts_ns[i] - s->sum.ts_ns[i - 1]);
    return span > 0 ? hole / span : 0;
}

static enum metric_id memory_metric(const struct series *s)
{
    return s->sum.col[METRIC_RSS_ANON].n ? METRIC_RSS_ANON : METRIC_RSS;
}

int analysis_run(struct analysis **ret, const struct series *s, const struct analysis_options *options)
{
    _cleanup_analysis_ struct analysis *a = mem_zalloc(1, sizeof *a);
    _cleanup_mem_ struct work *w = mem_alloc(sizeof *w);
    _cleanup_mem_ struct apart *apart = options->steady ? NULL : apart_new();

    if (!a || !w || (!options->steady && !apart))
        return LT_ENOMEM;
    a->series = s;
    a->options = *options;
    a->epoch = epoch_choose(s);
    a->gap_share = gap_share(s);
    restarts_find(a);
    starts_measure(&a->starts, s, memory_metric(s), w);
    for (int m = 0; m < METRIC_N; m++) {
        if (!s->sum.col[m].n || metrics[m].judge == METRIC_JUDGE_NONE || (options->metrics && !(options->metrics >> m & 1)))
            continue;
        look_at(&a->finding[a->n], a, (enum metric_id)m, w, apart);
        a->n++;
    }
    *ret = TAKE_PTR(a);
    return 0;
}

void analysis_free(struct analysis *a)
{
    mem_free(a);
}

const struct finding *analysis_find(const struct analysis *a, enum metric_id m)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->finding[i].metric == m)
            return &a->finding[i];
    return NULL;
}
