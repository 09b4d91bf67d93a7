/* Floors of blocks, and straight lines through them with honest widths. */
#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/mem.h"

size_t curve_points(const struct curve *c, size_t from, size_t to)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        n += !isnan(c->col->mid[i]);
    return n;
}

static size_t collect(const double *v, size_t from, size_t to, struct work *w)
{
    size_t n = 0;

    for (size_t i = from; i < to; i++)
        if (!isnan(v[i]))
            w->v[n++] = v[i];
    return n;
}

double curve_median(const struct curve *c, struct work *w, size_t from, size_t to)
{
    return stats_median(w->v, collect(c->col->mid, from, to, w));
}

double curve_floor(const struct curve *c, struct work *w, size_t from, size_t to, double q)
{
    return stats_quantile(w->v, collect(c->col->floor, from, to, w), q);
}

/* p10 of a block; the lowest where there are fewer than ten points. */
static void block_close(struct blocks *b, size_t k, struct work *w, size_t n, double top)
{
    if (n < 2 || k >= b->n)
        return;
    b->y[k] = stats_quantile(w->v, n, 0.1);
    b->top[k] = top;
}

void blocks_make(struct blocks *b, const struct curve *c, struct work *w, size_t n)
{
    size_t k = 0, held = 0;
    double top = -(double)INFINITY, span;

    *b = (struct blocks){ .n = n < BLOCKS_MAX ? n : BLOCKS_MAX, .by_requests = c->by_requests };
    if (c->to < c->from + 2)
        b->n = 0;
    if (!b->n)
        return;
    b->x0 = curve_x(c, c->from);
    b->x1 = curve_x(c, c->to - 1);
    span = b->x1 - b->x0;
    for (size_t i = 0; i < b->n; i++) {
        b->x[i] = b->x0 + span * ((double)i + 0.5) / (double)b->n;
        b->y[i] = b->top[i] = (double)NAN;
    }
    for (size_t i = c->from; i < c->to && span > 0; i++) {
        size_t at = MIN((size_t)((curve_x(c, i) - b->x0) / span * (double)b->n), b->n - 1);

        if (at != k) {
            block_close(b, k, w, held, top);
            held = 0;
            top = -(double)INFINITY;
            k = at;
        }
        if (isnan(c->col->floor[i]))
            continue;
        w->v[held++] = c->col->floor[i];
        top = MAX(top, c->col->max[i]);
    }
    block_close(b, k, w, held, top);
}

/* The same with equal numbers of points: for work that comes in bursts, where equal stretches of it would hold none. */
void blocks_make_by_points(struct blocks *b, const struct curve *c, struct work *w, size_t n)
{
    size_t points = curve_points(c, c->from, c->to), seen = 0, k = 0, held = 0;
    double x = 0, top = -(double)INFINITY;

    *b = (struct blocks){ .n = points >= 2 * n ? MIN(n, (size_t)BLOCKS_MAX) : 0, .by_requests = c->by_requests };
    if (!b->n)
        return;
    b->x0 = curve_x(c, c->from);
    b->x1 = curve_x(c, c->to - 1);
    for (size_t i = c->from; i < c->to; i++) {
        if (isnan(c->col->floor[i]))
            continue;
        w->v[held++] = c->col->floor[i];
        x += curve_x(c, i);
        top = MAX(top, c->col->max[i]);
        if (++seen * b->n < (k + 1) * points)
            continue;
        b->x[k] = x / (double)held;
        b->y[k] = b->top[k] = (double)NAN;
        block_close(b, k++, w, held, top);
        held = 0;
        x = 0;
        top = -(double)INFINITY;
    }
}

size_t blocks_at(const struct blocks *b, double share)
{
    size_t i = 0;

    while (i < b->n && b->x[i] < b->x0 + share * (b->x1 - b->x0))
        i++;
    return i;
}

size_t blocks_usable(const struct blocks *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += !isnan(b->y[i]);
    return n;
}

double blocks_level(const struct blocks *b, size_t from, size_t to)
{
    double v[BLOCKS_MAX];
    size_t n = 0;

    for (size_t i = from; i < to && i < b->n; i++)
        if (!isnan(b->y[i]))
            v[n++] = b->y[i];
    return stats_median(v, n);
}

/* Lag-1 autocorrelation of the residuals, corrected for the line taken out of them (each fitted parameter pulls it
 * down by about 1/n; Kendall 1954 for the mean, the trend costs the same again). */
static double residual_rho(const struct blocks *b, size_t from, size_t to, struct line l)
{
    double lag = 0, all = 0, last = (double)NAN, rho;

    for (size_t i = from; i < to; i++) {
        double e = b->y[i] - l.at0 - l.slope * b->x[i];

        if (!isnan(e) && !isnan(last))
            lag += e * last;
        if (!isnan(e))
            all += e * e;
        last = e;
    }
    if (!(all > 0))
        return 0;
    rho = lag / all;
    rho += (2 + 4 * MAX(rho, 0.0)) / (double)l.n;
    return MIN(MAX(rho, 0.0), 0.95);
}

/* Ordinary least squares; the variance is that of independent points times (1+rho)/(1-rho), and the degrees of freedom
 * shrink likewise: n_eff = n (1-rho)/(1+rho) (methods.md 2.5). */
struct fit blocks_fit(const struct blocks *b, size_t from, size_t to)
{
    struct line l = stats_line(b->x + from, b->y + from, to > from ? to - from : 0);
    struct fit f = { .slope = (double)NAN, .se = (double)NAN, .df = 1, .n = l.n };
    double sxx = 0, mx = 0, inflate;
    size_t n = 0;

    if (l.n < 4 || isnan(l.slope))
        return f;
    for (size_t i = from; i < to; i++)
        if (!isnan(b->y[i]))
            mx += (b->x[i] - mx) / (double)++n;
    for (size_t i = from; i < to; i++)
        if (!isnan(b->y[i]))
            sxx += (b->x[i] - mx) * (b->x[i] - mx);
    f.rho = residual_rho(b, from, to, l);
    inflate = (1 + f.rho) / (1 - f.rho);
    f.slope = l.slope;
    f.mean = l.at0 + l.slope * mx;
    f.resid_sd = sqrt(l.sse / (double)(l.n - 2));
    f.se = f.resid_sd * sqrt(inflate / sxx);
    f.df = MAX((double)l.n / inflate - 2, 2.0);
    return f;
}
