/* --explain: every number that led to a verdict. */
#include "output/parts.h"

static void put_number(struct buf *out, const char *name, double v)
{
    if (!isnan(v))
        buf_printf(out, "    %-34s %.6g\n", name, v);
}

static void put_interval(struct buf *out, const char *name, struct interval i)
{
    if (!isnan(i.value))
        buf_printf(out, "    %-34s %.6g (90 %%: %.6g to %.6g)\n", name, i.value, i.lo, i.hi);
}

static void put_growth(struct buf *out, const struct finding *f)
{
    const struct growth *g = &f->growth;

    put_number(out, "judged for, s", g->seconds);
    put_number(out, "judged over, requests", g->requests);
    put_number(out, "floor at its begin", g->first);
    put_number(out, "floor at its end", g->last);
    put_number(out, "rise of the line", g->rise);
    put_number(out, "rise at the first half's pace", g->half[0]);
    put_number(out, "rise at the second half's pace", g->half[1]);
    for (int i = 0; i < 3; i++)
        put_number(out, (const char *[]){ "rise, first third", "rise, second third", "rise, last third" }[i], g->third[i]);
    put_number(out, "line's error over a logarithm's", g->against_log);
    put_number(out, "share explained by a line", g->r2);
    put_number(out, "deepest fall of the floor", g->drawdown);
    put_number(out, "quanta", g->quanta);
    put_number(out, "scatter around the line", g->noise);
    put_number(out, "band: what healthy runs do", g->band);
    put_number(out, "least rise that would have shown", g->visible);
}

static const char *low_traffic(const struct days *d)
{
    if (!d->low_traffic_known)
        return "its traffic is not known";
    return d->low_usable ? "traffic is low there" : "traffic is not low there";
}

static void put_days(struct buf *out, const struct finding *f)
{
    const struct days *d = &f->days;
    char when[CLOCK_TEXT_MAX];

    for (size_t i = 0; i < d->n; i++)
        buf_printf(out, "    24 h from %s          floor %.6g%s\n", clock_rfc3339(d->day[i].begin_ns / NS_PER_S * NS_PER_S, when), d->day[i].floor,
                   d->day[i].usable ? "" : " (not enough samples)");
    if (d->low_n)
        buf_printf(out, "    low window %02d:%02d-%02d:%02d, %s\n", d->low_from_min / 60, d->low_from_min % 60, d->low_to_min / 60,
                   d->low_to_min % 60, low_traffic(d));
    for (size_t i = 0; i < d->low_n; i++)
        buf_printf(out, "    low window of %s      floor %.6g\n", clock_rfc3339(d->low[i].begin_ns / NS_PER_S * NS_PER_S, when), d->low[i].floor);
}

static void put_evaluation(struct buf *out, const char *when, const struct evaluation *e)
{
    if (!e->usable)
        return;
    buf_printf(out, "    as of %s:\n", when);
    put_number(out, "half hours fitted", (double)e->bins);
    put_number(out, "score of the leak's part", e->score);
    put_number(out, "the same against every excuse", e->score_generous);
    put_number(out, "rise of the leak's part", e->rise);
    put_number(out, "per day at the end", e->per_day);
    put_number(out, "per request", e->per_request);
    put_number(out, "added in the last day", e->gain_last);
    put_number(out, "what the fit says it should have added", e->gain_fitted);
    put_number(out, "standard error of that", e->gain_noise);
    put_number(out, "share of the slope late in lives", e->late_in_life);
    put_number(out, "explained by load", e->load_part);
    put_number(out, "explained by excuses", e->excuse_part);
    put_number(out, "left over, sd", e->noise);
    put_number(out, "left over, autocorrelation", e->rho);
}

static void put_parts(struct buf *out, const struct decomposition *d)
{
    if (!d->usable)
        return;
    put_number(out, "lives taken apart", (double)d->lives);
    put_number(out, "median floor", d->level);
    put_evaluation(out, "now", &d->now);
    put_evaluation(out, "a day before", &d->day_before);
}

static void put_rest(struct buf *out, const struct finding *f)
{
    char when[CLOCK_TEXT_MAX];

    for (size_t i = 0; i < f->nsteps; i++)
        buf_printf(out, "    step at %s            %+.6g\n", clock_rfc3339(f->steps[i].at_ns / NS_PER_S * NS_PER_S, when), f->steps[i].delta);
    if (f->nsteps)
        put_number(out, "rise besides the steps", f->beside_steps);
    if (f->ebb.known) {
        put_number(out, "before the traffic", f->ebb.before);
        put_number(out, "as the traffic ended", f->ebb.peak);
        put_number(out, "in the quiet after it", f->ebb.after);
        put_number(out, "share that came back", f->ebb.returned);
    }
    if (f->starts.n >= 4) {
        put_number(out, "lives with a start value", (double)f->starts.n);
        put_number(out, "start values: Kendall's tau", f->starts.tau);
        put_number(out, "start values: p", f->starts.p);
    }
    if (f->within.lives) {
        put_number(out, "processes looked at by themselves", (double)f->within.lives);
        put_number(out, "of these rising", (double)f->within.rising);
        put_number(out, "median rise of these", f->within.median_rise);
    }
}

void put_explain(struct buf *out, const struct series_verdict *s)
{
    const struct finding *f = s->finding;

    buf_printf(out, "\n  %s (%s): %s, %s, %s\n    ", metrics[f->metric].name, metric_unit_name(metrics[f->metric].unit), verdict_name(s->verdict),
               class_name(s->class), s->shape);
    put_wrapped(out, s->reason, 4, 6);
    if (f->constant)
        return;
    put_number(out, "points", (double)f->in_use);
    put_number(out, "sampled share", f->coverage);
    put_number(out, "warm-up cut, share", f->warmup.share);
    put_number(out, "warm-up cut, s", f->warmup.seconds);
    put_number(out, "rise in the warm-up", f->warmup.rise);
    if (f->growth.usable)
        put_growth(out, f);
    put_interval(out, "per hour", f->per_hour);
    put_interval(out, "per 1,000 requests", f->per_kreq);
    put_number(out, "band per 1,000 requests", f->band_per_kreq);
    put_number(out, "rise of the root process alone", f->root_rise);
    put_days(out, f);
    put_parts(out, &f->parts);
    put_rest(out, f);
}
