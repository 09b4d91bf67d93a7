#include <stdarg.h>
#include <stdio.h>

#include "verdict/parts.h"

static const struct { const char *name; const char *title; int exit_status; } verdicts[VERDICT_N] = {
#define X(id, name, exit_status, weight, title) { name, title, exit_status },
    VERDICTS(X)
#undef X
};

static const char *const classes[CLASS_N] = {
#define X(id, name) name,
    CLASSES(X)
#undef X
};

const char *verdict_name(enum verdict_id v)
{
    return verdicts[v].name;
}

const char *verdict_title(enum verdict_id v)
{
    return verdicts[v].title;
}

int verdict_exit_status(enum verdict_id v)
{
    return verdicts[v].exit_status;
}

const char *class_name(enum class_id c)
{
    return classes[c];
}

void say(struct series_verdict *v, enum verdict_id verdict, enum class_id class, const char *shape, const char *fmt, ...)
{
    va_list ap;

    v->verdict = verdict;
    v->class = class;
    str_copy(v->shape, sizeof v->shape, shape);
    va_start(ap, fmt);
    vsnprintf(v->reason, sizeof v->reason, fmt, ap);
    va_end(ap);
}

void say_next(struct series_verdict *v, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(v->next, sizeof v->next, fmt, ap);
    va_end(ap);
}

const char *amount(const struct finding *f, double v, char out[UNITS_TEXT_MAX])
{
    return metrics[f->metric].unit == METRIC_UNIT_BYTES ? units_bytes(v, out) : units_count(v, out);
}

const char *seconds_text(double s, char out[UNITS_TEXT_MAX])
{
    return units_time((int64_t)(s * 1e9), out);
}

const char *extent(const struct finding *f, char out[UNITS_TEXT_MAX])
{
    char n[UNITS_TEXT_MAX];

    if (!f->blocks.by_requests)
        return seconds_text(f->growth.seconds, out);
    str_fmt(out, UNITS_TEXT_MAX, "%s requests", units_count(round(f->growth.requests), n));
    return out;
}

static const struct step *largest_step(const struct finding *f)
{
    const struct step *best = &f->steps[0];

    for (size_t i = 1; i < f->nsteps; i++)
        if (fabs(f->steps[i].delta) > fabs(best->delta))
            best = &f->steps[i];
    return best;
}

void say_step(struct series_verdict *v, const struct series *s)
{
    const struct finding *f = v->finding;
    const struct step *st = largest_step(f);
    const struct series_event *e = st->event >= 0 ? vec_at(&s->events, (size_t)st->event) : NULL;
    char by[UNITS_TEXT_MAX], when[CLOCK_TEXT_MAX], more[40] = "";

    if (f->nsteps > 1)
        str_fmt(more, sizeof more, " (the largest of %zu jumps)", f->nsteps);
    say(v, VERDICT_STEP, CLASS_STEP, "flat, a jump, flat", "%s: jumped by %s at %s%s%s%s%s and was flat before and after", metrics[f->metric].name,
        amount(f, st->delta, by), clock_rfc3339(st->at_ns / NS_PER_S * NS_PER_S, when), more, e ? ", next to " : "", e ? e->kind : "",
        e && e->text[0] ? " event" : "");
    if (e)
        say_next(v, "look at what \"%s\" changed", e->text[0] ? e->text : e->kind);
}

void show_within(struct series_verdict *v)
{
    const struct within *in = &v->finding->within;

    v->per_hour = (struct interval){ in->per_hour, (double)NAN, (double)NAN };
    v->per_kreq = (struct interval){ in->per_kreq, (double)NAN, (double)NAN };
}

bool told_by_children(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding, *children = analysis_find(a, METRIC_CHILDREN);
    char by[UNITS_TEXT_MAX];

    if (f->metric == METRIC_CHILDREN || f->metric == METRIC_ZOMBIES || !children || !children->growth.usable || isnan(f->root_rise))
        return false;
    if (children->growth.last - children->growth.first < 2 || f->root_rise > f->growth.band)
        return false;
    say(v, VERDICT_OK, CLASS_FLAT, "rises with the children", "%s: rose by %s, all of it in child processes; the process itself holds no more than before",
        metrics[f->metric].name, amount(f, f->growth.last - f->growth.first, by));
    return true;
}
