/* What lives tell: restarts, start values, growth inside each life. */
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

/* The newest lives of roots that have a first value of m, as start values in order. */
static size_t start_values(const struct series *s, enum metric_id m, double *x, double *y)
{
    size_t n = 0;

    for (size_t i = s->lives.n; i-- > 0 && n < THEIL_SEN_MAX;) {
        const struct series_life *l = series_life_at(s, i);

        if (!l->root || l->whole || l->samples < 3 || l->first[m] == METRIC_NA)
            continue;
        x[THEIL_SEN_MAX - 1 - n] = (double)l->start_ns / 1e9;
        y[THEIL_SEN_MAX - 1 - n] = (double)l->first[m];
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = x[THEIL_SEN_MAX - n + i];
        y[i] = y[THEIL_SEN_MAX - n + i];
    }
    return n;
}

/* Insertion sort by time: lives come nearly in order. */
static void sort_pairs(double *x, double *y, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double a = x[i], b = y[i];
        size_t j = i;

        for (; j > 0 && x[j - 1] > a; j--) {
            x[j] = x[j - 1];
            y[j] = y[j - 1];
        }
        x[j] = a;
        y[j] = b;
    }
}

/* methods.md 2.7: tau > 0.5, p < 0.05 and the Theil-Sen lower bound above zero, over at least four lives. */
void starts_measure(struct starts *st, const struct series *s, enum metric_id m)
{
    double x[THEIL_SEN_MAX], y[THEIL_SEN_MAX], slope;

    *st = (struct starts){ .p = 1, .first = (double)NAN, .last = (double)NAN, .slope_lo = (double)NAN };
    st->n = start_values(s, m, x, y);
    if (!st->n)
        return;
    sort_pairs(x, y, st->n);
    st->first = y[0];
    st->last = y[st->n - 1];
    if (st->n < 4)
        return;
    stats_kendall(y, st->n, &st->tau, &st->p);
    stats_theil_sen(x, y, st->n, &slope, &st->slope_lo);
    st->rising = st->tau > 0.5 && st->p < 0.05 && st->slope_lo > 0;
}

static int own_curve(struct curve *c, const struct series_life *l, enum metric_id m)
{
    if (!l->own || l->whole || !l->own->col[m].n)
        return -1;
    c->track = l->own;
    c->col = &l->own->col[m];
    c->from = 0;
    c->to = l->own->n;
    return 0;
}

/* Growth inside each life that keeps columns, after a quarter of it is cut as warm-up. */
void within_measure(struct within *in, const struct series *s, enum metric_id m, struct work *w)
{
    double rise[WORKERS_MAX], level[WORKERS_MAX], per_kreq[WORKERS_MAX], per_hour[WORKERS_MAX];
    bool memory = metrics[m].unit == METRIC_UNIT_BYTES;

    *in = (struct within){ .per_kreq.value = (double)NAN, .per_hour.value = (double)NAN };
    VEC_EACH(struct series_life, l, &s->lives) {
        struct curve c = { .quantum = memory ? 132 * 1024 : 1, .memory = memory };
        struct growth g;
        struct blocks b;

        if (in->lives >= WORKERS_MAX || own_curve(&c, l, m))
            continue;
        c.from = c.to / 4;
        growth_measure(&g, &b, &c, w, curve_x(&c, c.from) - curve_seconds(&c, 0, c.from + 1));
        if (!g.usable)
            continue;
        in->rising += g.halves_agree && g.slope.lo > 0 && g.rise > g.band && g.against_log <= 1;
        in->flat += fabs(g.rise) <= g.band;
        rise[in->lives] = g.rise;
        level[in->lives] = g.level;
        per_hour[in->lives] = g.slope.value * 3600;
        per_kreq[in->lives++] = g.rise / g.requests * 1000;
    }
    in->median_rise = stats_median(rise, in->lives);
    in->median_level = stats_median(level, in->lives);
    in->per_hour.value = stats_median(per_hour, in->lives);
    if (s->sum.req)
        in->per_kreq.value = stats_median(per_kreq, in->lives);
}
