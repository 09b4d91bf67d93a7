#include "analysis/bins.h"
#include "analysis/stats.h"
#include "base/clock.h"
#include "base/mem.h"

#define COVERED 0.34           /* of a bin's points must be there */
#define LAG_H 2.0
#define SIDE 6                 /* bins, three hours, on each side of a step */
#define STAIR_MIN 5            /* that many up, and four times as many as down */

/* ---- making --------------------------------------------------------------------------------------------------- */

static enum load_source source_of(const struct series *s)
{
    if (s->sum.req && s->requests > 0)
        return LOAD_REQUESTS;
    return s->sum.col[METRIC_CPU_NS].n > s->sum.n / 2 ? LOAD_CPU : LOAD_NONE;
}

static size_t life_at(const struct series *s, size_t i, size_t hint)
{
    while (hint + 1 < s->epochs.n && series_epoch_at(s, hint + 1)->from <= i)
        hint++;
    return hint;
}

/* One bin of the points [from, to), all of one life; false: too few. */
static bool fill(struct bin *x, const struct curve *c, struct work *w, size_t from, size_t to, double expected)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        if (!isnan(c->col->floor[i]))
            w->v[n++] = c->col->floor[i];
    if (n < 2 || (double)n < COVERED * expected)
        return false;
    x->floor = stats_quantile(w->v, n, 0.1);
    return true;
}

/* Where one life's points lie: loads, ages and what follows from them. */
static void follow(struct bins *b, const struct series *s, struct bin *x, size_t from, size_t to, bool first)
{
    struct bin *last = first ? NULL : &b->bin[b->n - 1];
    double dt = (double)(s->sum.ts_ns[to - 1] - s->sum.ts_ns[from]) / 1e9, done = load_work(s, b->load, from, to - 1) / (b->load == LOAD_CPU ? 1e9 : 1);
    double keep;

    x->load = dt > 0 ? done / dt : 0;
    x->high = x->lagged = x->load;
    x->work = 0;
    if (!last)
        return;
    keep = exp(-(x->age_h - last->age_h) / LAG_H);
    x->lagged = keep * last->lagged + (1 - keep) * last->load;
    x->high = MAX(last->high, x->load);
    x->work = last->work + (x->load + last->load) / 2 * (x->age_h - last->age_h) * 3600;
}

static void add(struct bins *b, const struct series *s, const struct curve *c, struct work *w, size_t from, size_t to, size_t life,
                double expected)
{
    struct bin *x = &b->bin[b->n];
    int64_t begin = s->epochs.n ? s->sum.ts_ns[series_epoch_at(s, life)->from] : s->sum.ts_ns[0];
    bool first = !b->n || b->bin[b->n - 1].life != life;

    if (b->n >= BINS_MAX || to <= from + 1 || !fill(x, c, w, from, to, expected))
        return;
    x->life = life;
    x->end_ns = s->sum.ts_ns[to - 1];
    x->age_h = (double)(x->end_ns - begin) / 3.6e12;
    follow(b, s, x, from, to, first);
    b->n++;
}

/* Bins end with the window; each holds points of one life: the one that has its end. */
void bins_make(struct bins *b, const struct series *s, const struct curve *c, struct work *w)
{
    const int64_t *t = s->sum.ts_ns;
    size_t n = s->sum.n, i = 0, life = 0;
    int64_t width = BIN_NS, span, end;
    double expected;

    b->n = 0;
    b->load = source_of(s);
    b->hours = 0.5;
    if (n < 2)
        return;
    span = t[n - 1] - t[0];
    while (span / width >= BINS_MAX)
        width *= 2;
    b->hours = (double)width / 3.6e12;
    expected = MIN((double)width / 1e9 / MAX(s->interval_s, 1e-3), (double)n) * (double)c->col->n / (double)n;
    end = t[n - 1] - span / width * width;
    for (; i < n; end += width) {
        size_t from = i, to;

        while (i < n && t[i] <= end)
            i++;
        to = i;
        if (to == from)
            continue;
        life = life_at(s, to - 1, life);
        if (s->epochs.n)
            from = MAX(from, series_epoch_at(s, life)->from);
        add(b, s, c, w, from, to, life, expected);
    }
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

static double median_floor(const struct bins *b, size_t from, size_t to)
{
    double v[2 * SIDE];
    size_t n = 0;

    for (size_t i = from; i < to && n < ARRAY_SIZE(v); i++)
        v[n++] = b->bin[i].still;
    return stats_median(v, n);
}

/* The usual change from bin to bin: a median, so that a few jumps do not count. */
static double usual_change(const struct bins *b)
{
    double v[BINS_MAX];
    size_t n = 0;

    for (size_t i = 1; i < b->n; i++)
        if (b->bin[i].life == b->bin[i - 1].life)
            v[n++] = fabs(b->bin[i].still - b->bin[i - 1].still);
    return n ? stats_median(v, n) : 0;
}

/* What the floor does within [from, to) by itself: the difference of its halves' medians. */
static double slope_within(const struct bins *b, size_t from, size_t to)
{
    size_t mid = (from + to) / 2;

    return fabs(median_floor(b, mid, to) - median_floor(b, from, mid));
}

/* The jump between bin i-1 and i (or over i, when it lies inside that bin), flat before and after it; 0: there is none. */
static double jump_at(const struct bins *b, size_t i, double least)
{
    double one, two, lasting;
    size_t life = b->bin[i].life;

    if (i < SIDE || i + SIDE + 1 > b->n || b->bin[i - SIDE].life != life || b->bin[i + SIDE].life != life)
        return 0;
    one = b->bin[i].still - b->bin[i - 1].still;
    two = b->bin[i + 1].still - b->bin[i - 1].still;
    if (fabs(two) > fabs(one))
        one = two;
    if (fabs(one) <= least)
        return 0;
    lasting = median_floor(b, i + 1, i + 1 + SIDE) - median_floor(b, i - SIDE, i);
    if (lasting * one <= 0 || fabs(lasting) <= 0.7 * fabs(one) || fabs(lasting) <= least || fabs(one) < 0.7 * fabs(lasting))
        return 0;
    return MAX(slope_within(b, i - SIDE, i), slope_within(b, i + 1, i + 1 + SIDE)) < 0.25 * fabs(lasting) ? lasting : 0;
}

static size_t collect(const struct bins *b, struct decomposition *d, const struct series *s, double least, size_t *at)
{
    size_t n = 0;

    for (size_t i = SIDE; i + SIDE < b->n && n < STEPS_MAX; i++) {
        double jump = jump_at(b, i, least);

        if (jump == 0)
            continue;
        while (i + 1 + SIDE < b->n && fabs(jump_at(b, i + 1, least)) > fabs(jump))
            jump = jump_at(b, ++i, least);
        d->steps[n] = (struct step){ .at_ns = b->bin[i].end_ns - (int64_t)(b->hours * 1.8e12), .delta = jump };
        d->steps[n].event = steps_event(s, d->steps[n].at_ns, 3 * BIN_NS, BIN_NS);
        at[n++] = i;
        i += SIDE / 2;
    }
    return n;
}

static bool is_staircase(const struct decomposition *d)
{
    size_t up = 0, down = 0;

    for (size_t i = 0; i < d->nsteps; i++)
        *(d->steps[i].delta > 0 ? &up : &down) += 1;
    return up >= STAIR_MIN && up >= 4 * down;
}

void bins_lives(struct bins *b)
{
    for (size_t i = 0; i < b->n; i++)
        b->bin[i].segment = i ? b->bin[i - 1].segment + (b->bin[i].life != b->bin[i - 1].life) : 0;
}

void bins_steps(struct bins *b, struct decomposition *d, const struct series *s)
{
    double least = MAX(8 * 1.4826 * usual_change(b), 0.015 * d->level);
    size_t at[STEPS_MAX], next = 0, segment = 0;

    d->nsteps = collect(b, d, s, least, at);
    d->staircase = is_staircase(d);
    for (size_t i = 0; i < b->n; i++) {
        bool step = !d->staircase && next < d->nsteps && at[next] == i;

        segment += step || (i && b->bin[i].life != b->bin[i - 1].life);
        if (step)
            d->steps_total += d->steps[next++].delta;
        b->bin[i].segment = segment;
    }
}
