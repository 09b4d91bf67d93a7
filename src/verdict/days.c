/* Memory over days: what is left when steps, load, high water and excuses are taken out, and whether two days agree on it
 * (methods.md 2.5 to 2.8). */
#include "verdict/parts.h"

/* Calibrated on 3,000 healthy and 600 leaking seeds of tests/lib/synth: 4 and 297 are called a leak. */
#define SCORE_MIN 30.0
#define SCORE_GENEROUS_MIN 10.0
#define RISE_MIN 0.04          /* of the level, over the whole window: a hinge near its end is cheap */
#define LATE_IN_LIFE_MIN 0.6
#define LATE_MIN 0.5           /* the last day added at least that share of what the fit says */
#define BAND_DAY 0.004         /* of the level: what a healthy service may gain in a day */
#define STEP_MIN 0.02          /* of the level: less is not worth a look */
#define QUANTA_MIN 10

static double day_band(const struct finding *f, const struct evaluation *e)
{
    return MAX(BAND_DAY * f->parts.level, 0.2 * e->noise);
}

enum look { FLAT, STOPPED, DOUBTFUL, RISES };

/* One evaluation. DOUBTFUL: it rises, but an excuse that this window is too short to rule out would explain it too. */
static enum look look_of(const struct finding *f, const struct evaluation *e)
{
    double band = day_band(f, e);

    if (!e->usable || e->score < SCORE_MIN || e->rise < QUANTA_MIN * f->growth.quantum)
        return FLAT;
    if (!isnan(e->gain_last) && (e->gain_last < LATE_MIN * e->gain_fitted || e->gain_last < 2 * e->gain_noise))
        return STOPPED;
    if (e->late_in_life < LATE_IN_LIFE_MIN)
        return STOPPED;
    if (e->per_day <= band)
        return FLAT;
    return e->score_generous < SCORE_GENEROUS_MIN || e->rise < RISE_MIN * f->parts.level || isnan(e->gain_last) ? DOUBTFUL : RISES;
}

static bool days_missing(struct series_verdict *v)
{
    const struct decomposition *d = &v->finding->parts;

    for (size_t i = 0; i < ARRAY_SIZE(d->covered); i++)
        if (d->covered[i] < 0.7) {
            say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, "days are missing", "%s: one of the last days was sampled for less than 70 %% of it",
                metrics[v->finding->metric].name);
            say_next(v, "watch without a break, then diagnose again");
            return true;
        }
    return false;
}

/* What yesterday's evaluation said the last day would add did come; less work, less growth. */
static bool forecast_came_true(const struct decomposition *d)
{
    double less = isnan(d->work_ratio) ? 1 : MIN(d->work_ratio, 1.0);

    return d->now.gain_last >= 0.6 * d->day_before.per_day * less;
}

/* The rates to show are those of the leak's part, not of the line through everything. */
static void show_rates(struct series_verdict *v)
{
    const struct evaluation *e = &v->finding->parts.now;
    double days = e->hours / 24, mean = days > 0 ? e->rise / days : 0, wide = 1.645 * e->se_day;
    double per = mean > 0 ? 1000 * e->per_request / mean : (double)NAN;

    v->per_hour = (struct interval){ mean / 24, (mean - wide) / 24, (mean + wide) / 24 };
    if (!isnan(per))
        v->per_kreq = (struct interval){ per * mean, per * (mean - wide), per * (mean + wide) };
}

static void rate_text(const struct finding *f, const struct evaluation *e, char *out, size_t size)
{
    char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX];

    if (isnan(e->per_request))
        str_fmt(out, size, "+%s a day", amount(f, e->per_day, a));
    else
        str_fmt(out, size, "+%s a day, %s per 1,000 requests", amount(f, e->per_day, a), amount(f, 1000 * e->per_request, b));
}

/* The heap in use is known as well as this series is, and does not rise: then the allocator keeps what rises here. */
static bool heap_is_quiet(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding, *heap = analysis_find(a, METRIC_HEAP_USED);
    char text[UNITS_TEXT_MAX];

    if (!heap || f->metric == METRIC_HEAP_USED || is_files(f) || !heap->parts.now.usable || heap->in_use * 2 < f->in_use)
        return false;
    if (look_of(heap, &heap->parts.now) >= DOUBTFUL)
        return false;
    say(v, VERDICT_RETENTION, CLASS_RETENTION, "rises, the heap in use does not", "%s: rose by %s while the heap in use did not: the allocator keeps it",
        metrics[f->metric].name, amount(f, MAX(f->parts.now.rise, f->parts.now.excuse_part), text));
    return true;
}

/* Nor did it rise before: its excuses and leak together are small beside what this series gained. */
static bool heap_is_still(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *heap = analysis_find(a, METRIC_HEAP_USED);
    const struct evaluation *e = &v->finding->parts.now;

    return heap && heap->parts.now.excuse_part + heap->parts.now.rise < 0.3 * (e->excuse_part + e->rise) && heap_is_quiet(v, a);
}

static void rising(struct series_verdict *v, enum look now, enum look before)
{
    const struct finding *f = v->finding;
    const struct decomposition *d = &f->parts;
    enum class_id class = d->staircase ? CLASS_STAIR : d->lives > 2 ? CLASS_SAWTOOTH : CLASS_CREEP;
    char rate[120];

    show_rates(v);
    rate_text(f, &d->now, rate, sizeof rate);
    if (now == RISES && before >= DOUBTFUL && forecast_came_true(d)) {
        say(v, VERDICT_LEAK, class, class == CLASS_SAWTOOTH ? "rises in every life" : "rises day by day",
            "%s: %s besides load and steps, and it goes on; two days in a row agree", metrics[f->metric].name, rate);
        return;
    }
    say(v, VERDICT_SUSPECT, class, "rises", "%s: %s besides load and steps, %s", metrics[f->metric].name, rate,
        now == DOUBTFUL ? "but a cache that fills would look like this too" : "but only one day says so");
    say_next(v, "look again tomorrow: a leak rises again");
}

/* Jumps are the story when they are most of what happened; an allocator that takes memory in chunks as a cache fills jumps too. */
static bool stepped(struct series_verdict *v, const struct series *s)
{
    const struct finding *f = v->finding;
    const struct decomposition *d = &f->parts;
    double sum = 0;

    for (size_t i = 0; i < d->nsteps; i++)
        sum += fabs(d->steps[i].delta);
    if (!d->nsteps || d->staircase || sum < STEP_MIN * d->level || sum < 2 * d->now.excuse_part)
        return false;
    say_step(v, s);
    return true;
}

static void quiet(struct series_verdict *v, const struct analysis *a, enum look now)
{
    const struct finding *f = v->finding;
    const struct decomposition *d = &f->parts;
    double band = day_band(f, &d->now);
    char x[UNITS_TEXT_MAX], y[UNITS_TEXT_MAX];

    if (stepped(v, a->series))
        return;
    if ((now == STOPPED || d->now.excuse_part > 4 * band) && heap_is_still(v, a))
        return;
    if (now == STOPPED || d->now.excuse_part > 4 * band)
        say(v, VERDICT_BOUNDED, CLASS_BOUNDED, "rises, then flat", "%s: rose by %s and has stopped", metrics[f->metric].name,
            amount(f, MAX(d->now.excuse_part, d->now.rise), x));
    else
        say(v, VERDICT_OK, d->now.load_part > 4 * band ? CLASS_DIURNAL : CLASS_FLAT, "its floor comes back",
            "%s: besides load its floor stayed at %s; a rise of %s a day would have shown",
            metrics[f->metric].name, amount(f, d->level, x), amount(f, band, y));
}

void decide_days(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding;
    enum look now, before;

    if (days_missing(v))
        return;
    if (!f->parts.usable || !f->parts.now.usable) {
        say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, "too few samples", "%s: too few half hours were sampled", metrics[f->metric].name);
        say_next(v, "watch without a break, then diagnose again");
        return;
    }
    now = look_of(f, &f->parts.now);
    before = look_of(f, &f->parts.day_before);
    if (now >= DOUBTFUL && !heap_is_quiet(v, a))
        rising(v, now, before);
    else if (now < DOUBTFUL)
        quiet(v, a, now);
}
