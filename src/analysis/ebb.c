/* The end of the run: when traffic stops, does what grew come back? (methods.md: "Does it ebb?", in small.) */
#include "analysis/parts.h"
#include "base/mem.h"

/* `before`: the floor before it grew; `end`: where the growth was last measured. The first half of the quiet is for
 * keep-alives and collectors; the second is looked at. */
void ebb_look(struct ebb *e, const struct curve *c, struct work *w, const struct load *l, size_t end, double before)
{
    size_t busy = end - l->from, tail_from, last;

    *e = (struct ebb){ .before = before, .peak = (double)NAN, .after = (double)NAN, .returned = (double)NAN };
    if (!(l->tail_s > 0) || end >= c->to || isnan(before))
        return;
    tail_from = end + (c->to - end) / 2;
    last = end - MIN(busy, MAX(busy / 10, (size_t)3));
    e->peak = curve_floor(c, w, last, end, 0.25);
    e->after = curve_floor(c, w, tail_from, c->to, 0.25);
    if (isnan(e->peak) || isnan(e->after))
        return;
    e->known = true;
    if (e->peak > before)
        e->returned = (e->peak - e->after) / (e->peak - before);
}
