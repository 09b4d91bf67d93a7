/* A series as a sparkline, with restarts and events as their own line under it. */
#include "output/parts.h"

/* The last value of each cell of time; a cell with none repeats nothing: it is a gap. */
static void resample(const struct series *s, const struct column *c, double *cells)
{
    int64_t from = s->from_ns, span = MAX(s->to_ns - s->from_ns, INT64_C(1));
    double held = (double)NAN;
    size_t at = 0;
    int64_t held_ns = from, hole = MAX(3 * span / CURVE_CELLS, (int64_t)(5e9 * s->interval_s));

    for (size_t i = 0; i < CURVE_CELLS; i++) {
        int64_t end = from + (int64_t)((double)span * (double)(i + 1) / CURVE_CELLS);

        for (; at < s->sum.n && s->sum.ts_ns[at] <= end; at++)
            if (!isnan(c->mid[at])) {
                held = c->mid[at];
                held_ns = s->sum.ts_ns[at];
            }
        /* Points further apart than a cell are joined; a hole of three cells and five intervals is shown. */
        cells[i] = end - held_ns > hole ? (double)NAN : held;
    }
}

static size_t cell_of(const struct series *s, int64_t ts)
{
    int64_t span = MAX(s->to_ns - s->from_ns, INT64_C(1));

    return MIN((size_t)((double)(ts - s->from_ns) / (double)span * CURVE_CELLS), (size_t)CURVE_CELLS - 1);
}

static bool put_marks(const struct verdict *v, char line[CURVE_CELLS + 1])
{
    const struct series *s = v->analysis->series;
    bool any = false;

    memset(line, ' ', CURVE_CELLS);
    line[CURVE_CELLS] = '\0';
    VEC_EACH(struct series_event, e, &s->events) {
        if (e->ts_ns < s->from_ns || e->ts_ns > s->to_ns || !e->kind[0])
            continue;
        line[cell_of(s, e->ts_ns)] = e->kind[0];
        any = true;
    }
    for (size_t i = 1; i < s->epochs.n; i++) {
        line[cell_of(s, s->sum.ts_ns[series_epoch_at(s, i)->from])] = 'R';
        any = true;
    }
    return any;
}

void put_curve(struct buf *out, const struct verdict *v, const struct series_verdict *sv, const struct output_options *o)
{
    const struct series *s = v->analysis->series;
    const struct finding *f = sv->finding;
    double cells[CURVE_CELLS];
    char spark[3 * CURVE_CELLS + 1], marks[CURVE_CELLS + 1], lo[UNITS_TEXT_MAX], hi[UNITS_TEXT_MAX];

    resample(s, &s->sum.col[f->metric], cells);
    term_sparkline(cells, CURVE_CELLS, CURVE_CELLS, spark);
    signed_amount(f->metric, f->min, lo);
    signed_amount(f->metric, f->max, hi);
    buf_printf(out, "    %s%s%s  %s .. %s\n", term_on(verdict_color(sv->verdict), o->colored), spark, term_off(o->colored),
               lo[0] == '+' ? lo + 1 : lo, hi[0] == '+' ? hi + 1 : hi);
    if (put_marks(v, marks))
        buf_printf(out, "    %s%s%s  R restart, a-z event\n", term_on(TERM_DIM, o->colored), marks, term_off(o->colored));
}
