/* Memory. Allocators keep what they were given, collectors come late, caches fill: so it is judged by floors, after the
 * warm-up, and a leak needs two agreeing halves (a run under constant load) or two agreeing days. */
#include "verdict/parts.h"

#define HOURS(n) ((n) * 3600.0)
#define QUANTA_MIN 10
#define REQUESTS_MIN 100      /* to say anything */
#define REQUESTS_MIN_LEAK 200 /* to call it a leak */

static const char *name_of(const struct series_verdict *v)
{
    return metrics[v->finding->metric].name;
}

/* Bytes of files and of shared memory: nothing is kept by an allocator there. */
bool is_files(const struct finding *f)
{
    return f->metric == METRIC_TMP_BYTES || f->metric == METRIC_SHM_BYTES;
}

static double least_rise(const struct growth *g)
{
    return g->slope.lo * g->x_span;
}

static void insufficient(struct series_verdict *v, const char *shape, const char *why, const char *next)
{
    say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, shape, "%s: %s", name_of(v), why);
    say_next(v, "%s", next);
}

/* What the growth of one run amounts to, in the words of a sentence: "+2.1 KB per 1,000 requests (1.9 to 2.3)". */
static void rate_text(const struct finding *f, char *out, size_t size)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
    bool per = !isnan(f->per_kreq.value);
    const struct interval *i = per ? &f->per_kreq : &f->per_hour;

    str_fmt(out, size, "+%s %s (90 %%: %s to %s)", amount(f, i->value, a), per ? "per 1,000 requests" : "an hour", amount(f, i->lo, b),
            amount(f, i->hi, c));
}

/* ---- one run under constant load ------------------------------------------------------------------------------ */

static bool steady_refused(struct series_verdict *v)
{
    const struct finding *f = v->finding;
    char why[200];

    if (!f->growth.usable) {
        str_fmt(why, sizeof why, "%zu samples after the warm-up; 16 are needed", f->growth.points);
        insufficient(v, "too few samples", why, "run longer, or watch with a shorter --interval");
    } else if (f->load.source != LOAD_NONE && !f->load.constant) {
        str_fmt(why, sizeof why, "the load was not constant (slowest tenth %.0f %% of the mean, fastest %.0f %%, second half %.0f %% of the first)",
                100 * f->load.low, 100 * f->load.high, 100 * f->load.drift);
        insufficient(v, "load not constant", why, "keep the load constant, or diagnose days without --steady");
    } else if (f->load.source == LOAD_REQUESTS && f->growth.requests < REQUESTS_MIN) {
        str_fmt(why, sizeof why, "%.0f requests after the warm-up; %d are needed", f->growth.requests, REQUESTS_MIN);
        insufficient(v, "too few requests", why, "run longer at the same load");
    } else {
        return false;
    }
    return true;
}

/* Workers that come and go make the sum jump; each by itself is quiet. */
static bool calm_within(struct series_verdict *v)
{
    const struct within *in = &v->finding->within;

    if (in->lives < 3 || in->rising || (double)in->calm < 0.7 * (double)in->lives)
        return false;
    say(v, VERDICT_OK, CLASS_FLAT, "flat within each process",
        "%s: the sum jumps as processes are replaced; within %zu of %zu of them it did not grow, within none did it rise evenly", name_of(v),
        in->calm, in->lives);
    return true;
}

static void steady_flat(struct series_verdict *v)
{
    const struct finding *f = v->finding;
    const struct growth *g = &f->growth;
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], n[UNITS_TEXT_MAX], why[200];

    if (!is_files(f) && g->visible > 0.15 * g->level + 10 * g->quantum && g->level > 0) {
        if (calm_within(v))
            return;
        str_fmt(why, sizeof why, "it goes up and down so much that only a growth of %s over %s would have shown", amount(f, g->visible, a),
                extent(f, n));
        insufficient(v, "too noisy", why, "run longer at the same load");
    } else if (f->warmup.rise > g->band) {
        say(v, VERDICT_BOUNDED, CLASS_BOUNDED, "rises, then flat", "%s: rose by %s in the warm-up and stayed at %s for %s; a growth of %s would have shown",
            name_of(v), amount(f, f->warmup.rise, a), amount(f, g->level, b), extent(f, n), amount(f, g->visible, why));
    } else {
        say(v, VERDICT_OK, CLASS_FLAT, "flat", "%s: its floor stayed at %s over %s; a growth of %s would have shown", name_of(v),
            amount(f, g->level, a), extent(f, n), amount(f, g->visible, b));
    }
}

/* At most `most` jumps up, and flat besides them. */
static bool stepped(struct series_verdict *v, const struct series *s, size_t most)
{
    const struct finding *f = v->finding;
    double total = 0;

    for (size_t i = 0; i < f->nsteps; i++)
        total += f->steps[i].delta;
    if (!f->nsteps || f->nsteps > most || total <= f->growth.band || fabs(f->beside_steps) > MAX(f->growth.band, 0.15 * total))
        return false;
    say_step(v, s);
    return true;
}

/* What the program keeps did not grow: then the allocator keeps it. */
static bool kept_by_allocator(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *heap = analysis_find(a, METRIC_HEAP_USED);
    char text[UNITS_TEXT_MAX];

    if (!heap || v->finding->metric == METRIC_HEAP_USED || is_files(v->finding) || !heap->growth.usable
        || heap->growth.rise > heap->growth.band || heap->growth.visible > 0.5 * v->finding->growth.rise)
        return false;
    say(v, VERDICT_RETENTION, CLASS_RETENTION, "rises, the heap in use does not", "%s: grew by %s while the heap in use stayed flat: the allocator keeps it",
        name_of(v), amount(v->finding, v->finding->growth.rise, text));
    return true;
}

static void suspect(struct series_verdict *v, const char *why, const char *settle)
{
    char rate[160];

    rate_text(v->finding, rate, sizeof rate);
    say(v, VERDICT_SUSPECT, CLASS_CREEP, "rises", "%s: %s, but %s", name_of(v), rate, why);
    say_next(v, "%s", settle);
}

static bool slowing(const struct finding *f)
{
    const struct growth *g = &f->growth;

    return !f->warmup.settled || g->against_log > 1 || g->half[1] < 0.6 * g->half[0];
}

/* The sum fell deeper than it rose, and the one that stays did not grow: how many there were at each end decides the rise. */
static bool jumps_about(const struct finding *f)
{
    const struct growth *g = &f->growth;

    return g->drawdown > g->last - g->first && !(f->root_rise > g->band);
}

static void steady_rise(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding;
    const struct growth *g = &f->growth;
    char rate[160], n[UNITS_TEXT_MAX], why[160];

    if (kept_by_allocator(v, a) || told_by_children(v, a) || (jumps_about(f) && calm_within(v)))
        return;
    if (f->ebb.known && f->ebb.returned > 0.5) {
        say(v, VERDICT_OK, CLASS_DIURNAL, "follows the traffic", "%s: rose with the traffic and came back when it ended", name_of(v));
    } else if (g->third[2] <= g->band / 3 && slowing(f)) {
        say(v, VERDICT_BOUNDED, CLASS_BOUNDED, "rises, then flat", "%s: rose to %s and stayed there in the last third of the run", name_of(v),
            amount(f, g->last, n));
    } else if (g->quanta < QUANTA_MIN) {
        str_fmt(why, sizeof why, "it grew by %s in %.0f jumps; ten are the least to tell a leak from an allocator's chunks",
                amount(f, g->last - g->first, n), g->quanta);
        insufficient(v, "few jumps", why, "run longer at the same load, then diagnose --steady again");
    } else if (slowing(f)) {
        suspect(v, "it is slowing down: a warm-up or a cache that fills looks like this", "run twice as long at the same load, then diagnose --steady again");
    } else if (!g->halves_agree) {
        suspect(v, "the two halves of the run do not agree", "run twice as long at the same load, then diagnose --steady again");
    } else if (f->load.source == LOAD_REQUESTS && g->requests < REQUESTS_MIN_LEAK) {
        suspect(v, "over too few requests", "run longer at the same load, then diagnose --steady again");
    } else if (least_rise(g) < 2 * g->band) {
        str_fmt(why, sizeof why, "over %s that is not well above what healthy runs do (%s)", extent(f, n), amount(f, g->band, rate));
        suspect(v, why, "run longer at the same load, then diagnose --steady again");
    } else {
        rate_text(f, rate, sizeof rate);
        say(v, VERDICT_LEAK, CLASS_CREEP, "rises evenly", "%s: %s over %s, in both halves alike", name_of(v), rate, extent(f, n));
    }
}

/* A minute: what stayed stayed, whatever the load; what rose may still be a warm-up. */
static void decide_brief(struct series_verdict *v, const struct analysis *a)
{
    const struct growth *g = &v->finding->growth;
    char why[100], span[UNITS_TEXT_MAX];

    if (!g->usable)
        (void)steady_refused(v);
    else if (least_rise(g) <= g->band)
        steady_flat(v);
    else if (!stepped(v, a->series, 2) && !kept_by_allocator(v, a)) {
        str_fmt(why, sizeof why, "%s are too short to tell a leak from a warm-up", seconds_text(g->seconds, span));
        suspect(v, why, "lowtide watch --target NAME=SELECTOR, then lowtide diagnose NAME");
    }
}

static void decide_steady(struct series_verdict *v, const struct analysis *a)
{
    const struct growth *g = &v->finding->growth;

    if (steady_refused(v) || stepped(v, a->series, 1))
        return;
    if (least_rise(g) <= g->band)
        steady_flat(v);
    else
        steady_rise(v, a);
}

/* ---- less than two days --------------------------------------------------------------------------------------- */

static void decide_short(struct series_verdict *v, const struct analysis *a, double seconds)
{
    const struct growth *g = &v->finding->growth;
    char span[UNITS_TEXT_MAX], why[200];

    str_fmt(why, sizeof why, "memory is judged by daily floors, and there are %s", seconds_text(seconds, span));
    if (!g->usable || least_rise(g) <= g->band || slowing(v->finding) || !g->halves_agree) {
        if (seconds >= HOURS(24) && g->usable && v->finding->max - v->finding->min <= 2 * g->band)
            say(v, VERDICT_OK, CLASS_FLAT, "flat", "%s: stayed within %s for %s", name_of(v),
                amount(v->finding, v->finding->max - v->finding->min, why), span);
        else
            insufficient(v, "too short", why, "watch for two days; for a run under constant load use --steady");
    } else if (!stepped(v, a->series, 2) && !kept_by_allocator(v, a)) {
        str_fmt(why, sizeof why, "%s are too short to tell a leak from a daily rise", span);
        suspect(v, why, "watch for two days; for a run under constant load use --steady");
    }
}

/* ---- restarts ------------------------------------------------------------------------------------------------- */

static bool outlives(struct series_verdict *v)
{
    const struct finding *f = v->finding;
    const struct starts *st = &f->starts;
    char from[UNITS_TEXT_MAX], to[UNITS_TEXT_MAX];

    if (!st->rising || st->last - st->first < MAX(0.02 * st->first, QUANTA_MIN * 132 * 1024.0))
        return false;
    say(v, st->traffic_known ? VERDICT_EXTERNAL : VERDICT_SUSPECT, CLASS_EXTERNAL, "rises from restart to restart",
        "%s: each of %zu lives began higher than the last, %s to %s: what grows is outside the process", name_of(v), st->n,
        amount(f, st->first, from), amount(f, st->last, to));
    if (!st->traffic_known)
        say_next(v, "bring the request counts (lowtide import TARGET FILE --kind requests): that later starts were not just busier cannot be told without");
    return true;
}

static bool rises_within(struct series_verdict *v, bool steady, double seconds)
{
    const struct finding *f = v->finding;
    const struct within *in = &f->within;
    char text[UNITS_TEXT_MAX];

    if (in->rising < 3 || (double)in->rising < 0.7 * (double)in->lives)
        return false;
    show_within(v);
    say(v, steady || seconds >= HOURS(48) ? VERDICT_LEAK : VERDICT_SUSPECT, CLASS_SAWTOOTH, "rises in every life",
        "%s: rose in %zu of %zu lives, by %s and more in half of these, and starts low again: restarts hide it", name_of(v), in->rising, in->lives,
        amount(f, in->median_rise, text));
    return true;
}

void decide_memory(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding;
    const struct track *t = &a->series->sum;
    double seconds = f->to > f->from ? (double)(t->ts_ns[f->to - 1] - t->ts_ns[f->from]) / 1e9 : 0;
    double window = (double)(a->series->to_ns - a->series->from_ns) / 1e9;

    if (outlives(v) || decide_trivial(v, a) || (!a->options.brief && rises_within(v, a->options.steady, window)))
        return;
    if (a->options.brief)
        decide_brief(v, a);
    else if (a->options.steady)
        decide_steady(v, a);
    else if (f->parts.usable && f->parts.hours > 47.5)
        decide_days(v, a);
    else
        decide_short(v, a, seconds);
}
