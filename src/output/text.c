/* The page a person reads: where and when, the verdict, what grows, what does not, why, what next. */
#include "output/parts.h"

enum term_color verdict_color(enum verdict_id v)
{
    switch (v) {
    case VERDICT_OK:
    case VERDICT_BOUNDED:
        return TERM_GREEN;
    case VERDICT_LEAK:
    case VERDICT_EXTERNAL:
        return TERM_RED;
    default:
        return TERM_YELLOW;
    }
}

bool output_grew(const struct series_verdict *s)
{
    return s->verdict != VERDICT_OK && s->verdict != VERDICT_BOUNDED && s->verdict != VERDICT_INSUFFICIENT;
}

const char *signed_amount(enum metric_id m, double v, char out[UNITS_TEXT_MAX])
{
    char text[UNITS_TEXT_MAX];

    if (isnan(v)) {
        str_copy(out, UNITS_TEXT_MAX, "-");
        return out;
    }
    if (metrics[m].unit == METRIC_UNIT_BYTES)
        units_bytes(v, text);
    else
        units_count(fabs(v) >= 100 ? round(v) : fabs(v) < 0.005 ? 0 : round(v * 100) / 100, text);
    str_fmt(out, UNITS_TEXT_MAX, "%s%s", v > 0 ? "+" : "", text);
    return out;
}

void put_wrapped(struct buf *out, const char *text, size_t col, size_t indent)
{
    bool begun = false;

    while (*text) {
        size_t word = strcspn(text, " "), width;
        char cut[WIDTH * 4];

        str_fmt(cut, sizeof cut, "%.*s", (int)word, text);
        width = str_width(cut) + begun;
        if (begun && col + width > WIDTH) {
            buf_printf(out, "\n%*s", (int)indent, "");
            col = indent;
            width--;
        } else if (begun) {
            buf_putc(out, ' ');
        }
        buf_append(out, text, word);
        col += width;
        begun = true;
        text += word;
        text += strspn(text, " ");
    }
    buf_putc(out, '\n');
}

static size_t put_samples(char *line, size_t size, const struct series *s, size_t lives)
{
    char n[UNITS_TEXT_MAX];

    units_count((double)s->samples, n);
    if (!lives)
        return str_fmt(line, size, "%s sample%s of the target as a whole, none of a process", n, s->samples == 1 ? "" : "s");
    return str_fmt(line, size, "%s sample%s of %zu process%s", n, s->samples == 1 ? "" : "s", lives, lives > 1 ? "es" : "");
}

static void put_head(struct buf *out, const struct verdict *v, const struct output_options *o)
{
    const struct series *s = v->analysis->series;
    char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX], span[UNITS_TEXT_MAX], n[UNITS_TEXT_MAX], line[400];
    size_t lives = 0, at;

    VEC_EACH(struct series_life, l, &s->lives)
        lives += !l->whole;
    buf_printf(out, "%s%s%s   %s to %s (%s)\n", term_on(TERM_BOLD, o->colored), s->target, term_off(o->colored),
               clock_rfc3339(s->from_ns / NS_PER_S * NS_PER_S, from), clock_rfc3339(s->to_ns / NS_PER_S * NS_PER_S, to),
               units_time(s->to_ns - s->from_ns, span));
    at = put_samples(line, sizeof line, s, lives);
    if (v->analysis->restarts)
        at += str_fmt(line + at, sizeof line - at, ", %zu restart%s", v->analysis->restarts, v->analysis->restarts > 1 ? "s" : "");
    if (!isnan(s->requests))
        str_fmt(line + at, sizeof line - at, ", %s requests", units_count(round(s->requests), n));
    else
        str_fmt(line + at, sizeof line - at, ", no request counts: growth is per hour (lowtide import TARGET FILE --kind requests brings them)");
    put_wrapped(out, line, 0, 4);
}

static const struct load *load_of(const struct verdict *v)
{
    return v->n ? &v->series[0].finding->load : NULL;
}

static void put_load(struct buf *out, const struct verdict *v)
{
    const struct load *l = load_of(v);
    char rate[UNITS_TEXT_MAX], span[UNITS_TEXT_MAX], line[400];
    size_t at;

    if (!l || l->source == LOAD_NONE || !(l->per_s > 0))
        return;
    units_time((int64_t)(l->seconds * 1e9), span);
    if (l->source == LOAD_REQUESTS)
        at = str_fmt(line, sizeof line, "load: %s requests/s for %s", units_count(round(l->per_s * 10) / 10, rate), span);
    else
        at = str_fmt(line, sizeof line, "load (CPU): %.0f %% of a core for %s", l->per_s / 1e7, span);
    at += str_fmt(line + at, sizeof line - at, ", %s (tenths: %.0f to %.0f %% of the mean)", l->constant ? "constant" : "not constant", 100 * l->low,
                  100 * l->high);
    if (l->tail_s > 0)
        str_fmt(line + at, sizeof line - at, ", then quiet for %s", units_time((int64_t)(l->tail_s * 1e9), span));
    put_wrapped(out, line, 0, 4);
}

static void put_verdict(struct buf *out, const struct verdict *v, const struct output_options *o)
{
    char head[64];
    size_t n = str_fmt(head, sizeof head, "%s", verdict_name(v->verdict));

    buf_printf(out, "\n%s%s%s%s: ", term_on(TERM_BOLD, o->colored), term_on(verdict_color(v->verdict), o->colored), head, term_off(o->colored));
    put_wrapped(out, v->reason, n + 2, 4);
}

static void pad(struct buf *out, const char *text, size_t cells, bool right)
{
    size_t w = str_width(text), space = w < cells ? cells - w : 0;

    buf_printf(out, "%*s%s%*s", right ? (int)space : 0, "", text, right ? 0 : (int)space, "");
}

static void put_row(struct buf *out, const struct series_verdict *s, bool per_kreq, const struct output_options *o)
{
    const struct finding *f = s->finding;
    const struct interval *i = per_kreq ? &s->per_kreq : &s->per_hour;
    char text[UNITS_TEXT_MAX], lo[UNITS_TEXT_MAX], hi[UNITS_TEXT_MAX], range[2 * UNITS_TEXT_MAX];
    double band = per_kreq ? f->band_per_kreq : f->growth.usable ? f->growth.band / MAX(f->growth.seconds, 1e-9) * 3600 : (double)NAN;

    pad(out, "  ", 2, false);
    pad(out, metrics[f->metric].name, 15, false);
    signed_amount(f->metric, f->now, text);
    pad(out, text[0] == '+' ? text + 1 : text, 10, true);
    pad(out, signed_amount(f->metric, i->value, text), 15, true);
    range[0] = '\0';
    if (!isnan(i->lo))
        str_fmt(range, sizeof range, "%s .. %s", signed_amount(f->metric, i->lo, lo), signed_amount(f->metric, i->hi, hi));
    pad(out, range, 25, true);
    signed_amount(f->metric, band, text);
    pad(out, text[0] == '+' ? text + 1 : text, 11, true);
    buf_printf(out, "   %s%s%s\n", term_on(verdict_color(s->verdict), o->colored), verdict_name(s->verdict), term_off(o->colored));
}

static void put_growing(struct buf *out, const struct verdict *v, const struct output_options *o)
{
    bool per_kreq = !isnan(v->analysis->series->requests);
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        const struct series_verdict *s = &v->series[i];

        if (!output_grew(s) || !s->decides)
            continue;
        if (!n++) {
            buf_printf(out, "\n%s", term_on(TERM_BOLD, o->colored));
            buf_printf(out, "  %-15s%10s%15s%25s%11s   %s%s\n", "what grows", "now", per_kreq ? "per 1,000 req" : "per hour", "90 % interval",
                       "band", "verdict", term_off(o->colored));
        }
        put_row(out, s, per_kreq, o);
        put_curve(out, v, s, o);
    }
    if (n || !v->n)
        return;
    /* Nothing grows: the curve of memory, or of what there is, is shown all the same. */
    for (size_t i = 0; i < v->n; i++)
        if (v->series[i].finding->metric == METRIC_RSS_ANON || v->series[i].finding->metric == METRIC_FDS || i + 1 == v->n) {
            char now[UNITS_TEXT_MAX];

            signed_amount(v->series[i].finding->metric, v->series[i].finding->now, now);
            buf_printf(out, "%s  %-15s%10s\n", n++ ? "" : "\n", metrics[v->series[i].finding->metric].name, now[0] == '+' ? now + 1 : now);
            put_curve(out, v, &v->series[i], o);
            if (n == 2)
                break;
        }
}

static void put_list(struct buf *out, const struct verdict *v, const char *title, bool (*pick)(const struct series_verdict *))
{
    char line[2048];
    size_t at = 0, n = 0;

    for (size_t i = 0; i < v->n; i++) {
        char now[UNITS_TEXT_MAX];

        if (!pick(&v->series[i]))
            continue;
        signed_amount(v->series[i].finding->metric, v->series[i].finding->now, now);
        at += str_fmt(line + at, sizeof line - at, "%s%s %s", n++ ? ", " : "", metrics[v->series[i].finding->metric].name,
                      now[0] == '+' ? now + 1 : now);
    }
    if (!n)
        return;
    buf_printf(out, "\n%s: ", title);
    put_wrapped(out, line, str_width(title) + 2, 4);
}

static bool is_flat(const struct series_verdict *s)
{
    return s->verdict == VERDICT_OK;
}

static bool is_bounded(const struct series_verdict *s)
{
    return s->verdict == VERDICT_BOUNDED;
}

static void put_unjudged(struct buf *out, const struct verdict *v)
{
    bool first = true;

    for (size_t i = 0; i < v->n; i++) {
        const struct series_verdict *s = &v->series[i];

        if (s->verdict != VERDICT_INSUFFICIENT || !s->decides)
            continue;
        buf_puts(out, first ? "\nnot judged:\n" : "");
        buf_puts(out, "  ");
        put_wrapped(out, s->reason, 2, 4);
        first = false;
    }
}

static void put_why(struct buf *out, const struct verdict *v)
{
    bool first = true;

    for (size_t i = 0; i < v->n; i++) {
        const struct series_verdict *s = &v->series[i];

        if (!output_grew(s) || !s->decides || i == v->named)
            continue;
        buf_puts(out, first ? "\nwhy:\n" : "");
        buf_puts(out, "  ");
        put_wrapped(out, s->reason, 2, 4);
        first = false;
    }
}

#define EVENTS_SHOWN 8

static void put_events(struct buf *out, const struct series *s)
{
    char when[CLOCK_TEXT_MAX], text[SERIES_TEXT_MAX + 64];
    size_t from = s->events.n > EVENTS_SHOWN ? s->events.n - EVENTS_SHOWN : 0;

    for (size_t i = from; i < s->events.n; i++) {
        const struct series_event *e = (const struct series_event *)s->events.items + i;

        buf_puts(out, i == from ? "\nevents:\n  " : "  ");
        str_fmt(text, sizeof text, "%s %s: %s", clock_rfc3339(e->ts_ns / NS_PER_S * NS_PER_S, when), e->kind, e->text);
        str_printable(text);
        put_wrapped(out, text, 2, 4);
    }
}

static void put_notes(struct buf *out, const struct verdict *v)
{
    const struct analysis *a = v->analysis;
    char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX], line[300];

    for (size_t i = 0; i < a->ndense; i++) {
        str_fmt(line, sizeof line, "%zu short lives from %s to %s: a span of dense restarts supports no conclusion; fix the restarts first",
                a->dense[i].n, clock_rfc3339(a->dense[i].from_ns / NS_PER_S * NS_PER_S, from),
                clock_rfc3339(a->dense[i].to_ns / NS_PER_S * NS_PER_S, to));
        buf_putc(out, '\n');
        put_wrapped(out, line, 0, 4);
    }
    if (a->gap_share > 0.02)
        buf_printf(out, "\n%.0f %% of the window was not sampled\n", 100 * a->gap_share);
}

int output_text(struct buf *out, const struct verdict *v, const struct output_options *o)
{
    put_head(out, v, o);
    put_load(out, v);
    put_verdict(out, v, o);
    put_growing(out, v, o);
    put_list(out, v, "grew and stopped", is_bounded);
    put_list(out, v, "does not grow", is_flat);
    put_unjudged(out, v);
    put_why(out, v);
    put_events(out, v->analysis->series);
    put_notes(out, v);
    if (o->explain)
        for (size_t i = 0; i < v->n; i++)
            put_explain(out, &v->series[i]);
    if (v->next[0]) {
        buf_printf(out, "\n%snext:%s ", term_on(TERM_BOLD, o->colored), term_off(o->colored));
        put_wrapped(out, v->next, 6, 6);
    }
    return out->len >= out->max ? LT_ELIMIT : 0;
}
