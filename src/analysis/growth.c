/* Warm-up, and what grows after it. */
#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/mem.h"

#define WARMUP_BLOCKS 48
#define GROWTH_BLOCKS 36
#define BLOCKS_MIN 8

/* How many blocks a stretch gives: three points each make a floor, and two must do where there are few. */
static size_t block_count(const struct curve *c, size_t most)
{
    size_t points = curve_points(c, c->from, c->to), n = points / 3;

    return MIN(n < BLOCKS_MIN ? points / 2 : n, most);
}

/* ---- warm-up -------------------------------------------------------------------------------------------------- */

/* Whether what follows block k has stopped slowing down: its first third does not rise notably faster than the rest. */
static bool settled_after(const struct blocks *b, size_t k, double slack)
{
    size_t n = b->n - k, third = n / 3;
    struct line lead = stats_line(b->x + k, b->y + k, third);
    struct line rest = stats_line(b->x + k + third, b->y + k + third, n - third);
    double span = b->x1 - b->x0;

    if (isnan(lead.slope) || isnan(rest.slope))
        return true;
    return lead.slope * span * (double)third / (double)b->n
        <= 1.5 * MAX(rest.slope, 0.0) * span * (double)third / (double)b->n + slack;
}

/* The smallest of a few shares, at least `least`, after which the floors rise evenly or not at all. */
void warmup_find(struct warmup *wu, const struct curve *c, struct work *w, double least, size_t *ret_from)
{
    static const double shares[] = { 0, 1.0 / 16, 1.0 / 8, 3.0 / 16, 0.25, 0.3125, 0.375, 0.4375, 0.5 };
    struct blocks b;
    double slack, cut_x;
    size_t at = 0, from = c->from;

    *wu = (struct warmup){ .requests = (double)NAN };
    *ret_from = c->from;
    blocks_make(&b, c, w, block_count(c, WARMUP_BLOCKS));
    if (b.n < BLOCKS_MIN)
        return;
    slack = MAX(2 * c->quantum, (c->memory ? 0.002 : 0.02) * blocks_level(&b, 0, b.n));
    for (size_t i = 0; i < ARRAY_SIZE(shares) && !wu->settled; i++) {
        if (shares[i] < least)
            continue;
        wu->share = shares[i];
        at = (size_t)(shares[i] * (double)b.n);
        wu->settled = settled_after(&b, at, slack);
    }
    cut_x = b.x0 + wu->share * (b.x1 - b.x0);
    while (from + 1 < c->to && curve_x(c, from) < cut_x)
        from++;
    wu->seconds = curve_seconds(c, c->from, from + 1);
    wu->requests = series_requests_between(c->track, c->from, from + 1);
    wu->rise = at >= 1 ? blocks_level(&b, at, at + 2) - blocks_level(&b, 0, 1) : 0;
    *ret_from = from;
}

/* ---- growth --------------------------------------------------------------------------------------------------- */

static double drawdown(const struct blocks *b)
{
    double high = -(double)INFINITY, deepest = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (isnan(b->y[i]))
            continue;
        high = MAX(high, b->y[i]);
        deepest = MAX(deepest, high - b->y[i]);
    }
    return deepest;
}

/* A leak of counts rises in every third of the run, the last one too, and hardly ever falls back. */
static void judge_course(struct growth *g)
{
    double rise = g->last - g->first, share = rise / 3, least;

    g->monotone = g->drawdown <= MAX(g->quantum, 0.15 * rise);
    /* The straighter the line as a whole, the less a single third may owe to chance. */
    least = g->r2 >= 0.95 ? 0.35 : 0.5;
    g->even = rise > 0 && g->r2 >= 0.9 && g->third[0] >= 0.35 * share && g->third[1] >= 0.35 * share && g->third[2] >= least * share
           && g->third[0] <= g->third[2] / (least * 0.9) && g->half[1] >= 0.5 * g->half[0];
}

/* Growth over its typical jump, jumps weighted by their size: one 64 MB heap is one quantum, a thousand pages are many. */
static double quanta(const struct blocks *b, double least)
{
    double high = (double)NAN, sum = 0, sq = 0;

    for (size_t i = 0; i < b->n; i++) {
        if (isnan(b->y[i]))
            continue;
        if (b->y[i] > high) {
            sum += b->y[i] - high;
            sq += (b->y[i] - high) * (b->y[i] - high);
        }
        high = isnan(high) ? b->y[i] : MAX(high, b->y[i]);
    }
    return sum > 0 ? MIN(sum * sum / sq, sum / least) : 0;
}

/* Error of a straight line over that of a logarithm of the work since the traffic began. */
static double against_log(const struct blocks *b, double x_begin)
{
    double lx[BLOCKS_MAX], least = (b->x1 - x_begin) / 256;
    struct line straight = stats_line(b->x, b->y, b->n), curved;

    for (size_t i = 0; i < b->n; i++)
        lx[i] = log(b->x[i] - x_begin + least);
    curved = stats_line(lx, b->y, b->n);
    if (isnan(curved.slope) || isnan(straight.slope) || !(straight.sse > 0))
        return 0;
    return curved.sse > 0 ? straight.sse / curved.sse : (double)INFINITY;
}

static void measure_parts(struct growth *g, const struct blocks *b)
{
    size_t n = b->n, edge = MAX(n / 12, (size_t)1), half = blocks_at(b, 0.5);
    double span = b->x1 - b->x0, at[4];

    g->half[0] = stats_line(b->x, b->y, half).slope * span;
    g->half[1] = stats_line(b->x + half, b->y + half, n - half).slope * span;
    at[0] = blocks_level(b, 0, edge);
    at[3] = blocks_level(b, n - edge, n);
    for (size_t i = 1; i < 3; i++) {
        size_t k = blocks_at(b, (double)i / 3), from = k > edge / 2 ? k - edge / 2 : 0;

        at[i] = blocks_level(b, from, from + edge);
    }
    for (int i = 0; i < 3; i++)
        g->third[i] = at[i + 1] - at[i];
    g->first = at[0];
    g->last = at[3];
    g->late = at[3] - blocks_level(b, half > edge / 2 ? half - edge / 2 : 0, half + (edge + 1) / 2);
}

#define ARENAS (1.5 * (1 << 20)) /* language runtimes take memory by the MiB: one or two late ones are no growth */

/* Healthy runs wander by so much (methods.md 2.9, before there is a history): memory half a percent of its level, a few
 * allocator chunks and, unless the process is small, an arena or two; counts a couple of things. */
static double band_of(const struct curve *c, const struct growth *g)
{
    if (!c->memory)
        return MAX(2 * c->quantum, 0.02 * g->level);
    if (c->quantum < 132 * 1024)
        return MAX(0.005 * g->level, 4 * c->quantum);
    return MAX(0.005 * g->level, MIN(ARENAS, MAX(0.05 * g->level, 4 * c->quantum)));
}

void growth_measure(struct growth *g, struct blocks *b, const struct curve *c, struct work *w, double x_begin)
{
    struct fit f;
    struct line l;
    double t;

    *g = (struct growth){ .from = c->from, .to = c->to, .points = curve_points(c, c->from, c->to), .quantum = c->quantum };
    g->seconds = curve_seconds(c, c->from, c->to);
    g->requests = series_requests_between(c->track, c->from, c->to);
    if (c->by_points)
        blocks_make_by_points(b, c, w, block_count(c, GROWTH_BLOCKS));
    else
        blocks_make(b, c, w, block_count(c, GROWTH_BLOCKS));
    if (b->n < BLOCKS_MIN || blocks_usable(b) < b->n * 3 / 4)
        return;
    f = blocks_fit(b, 0, b->n);
    if (isnan(f.slope))
        return;
    t = stats_t95(f.df);
    g->usable = true;
    g->x_span = b->x1 - b->x0;
    g->level = blocks_level(b, 0, b->n);
    g->slope = (struct interval){ f.slope, f.slope - t * f.se, f.slope + t * f.se };
    g->rise = f.slope * g->x_span;
    g->noise = f.resid_sd;
    measure_parts(g, b);
    g->halves_agree = g->rise > 0 && g->half[0] > 0.4 * g->rise && g->half[1] > 0.4 * g->rise && g->half[1] > 0.6 * g->half[0];
    l = stats_line(b->x, b->y, b->n);
    g->r2 = l.sst > 0 ? 1 - l.sse / l.sst : 0;
    g->against_log = against_log(b, x_begin);
    g->drawdown = drawdown(b);
    g->quanta = quanta(b, c->quantum);
    judge_course(g);
    g->band = band_of(c, g);
    g->visible = MAX(g->band, 2 * t * f.se * g->x_span);
}
