/* What needs no statistics: nothing measured, nothing moved, too little. */
#include "verdict/parts.h"

/* A running process has memory, threads and descriptors: only zeros there is a source that is not alive. */
static bool cannot_be_zero(enum metric_id m)
{
    return m == METRIC_RSS || m == METRIC_RSS_ANON || m == METRIC_THREADS || m == METRIC_FDS || m == METRIC_HEAP_USED;
}

bool decide_trivial(struct series_verdict *v, const struct analysis *a)
{
    const struct finding *f = v->finding;
    const char *name = metrics[f->metric].name;
    char text[UNITS_TEXT_MAX];

    if (f->in_use < 8) {
        say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, "too few samples", "%s: %zu samples of it; at least 8 are needed", name, f->in_use);
        say_next(v, "lowtide watch for longer, or with a shorter --interval");
    } else if (f->all_zero && cannot_be_zero(f->metric)) {
        say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, "only zeros", "%s: only zeros, which no running process has: its source is dead", name);
        say_next(v, "lowtide status");
    } else if (f->coverage < 0.5) {
        say(v, VERDICT_INSUFFICIENT, CLASS_FLAT, "too many gaps", "%s: only %.0f %% of the time was sampled; half is the least", name,
            100 * MAX(f->coverage, 0.0));
        say_next(v, "lowtide diagnose %s --since TIME, with a window that has no gap", a->series->target);
    } else if (f->constant && (!a->options.steady || f->in_use >= 24 || f->all_zero)) {
        say(v, VERDICT_OK, CLASS_FLAT, "flat", "%s: stayed at %s", name, amount(f, f->median, text));
    } else {
        return false;
    }
    return true;
}
