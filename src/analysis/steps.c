/* Jumps: flat, up (or down), flat (methods.md 2.4). Found on medians of blocks, joined to the event next to them. */
#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/mem.h"

#define STEP_BLOCKS 48
#define SIDE 4 /* blocks on each side that must hold the new level */

static double median_of(const double *v, size_t from, size_t to)
{
    double w[BLOCKS_MAX];
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        if (!isnan(v[i]))
            w[n++] = v[i];
    return stats_median(w, n);
}

/* Medians of equal stretches of time: a step is a matter of when, not of how many requests. */
static size_t time_medians(const struct curve *c, struct work *w, double *ret_v, size_t *ret_at)
{
    size_t n = MIN(curve_points(c, c->from, c->to) / 2, (size_t)STEP_BLOCKS);

    for (size_t k = 0; k < n; k++) {
        size_t a = c->from + (c->to - c->from) * k / n, b = c->from + (c->to - c->from) * (k + 1) / n;

        ret_v[k] = curve_median(c, w, a, b);
        ret_at[k] = a;
    }
    return n;
}

static double usual_change(const double *v, size_t n)
{
    double d[BLOCKS_MAX];
    size_t m = 0;

    for (size_t i = 1; i < n; i++)
        if (!isnan(v[i]) && !isnan(v[i - 1]))
            d[m++] = fabs(v[i] - v[i - 1]);
    return stats_median(d, m);
}

int steps_event(const struct series *s, int64_t at_ns, int64_t before_ns, int64_t after_ns)
{
    int best = -1;
    int64_t nearest = INT64_MAX;

    for (size_t i = 0; i < s->events.n; i++) {
        const struct series_event *e = (const struct series_event *)s->events.items + i;
        int64_t d = at_ns - e->ts_ns;

        if (d < -after_ns || d > before_ns)
            continue;
        d = d < 0 ? -d : d;
        if (d < nearest) {
            nearest = d;
            best = (int)i;
        }
    }
    return best;
}

static void add_step(struct finding *f, const struct series *s, const struct curve *c, const size_t *at, size_t k, double delta)
{
    const int64_t *t = c->track->ts_ns;
    int64_t block_ns = t[at[k]] - t[at[k - 1]];
    struct step *st;

    if (f->nsteps >= STEPS_MAX)
        return;
    st = &f->steps[f->nsteps++];
    st->at_ns = t[at[k]];
    st->delta = delta;
    st->event = steps_event(s, t[at[k]], 2 * block_ns, block_ns);
}

/* Level of the blocks from k on minus that of those before. */
static double jump_at(const double *v, size_t k)
{
    double jump = median_of(v, k, k + SIDE) - median_of(v, k - SIDE, k);

    return isnan(jump) ? 0 : jump;
}

/* A slope gives half of its change across the sides within two blocks; a jump nearly all of it (it may lie inside one). */
static bool sharp(const double *v, size_t k, double jump)
{
    double one = fabs(v[k] - v[k - 1]), two = fabs(v[k + 1] - v[k - 1]);

    return MAX(isnan(one) ? 0 : one, isnan(two) ? 0 : two) >= 0.7 * fabs(jump);
}

void steps_find(struct finding *f, const struct series *s, const struct curve *c, struct work *w)
{
    double v[BLOCKS_MAX], usual, least, total = 0;
    size_t at[BLOCKS_MAX], n;

    f->nsteps = 0;
    f->beside_steps = 0;
    n = time_medians(c, w, v, at);
    if (n < 3 * SIDE)
        return;
    usual = usual_change(v, n);
    least = MAX(MAX(8 * 1.4826 * usual, 0.015 * median_of(v, 0, n)), 4 * c->quantum);
    for (size_t k = SIDE; k + SIDE <= n; k++) {
        double jump = jump_at(v, k), next = k + 1 + SIDE <= n ? jump_at(v, k + 1) : 0;

        if (fabs(jump) < least || !sharp(v, k, jump) || (fabs(next) > fabs(jump) && sharp(v, k + 1, next)))
            continue;
        add_step(f, s, c, at, k, jump);
        total += jump;
        k += SIDE - 1;
    }
    f->beside_steps = median_of(v, n - SIDE, n) - median_of(v, 0, SIDE) - total;
}
