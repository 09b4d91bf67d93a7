/* Counts: descriptors, threads, children, files. Untouched by allocators and collectors, so they are decided within one
 * run: whole things per request, ten at least, in every third of the run, hardly ever falling back, still rising at
 * the end (a pool that fills stops), and not gone when the traffic ends. */
#include "verdict/parts.h"

#define QUANTA_MIN 10
#define REQUESTS_MIN 100

/* How the floors went, in the words the rules below use. */
struct course {
    double rise;    /* of the floors, begin to end */
    double unit;    /* smallest thing to see */
    bool monotone, even;
    bool stopped;   /* the last third adds nothing */
};

static struct course course_of(const struct finding *f)
{
    const struct growth *g = &f->growth;
    struct course c = { .rise = g->last - g->first, .unit = g->quantum, .monotone = g->monotone, .even = g->even };

    c.stopped = g->third[2] <= MAX(c.unit, 0.15 * c.rise / 3);
    return c;
}

static void say_flat(struct series_verdict *v, const struct course *c)
{
    const struct finding *f = v->finding;
    const char *name = metrics[f->metric].name;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], n[UNITS_TEXT_MAX];

    if (f->warmup.rise > f->growth.band && c->rise <= f->growth.band)
        say(v, VERDICT_BOUNDED, CLASS_BOUNDED, "rises, then flat", "%s: rose by %s at the start and stayed at %s for %s", name,
            amount(f, f->warmup.rise, a), amount(f, f->growth.last, b), extent(f, n));
    else
        say(v, VERDICT_OK, CLASS_FLAT, f->max - f->min > 2 ? "goes up and down" : "flat", "%s: its floor stayed at %s over %s", name,
            amount(f, f->growth.last, b), extent(f, n));
}

static bool came_back(struct series_verdict *v, const struct course *c)
{
    const struct finding *f = v->finding;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

    if (!f->ebb.known || !(f->ebb.returned >= 0.5) || f->ebb.peak - f->ebb.before <= c->unit)
        return false;
    say(v, VERDICT_OK, CLASS_DIURNAL, "follows the traffic", "%s: rose with the traffic to %s and came back to %s when it ended",
        metrics[f->metric].name, amount(f, f->ebb.peak, a), amount(f, f->ebb.after, b));
    return true;
}

static bool stepped(struct series_verdict *v, const struct series *s)
{
    const struct finding *f = v->finding;

    if (f->nsteps != 1 || f->steps[0].delta <= f->growth.band || fabs(f->beside_steps) > MAX(f->growth.band, 0.15 * f->steps[0].delta))
        return false;
    say_step(v, s);
    return true;
}

/* Whether the growth can be the traffic's own: more in flight because more came. */
static bool traffic_grew(const struct finding *f)
{
    return f->load.source != LOAD_NONE && !f->load.constant && f->load.drift > 1.3;
}

static void say_leak(struct series_verdict *v)
{
    const struct finding *f = v->finding;
    char per[UNITS_TEXT_MAX], n[UNITS_TEXT_MAX], rise[UNITS_TEXT_MAX], over[UNITS_TEXT_MAX];
    const char *ebb = f->ebb.known ? ", and stayed when the traffic ended" : "";

    if (!isnan(f->per_kreq.value))
        str_fmt(n, sizeof n, "%s per 1,000 requests", units_count(f->per_kreq.value, per));
    else
        str_fmt(n, sizeof n, "%s an hour", units_count(f->per_hour.value, per));
    say(v, VERDICT_LEAK, CLASS_COUNT, "rises evenly", "%s: +%s (+%s over %s), steadily from begin to end%s",
        metrics[f->metric].name, n, amount(f, round(f->growth.rise), rise), extent(f, over), ebb);
}

static void say_suspect(struct series_verdict *v, const struct course *c, const char *why, const char *settle)
{
    const struct finding *f = v->finding;
    char rise[UNITS_TEXT_MAX], over[UNITS_TEXT_MAX];

    say(v, VERDICT_SUSPECT, CLASS_COUNT, "rises", "%s: +%s over %s, but %s", metrics[f->metric].name, amount(f, round(c->rise), rise),
        extent(f, over), why);
    say_next(v, "%s", settle);
}

/* Things a pool keeps: it grows with the most that were ever needed at once, quickly first, ever more slowly then. Up to
 * twenty of them must lie on a line far better than on a logarithm to be called a leak. */
static bool like_a_pool(const struct finding *f, const struct course *c)
{
    switch (f->metric) {
    case METRIC_THREADS: case METRIC_FDS: case METRIC_SOCKETS: case METRIC_CONNECTIONS: case METRIC_UNIX_SOCKETS:
    case METRIC_FILES: case METRIC_PIPES: case METRIC_CHILDREN:
        return c->rise < 2 * QUANTA_MIN * c->unit && (f->growth.against_log > 0.6 || f->growth.r2 < 0.95);
    default:
        return false;
    }
}

static void decide_rise(struct series_verdict *v, const struct course *c)
{
    const struct finding *f = v->finding;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

    if (c->stopped)
        say(v, VERDICT_BOUNDED, CLASS_BOUNDED, "rises, then flat", "%s: rose to %s and stayed there in the last third of the run",
            metrics[f->metric].name, amount(f, f->growth.last, a));
    else if (!c->monotone && f->growth.drawdown > 0.5 * c->rise)
        say(v, VERDICT_OK, CLASS_FLAT, "goes up and down", "%s: goes up and down between %s and the level it began at",
            metrics[f->metric].name, amount(f, f->max, a));
    else if (c->rise < QUANTA_MIN * c->unit && (!c->even || !c->monotone))
        say(v, VERDICT_OK, CLASS_FLAT, "moves a little", "%s: moved by %s, not evenly; an even growth of %s would have shown",
            metrics[f->metric].name, amount(f, c->rise, a), amount(f, QUANTA_MIN * c->unit, b));
    else if (!c->even || !c->monotone || like_a_pool(f, c))
        say_suspect(v, c, "not evenly: a pool that fills looks like this too", "run longer: a pool stops at its size, a leak does not");
    else if (c->rise < QUANTA_MIN * c->unit)
        say_suspect(v, c, "fewer than ten is too few to tell a leak from a pool", "run until ten more would have come, then diagnose again");
    else if (!isnan(f->growth.requests) && f->growth.requests < REQUESTS_MIN)
        say_suspect(v, c, "over fewer than 100 requests", "run for more requests, then diagnose again");
    else if (traffic_grew(f) && !f->ebb.known)
        say_suspect(v, c, "the traffic grew as well", "keep the load constant, or let it end while watching");
    else
        say_leak(v);
}

/* Over days: the floors of whole days rise every day, ten in all, twenty within four days, for a pool may take so long to
 * fill (a daily cycle hides it from the rule above). */
static bool days_rise(struct series_verdict *v)
{
    const struct days *d = &v->finding->days;
    double total, least = (double)INFINITY;
    char a[UNITS_TEXT_MAX];

    if (d->n < 3)
        return false;
    total = d->day[d->n - 1].floor - d->day[0].floor;
    for (size_t i = 1; i < d->n; i++)
        least = MIN(least, d->day[i].usable && d->day[i - 1].usable ? d->day[i].floor - d->day[i - 1].floor : -1.0);
    if (total < (d->n < 5 ? 2 * QUANTA_MIN : QUANTA_MIN) || least < 0.3 * total / (double)(d->n - 1))
        return false;
    /* What is in use in the night grows no more than the traffic: drift is that of one half against the other, half the way. */
    if (traffic_grew(v->finding) && d->day[d->n - 1].floor <= d->day[0].floor * v->finding->load.drift * v->finding->load.drift)
        return false;
    say(v, VERDICT_LEAK, CLASS_COUNT, "rises day by day", "%s: its daily floor rose every day, by %s over %zu days",
        metrics[v->finding->metric].name, amount(v->finding, total, a), d->n);
    return true;
}

/* Grew over a restart of the service, which should have given a clean start. */
static bool outlives(struct series_verdict *v)
{
    const struct finding *f = v->finding;
    char from[UNITS_TEXT_MAX], to[UNITS_TEXT_MAX];

    if (metrics[f->metric].scope != METRIC_SCOPE_T || !f->starts.rising || f->starts.last - f->starts.first < 3)
        return false;
    say(v, VERDICT_EXTERNAL, CLASS_EXTERNAL, "rises from restart to restart",
        "%s: each of %zu lives began with more than the last, %s to %s: restarting does not cure it", metrics[f->metric].name, f->starts.n,
        amount(f, f->starts.first, from), amount(f, f->starts.last, to));
    return true;
}

/* The same seen less clearly: enough not to say that all is well. */
static bool may_rise_within(struct series_verdict *v)
{
    const struct within *in = &v->finding->within;

    if (in->maybe < 3 || (double)in->maybe < 0.6 * (double)in->lives)
        return false;
    say(v, VERDICT_SUSPECT, CLASS_SAWTOOTH, "may rise in every life",
        "%s: in %zu of %zu processes it rose by ten and more, also late in their lives, but not evenly", metrics[v->finding->metric].name,
        in->maybe, in->lives);
    say_next(v, "let each process live longer, or watch at a constant load, then diagnose again");
    return true;
}

/* Rises inside the lives of workers that are replaced: the sum over them hides it. */
static bool rises_within(struct series_verdict *v)
{
    const struct within *in = &v->finding->within;
    char a[UNITS_TEXT_MAX];

    if (in->rising < 3 || (double)in->rising < 0.6 * (double)in->lives || in->median_rise < QUANTA_MIN)
        return may_rise_within(v);
    show_within(v);
    say(v, VERDICT_LEAK, CLASS_SAWTOOTH, "rises in every life", "%s: rose in %zu of %zu processes, by %s and more in half of these: replacing them hides it",
        metrics[v->finding->metric].name, in->rising, in->lives, amount(v->finding, round(in->median_rise), a));
    return true;
}

/* The sum falls as processes are replaced: that is not a coming back. */
static bool replaced(const struct series_verdict *v)
{
    return v->finding->within.replaced >= 3;
}

void decide_count(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding;
    struct course c;

    if (outlives(v) || decide_trivial(v, a))
        return;
    if (!f->growth.usable) {
        say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, "too few samples", "%s: %zu samples with traffic; 16 are needed to see growth",
            metrics[f->metric].name, f->growth.points);
        say_next(v, "watch for longer, or with a shorter --interval");
        return;
    }
    c = course_of(f);
    if (c.rise <= f->growth.band) {
        if (!days_rise(v) && !rises_within(v))
            say_flat(v, &c);
    } else if (replaced(v) && rises_within(v)) {
        return;
    } else if (!came_back(v, &c) && !told_by_children(v, a) && !stepped(v, a->series) && !days_rise(v) && !rises_within(v)) {
        decide_rise(v, &c);
    }
}
