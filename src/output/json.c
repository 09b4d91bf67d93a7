/* The diagnose document of contract.md. No NaN: what is not known is null. */
#include <jansson.h>

#include "output/parts.h"

#define LIVES_MAX 1000

static json_t *number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

static json_t *time_of(int64_t ns)
{
    char text[CLOCK_TEXT_MAX];

    return ns == CLOCK_INVALID ? json_null() : json_string(clock_rfc3339(ns, text));
}

static json_t *interval(struct interval i)
{
    return json_pack("{s:o, s:o, s:o}", "value", number(i.value), "lo", number(i.lo), "hi", number(i.hi));
}

static json_t *value_or_null(int64_t v)
{
    return v == METRIC_NA ? json_null() : json_integer(v);
}

static json_t *per_kreq(const struct series_verdict *v)
{
    const struct interval *i = &v->per_kreq;

    if (isnan(i->value))
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "value", number(i->value), "lo", number(i->lo), "hi", number(i->hi), "band",
                     number(v->finding->band_per_kreq));
}

/* ---- floor ---------------------------------------------------------------------------------------------------- */

static const char *floor_why(const struct finding *f)
{
    const struct days *d = &f->days;

    if (d->low_n < 2)
        return f->ebb.known ? "too short for two low windows; the quiet after the traffic was used" : "too short for two low windows";
    if (!d->low_traffic_known)
        return "no request counts: whether traffic is low there is not known";
    return d->low_usable ? "traffic is below a tenth of its peak there" : "traffic is not low there: growth per request was used";
}

static json_t *floor_returns(const struct finding *f)
{
    const struct days *d = &f->days;

    if (d->low_n >= 2 && d->low_usable && d->low[d->low_n - 1].usable && d->low[d->low_n - 2].usable)
        return json_boolean(d->low[d->low_n - 1].floor - d->low[d->low_n - 2].floor <= f->growth.band);
    if (f->ebb.known && !isnan(f->ebb.returned))
        return json_boolean(f->ebb.returned >= 0.5);
    return json_null();
}

static json_t *floor_days(const struct days *d)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < d->n; i++) {
        char date[CLOCK_TEXT_MAX];

        clock_rfc3339(d->day[i].begin_ns / NS_PER_S * NS_PER_S, date);
        date[10] = '\0';
        json_array_append_new(list, json_pack("{s:s, s:o}", "date", date, "value", d->day[i].usable ? number(d->day[i].floor) : json_null()));
    }
    return list;
}

static json_t *floor_of(const struct finding *f)
{
    const struct days *d = &f->days;
    char window[16];

    str_fmt(window, sizeof window, "%02d:%02d-%02d:%02d", d->low_from_min / 60, d->low_from_min % 60, d->low_to_min / 60, d->low_to_min % 60);
    return json_pack("{s:o, s:b, s:s, s:o, s:o}", "window", d->low_n ? json_string(window) : json_null(), "usable",
                     d->low_n >= 2 && d->low_usable, "why", floor_why(f), "returns", floor_returns(f), "days", floor_days(d));
}

/* ---- series --------------------------------------------------------------------------------------------------- */

static json_t *steps_of(const struct series *s, const struct finding *f)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < f->nsteps; i++) {
        const struct step *st = &f->steps[i];
        const struct series_event *e = st->event >= 0 ? vec_at(&s->events, (size_t)st->event) : NULL;

        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "at", time_of(st->at_ns), "delta", number(st->delta), "event",
                                              e ? json_pack("{s:s, s:s, s:o}", "kind", e->kind, "text", e->text, "at", time_of(e->ts_ns)) : json_null()));
    }
    return list;
}

static json_t *ebb_of(const struct ebb *e)
{
    if (!e->known)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o}", "before", number(e->before), "peak", number(e->peak), "after", number(e->after), "returned",
                     number(e->returned));
}

static json_t *evidence_of(const struct finding *f)
{
    const struct growth *g = &f->growth;
    const struct warmup *w = &f->warmup;

    if (!g->usable)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:[o,o], s:b, s:[o,o,o], s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "seconds", number(g->seconds),
                     "requests", number(g->requests), "level", number(g->level), "rise", number(g->rise), "halves", number(g->half[0]),
                     number(g->half[1]), "halves_agree", g->halves_agree, "thirds", number(g->third[0]), number(g->third[1]),
                     number(g->third[2]), "against_log", number(g->against_log), "r2", number(g->r2), "drawdown", number(g->drawdown),
                     "quanta", number(g->quanta), "noise", number(g->noise), "band", number(g->band), "visible", number(g->visible),
                     "warmup", json_pack("{s:o, s:o, s:o, s:b}", "share", number(w->share), "seconds", number(w->seconds), "rise",
                                         number(w->rise), "settled", w->settled));
}

static json_t *series_json(const struct series *s, const struct series_verdict *v, bool explain)
{
    const struct finding *f = v->finding;
    json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", metrics[f->metric].name, "unit",
                            metric_unit_name(metrics[f->metric].unit), "verdict", verdict_name(v->verdict), "class", class_name(v->class),
                            "shape", v->shape, "reason", v->reason, "now", number(f->now), "slope_per_hour", interval(v->per_hour),
                            "per_1k_requests", per_kreq(v), "floor", floor_of(f), "steps", steps_of(s, f), "after_traffic", ebb_of(&f->ebb),
                            "smallest_visible", f->growth.usable ? number(f->growth.visible) : json_null());

    if (doc && explain)
        json_object_set_new(doc, "evidence", evidence_of(f));
    return doc;
}

static json_t *all_series(const struct verdict *v, bool explain)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < v->n; i++)
        json_array_append_new(list, series_json(v->analysis->series, &v->series[i], explain));
    return list;
}

/* ---- lives ---------------------------------------------------------------------------------------------------- */

static json_t *life_json(const struct series_life *l)
{
    enum metric_id m = l->first[METRIC_RSS] != METRIC_NA ? METRIC_RSS : METRIC_RSS_ANON;
    bool runs = l->end.cause == LIFE_RUNNING;

    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:I, s:b, s:s}", "pid",
                     l->key.pid == PID_UNKNOWN ? json_null() : json_integer(l->key.pid), "start", time_of(l->start_ns), "end",
                     runs ? json_null() : time_of(l->end.wall_ns), "cause", life_end_name(l->end.cause), "start_rss", value_or_null(l->first[m]),
                     "end_rss", value_or_null(l->last[m]), "samples", (json_int_t)l->samples, "root", l->root, "role", l->role);
}

/* Roots first: with thousands of passing children, those are the ones to see. */
static json_t *lives_of(const struct series *s)
{
    json_t *list = json_array();

    for (int roots = 1; list && roots >= 0; roots--)
        VEC_EACH(struct series_life, l, &s->lives)
            if (!l->whole && l->root == roots && json_array_size(list) < LIVES_MAX)
                json_array_append_new(list, life_json(l));
    return list;
}

static json_t *restarts_of(const struct analysis *a)
{
    const struct starts *st = &a->starts;
    json_t *dense = json_array();

    for (size_t i = 0; dense && i < a->ndense; i++)
        json_array_append_new(dense, json_pack("{s:o, s:o}", "from", time_of(a->dense[i].from_ns), "to", time_of(a->dense[i].to_ns)));
    return json_pack("{s:I, s:o, s:{s:s, s:o, s:o}}", "count", (json_int_t)a->restarts, "dense", dense, "start_values", "trend",
                     st->n < 4 ? "unknown" : st->rising ? "rising" : "flat", "tau", st->n < 4 ? json_null() : number(st->tau), "p",
                     st->n < 4 ? json_null() : number(st->p));
}

static json_t *load_json(const struct verdict *v)
{
    const struct load *l = v->n ? &v->series[0].finding->load : NULL;

    if (!l || l->source == LOAD_NONE)
        return json_null();
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "source", l->source == LOAD_REQUESTS ? "requests" : "cpu", "constant", l->constant,
                     "seconds", number(l->seconds), "requests", number(l->requests), "per_second",
                     l->source == LOAD_REQUESTS ? number(l->per_s) : json_null(), "quiet_after_seconds", number(l->tail_s));
}

struct json_t *output_json(const struct verdict *v, bool explain)
{
    const struct series *s = v->analysis->series;

    return json_pack("{s:s, s:o, s:o, s:I, s:o, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:o}", "target", s->target, "from", time_of(s->from_ns),
                     "to", time_of(s->to_ns), "samples", (json_int_t)s->samples, "requests", number(s->requests), "verdict",
                     verdict_name(v->verdict), "class", class_name(v->class), "reason", v->reason, "next", v->next, "steady",
                     v->analysis->options.steady, "load", load_json(v), "restarts", restarts_of(v->analysis), "lives", lives_of(s), "series",
                     all_series(v, explain));
}
