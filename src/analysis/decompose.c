/* Days of memory taken apart: half-hour floors are a base for each life and step, plus, each not negative,
 *   load, load of the last two hours, the highest load so far (allocators keep the high water),
 *   excuses: 1-exp(-age/tau), the same by work done, log(1+age); only those that this life was long enough to have shown,
 *   leak: work done, age, and hinges, from where on it goes by age faster.
 * Fitted by non-negative least squares with and without the leak; the bases are taken out first, by subtracting each
 * segment's mean from every column. Where no load is known, the hours of the day take its place. */
#include <stdlib.h>
#include <string.h>

#include "analysis/bins.h"
#include "analysis/decompose.h"
#include "analysis/nnls.h"
#include "analysis/stats.h"
#include "base/clock.h"
#include "base/mem.h"

enum { COL_LOAD, COL_LAGGED, COL_HIGH, COL_AGE_1, COL_AGE_N = COL_AGE_1 + 6, COL_WORK_1 = COL_AGE_N, COL_WORK_N = COL_WORK_1 + 5,
       COL_LOG = COL_WORK_N, COL_LEAK_WORK, COL_LEAK_AGE, COL_HINGE_1, COL_HINGE_N = COL_HINGE_1 + 7, COLS = COL_HINGE_N };

static const double age_taus_h[] = { 0.5, 1.5, 4, 10, 20, 40 };
static const double work_taus_h[] = { 1.5, 4, 10, 20, 40 };
#define LOG_FROM_H 60.0        /* a logarithm shows itself only past this (methods.md 2.5) */
#define ADMIT 4.0              /* an excuse needs a life of so many time constants */
#define ADMIT_GENEROUS 1.5
#define WAVES 4                /* sine and cosine of a day and of half a day */
#define BINS_MIN 24

#define BIT(c) (1u << (c))
#define BITS(from, to) (((1u << ((to) - (from))) - 1) << (from))
#define LOADS BITS(COL_LOAD, COL_AGE_1)
#define LEAKS BITS(COL_LEAK_WORK, COLS)

struct rows {
    const struct bins *b;
    size_t n;
    double x[BINS_MAX][COLS], y[BINS_MAX], wave[BINS_MAX][WAVES];
    double leak[BINS_MAX], left[BINS_MAX]; /* the leak's part as it is, what the fit leaves over */
};

/* ---- columns -------------------------------------------------------------------------------------------------- */

/* Work a life does in an hour, on average: what makes work comparable to hours. */
static double work_per_hour(const struct bins *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += b->bin[i].load;
    return n ? sum / (double)n * 3600 : 0;
}

static void raw_row(double x[COLS], const struct bin *b, double per_hour, double first_h, double last_h)
{
    double work_h = per_hour > 0 ? b->work / per_hour : 0, at_h = (double)b->end_ns / 3.6e12;

    x[COL_LOAD] = b->load;
    x[COL_LAGGED] = b->lagged;
    x[COL_HIGH] = b->high;
    for (size_t k = 0; k < ARRAY_SIZE(age_taus_h); k++)
        x[COL_AGE_1 + k] = 1 - exp(-b->age_h / age_taus_h[k]);
    for (size_t k = 0; k < ARRAY_SIZE(work_taus_h); k++)
        x[COL_WORK_1 + k] = 1 - exp(-work_h / work_taus_h[k]);
    x[COL_LOG] = log(1 + b->age_h);
    x[COL_LEAK_WORK] = work_h;
    x[COL_LEAK_AGE] = b->age_h;
    for (size_t k = 0; k < COL_HINGE_N - COL_HINGE_1; k++)
        x[COL_HINGE_1 + k] = MAX(0.0, at_h - (first_h + (last_h - first_h) * (double)(k + 1) / (COL_HINGE_N - COL_HINGE_1 + 1)));
}

static void fill_rows(struct rows *r, const struct bins *b, size_t n)
{
    double per_hour = work_per_hour(b, n), first_h = (double)b->bin[0].end_ns / 3.6e12, last_h = (double)b->bin[n - 1].end_ns / 3.6e12;

    r->b = b;
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        double phase = 2 * M_PI * fmod((double)b->bin[i].end_ns / 8.64e13, 1.0);

        raw_row(r->x[i], &b->bin[i], per_hour, first_h, last_h);
        r->y[i] = b->bin[i].floor;
        for (size_t k = 0; k < WAVES; k++)
            r->wave[i][k] = k % 2 ? cos(phase * (double)(k / 2 + 1)) : sin(phase * (double)(k / 2 + 1));
    }
}

/* ---- taking out the bases ------------------------------------------------------------------------------------- */

/* Subtracts each segment's mean; v[i * stride] for every row i. */
static void demean(const struct rows *r, double *v, size_t stride)
{
    const struct bin *bin = r->b->bin;

    for (size_t i = 0; i < r->n;) {
        size_t j = i;
        double sum = 0;

        for (; j < r->n && bin[j].segment == bin[i].segment; j++)
            sum += v[j * stride];
        sum /= (double)(j - i);
        for (; i < j; i++)
            v[i * stride] -= sum;
    }
}

/* Takes the (demeaned) wave k out of v. */
static void take_out(const struct rows *r, size_t k, double *v, size_t stride)
{
    double dot = 0, square = 0;

    for (size_t i = 0; i < r->n; i++) {
        dot += v[i * stride] * r->wave[i][k];
        square += r->wave[i][k] * r->wave[i][k];
    }
    if (!(square > 1e-9 * (double)r->n))
        return;
    for (size_t i = 0; i < r->n; i++)
        v[i * stride] -= dot / square * r->wave[i][k];
}

static void take_out_bases(struct rows *r, bool waves)
{
    for (size_t c = 0; c < COLS; c++)
        demean(r, &r->x[0][c], COLS);
    demean(r, r->y, 1);
    if (!waves)
        return;
    for (size_t k = 0; k < WAVES; k++) {
        demean(r, &r->wave[0][k], WAVES);
        for (size_t j = 0; j < k; j++)
            take_out(r, j, &r->wave[0][k], WAVES);
    }
    for (size_t k = 0; k < WAVES; k++) {
        for (size_t c = 0; c < COLS; c++)
            take_out(r, k, &r->x[0][c], COLS);
        take_out(r, k, r->y, 1);
    }
}

static void normal_equations(const struct rows *r, struct nnls *p)
{
    *p = (struct nnls){ .n = COLS };
    for (size_t i = 0; i < r->n; i++) {
        const double *x = r->x[i];

        for (size_t a = 0; a < COLS; a++) {
            for (size_t b = 0; b <= a; b++)
                p->gram[a][b] += x[a] * x[b];
            p->rhs[a] += x[a] * r->y[i];
        }
        p->yy += r->y[i] * r->y[i];
    }
    for (size_t a = 0; a < COLS; a++)
        for (size_t b = 0; b < a; b++)
            p->gram[b][a] = p->gram[a][b];
}

/* ---- which columns -------------------------------------------------------------------------------------------- */

static uint32_t excuses(double life_h, double admit)
{
    uint32_t use = 0;

    for (size_t k = 0; k < ARRAY_SIZE(age_taus_h); k++)
        if (age_taus_h[k] * admit <= life_h)
            use |= BIT(COL_AGE_1 + k);
    for (size_t k = 0; k < ARRAY_SIZE(work_taus_h); k++)
        if (work_taus_h[k] * admit <= life_h)
            use |= BIT(COL_WORK_1 + k);
    return life_h > LOG_FROM_H ? use | BIT(COL_LOG) : use;
}

static double longest_life(const struct bins *b, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = MAX(most, b->bin[i].age_h);
    return most;
}

/* ---- what the fit says ---------------------------------------------------------------------------------------- */

/* The leak's part and what is left over. The part is rebuilt from the columns before their means were taken out. */
static void parts_of_fit(struct rows *r, const double *x)
{
    const struct bins *b = r->b;
    double per_hour = work_per_hour(b, r->n), first_h = (double)b->bin[0].end_ns / 3.6e12;
    double last_h = (double)b->bin[r->n - 1].end_ns / 3.6e12, raw[COLS];

    for (size_t i = 0; i < r->n; i++) {
        r->left[i] = r->y[i];
        for (size_t c = 0; c < COLS; c++)
            r->left[i] -= x[c] * r->x[i][c];
        raw_row(raw, &b->bin[i], per_hour, first_h, last_h);
        r->leak[i] = 0;
        for (size_t c = COL_LEAK_WORK; c < COLS; c++)
            r->leak[i] += x[c] * raw[c];
    }
}

static void residuals(struct evaluation *e, const struct rows *r, size_t columns)
{
    double square = 0, lagged = 0, both = 0;
    size_t segments = r->b->bin[r->n - 1].segment + 1;

    for (size_t i = 0; i < r->n; i++) {
        square += r->left[i] * r->left[i];
        if (i && r->b->bin[i].segment == r->b->bin[i - 1].segment) {
            lagged += r->left[i] * r->left[i - 1];
            both += (r->left[i] * r->left[i] + r->left[i - 1] * r->left[i - 1]) / 2;
        }
    }
    e->rho = both > 0 ? MIN(MAX(lagged / both, 0.0), 0.995) : 0;
    e->n_eff = MAX((double)r->n * (1 - e->rho) / (1 + e->rho), 1.0);
    e->noise = sqrt(square / MAX((double)r->n - (double)segments - (double)columns, 1.0));
}

static void rates(struct evaluation *e, const struct rows *r)
{
    const struct bin *bin = r->b->bin;
    double days = 0, work = 0, spread = 0, since = r->b->bin[r->n - 1].age_h - 24, last = 0, last_days = 0;

    for (size_t i = 1; i < r->n; i++) {
        double d = (bin[i].age_h - bin[i - 1].age_h) / 24, up = r->leak[i] - r->leak[i - 1];

        if (bin[i].life != bin[i - 1].life)
            continue;
        e->rise += up;
        days += d;
        work += bin[i].work - bin[i - 1].work;
        if (bin[i].life == bin[r->n - 1].life && bin[i].age_h > since) {
            last += up;
            last_days += d;
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        double a = r->x[i][COL_LEAK_AGE] / 24;

        spread += a * a;
    }
    e->per_day = last_days > 0.24 ? last / last_days : days > 0 ? e->rise / days : 0;
    e->per_request = r->b->load == LOAD_REQUESTS && work > 0 ? e->rise / work : (double)NAN;
    e->se_day = spread > 0 ? e->noise * sqrt((double)r->n / e->n_eff / spread) : (double)NAN;
}

struct mean { double sum, leak; size_t n; };

/* Mean of leak + left over among the last life's bins whose age lies in (from, to]. */
static struct mean mean_of(const struct rows *r, double from, double to)
{
    struct mean m = { 0 };
    const struct bin *bin = r->b->bin;

    for (size_t i = r->n; i-- > 0 && bin[i].life == bin[r->n - 1].life;)
        if (bin[i].age_h > from && bin[i].age_h <= to) {
            m.sum += r->leak[i] + r->left[i];
            m.leak += r->leak[i];
            m.n++;
        }
    return m;
}

/* The last life lived for a day or more: its last day (or half) against the one before. */
static void late_gain(struct evaluation *e, const struct rows *r)
{
    double age = r->b->bin[r->n - 1].age_h, h = MIN(24.0, age / 2);
    struct mean a = mean_of(r, age - h, age), b = mean_of(r, age - 2 * h, age - h);
    double least = 0.8 * h / r->b->hours;

    if ((double)a.n < least || (double)b.n < least)
        return;
    e->gain_last = (a.sum / (double)a.n - b.sum / (double)b.n) * 24 / h;
    e->gain_fitted = (a.leak / (double)a.n - b.leak / (double)b.n) * 24 / h;
    e->gain_noise = 24 / h * e->noise * sqrt(2 * MIN((1 + e->rho) / (1 - e->rho) / (double)a.n, 1.0));
}

/* Slopes of what grew (y) and of the leak's part (l) against age in days, each within its own stretch of a life. */
struct slopes { double xx, xy, xl; size_t n; };

static void add_stretch(struct slopes *s, const struct rows *r, size_t from, size_t to)
{
    const struct bin *bin = r->b->bin;
    double x = 0, y = 0, l = 0, m = (double)(to - from);

    for (size_t i = from; i < to; i++) {
        x += bin[i].age_h / 24 / m;
        y += (r->leak[i] + r->left[i]) / m;
        l += r->leak[i] / m;
    }
    for (size_t i = from; i < to; i++) {
        double dx = bin[i].age_h / 24 - x;

        s->xx += dx * dx;
        s->xy += dx * (r->leak[i] + r->left[i] - y);
        s->xl += dx * (r->leak[i] - l);
    }
    s->n += to - from;
}

/* Calls add_stretch for the part of each life that lies behind this share of its length and this moment. */
static struct slopes late_slopes(const struct rows *r, double behind, int64_t since_ns)
{
    const struct bin *bin = r->b->bin;
    struct slopes s = { 0 };

    for (size_t i = 0; i < r->n;) {
        size_t j = i, from;

        while (j < r->n && bin[j].life == bin[i].life)
            j++;
        for (from = i; from < j && (bin[from].end_ns < since_ns || bin[from].age_h < behind * bin[j - 1].age_h); )
            from++;
        if (j >= from + 4)
            add_stretch(&s, r, from, j);
        i = j;
    }
    return s;
}

/* Lives are shorter than a day: the slope within those of the last two days. */
static void late_slope(struct evaluation *e, const struct rows *r)
{
    struct slopes s = late_slopes(r, 0, r->b->bin[r->n - 1].end_ns - 48 * 3600 * NS_PER_S);

    if (s.n < BINS_MIN || !(s.xx > 0))
        return;
    e->gain_last = s.xy / s.xx;
    e->gain_fitted = s.xl / s.xx;
    e->gain_noise = e->noise * sqrt(MIN((1 + e->rho) / (1 - e->rho), (double)s.n) / s.xx);
}

static double part_range(const struct rows *r, const double *x, size_t from, size_t to)
{
    double lo = (double)INFINITY, hi = -(double)INFINITY;

    for (size_t i = 0; i < r->n; i++) {
        double v = 0;

        for (size_t c = from; c < to; c++)
            v += x[c] * r->x[i][c];
        lo = MIN(lo, v);
        hi = MAX(hi, v);
    }
    return hi > lo ? hi - lo : 0;
}

static void explained(struct evaluation *e, const struct rows *r, const double *x)
{
    double most = 0;

    e->load_part = part_range(r, x, COL_LOAD, COL_AGE_1);
    e->excuse_part = part_range(r, x, COL_AGE_1, COL_LEAK_WORK);
    for (size_t c = COL_AGE_1; c < COL_LEAK_WORK; c++) {
        double part = part_range(r, x, c, c + 1);

        if (part <= most)
            continue;
        most = part;
        e->excuse_tau_h = c == COL_LOG ? (double)INFINITY : c < COL_WORK_1 ? age_taus_h[c - COL_AGE_1] : work_taus_h[c - COL_WORK_1];
    }
}

static double score_of(double without, double with, double n_eff, double yy)
{
    with = MAX(with, 1e-9 * yy);
    return with > 0 ? MAX(without - with, 0.0) / with * n_eff : 0;
}

#define TREND (BIT(COL_LEAK_WORK) | BIT(COL_LEAK_AGE))
#define HINGES BITS(COL_HINGE_1, COL_HINGE_N)
#define SIMPLER 10.0           /* what fits nearly as well with less is taken: by a score of so much */

/* The simplest fit that is as good as that with everything: a hinge or an excuse that is not needed only blurs the rate. */
static double fit(const struct nnls *p, uint32_t admitted, double n_eff, double *x)
{
    const uint32_t tries[] = { LOADS | TREND, LOADS | TREND | admitted, LOADS | TREND | HINGES };
    double best = nnls_solve(p, LOADS | LEAKS | admitted, x), enough = best * (1 + SIMPLER / n_eff) + 1e-9 * p->yy;

    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        double simple[NNLS_MAX], rss = nnls_solve(p, tries[i], simple);

        if (rss > enough)
            continue;
        memcpy(x, simple, sizeof simple);
        return rss;
    }
    return best;
}

static void judge_lateness(struct evaluation *e, const struct rows *r)
{
    const struct bin *bin = r->b->bin;

    if (bin[r->n - 1].age_h >= 24)
        late_gain(e, r);
    else
        late_slope(e, r);
    if (bin[0].life != bin[r->n - 1].life) {
        struct slopes s = late_slopes(r, 0.5, INT64_MIN);

        e->late_in_life = s.xl > 0 ? s.xy / s.xl : 0;
    }
}

static size_t used(const double *x)
{
    size_t n = 0;

    for (size_t c = 0; c < COLS; c++)
        n += x[c] > 0;
    return n;
}

static void evaluate(struct evaluation *e, struct rows *r, const struct bins *b, size_t n)
{
    struct nnls p;
    double x[NNLS_MAX], none[NNLS_MAX], with;
    uint32_t admitted, generous;

    *e = (struct evaluation){ .bins = n, .late_in_life = (double)NAN, .gain_last = (double)NAN, .gain_fitted = (double)NAN, .gain_noise = (double)NAN };
    if (n < BINS_MIN)
        return;
    e->usable = true;
    e->hours = (double)n * b->hours;
    e->life_hours = longest_life(b, n);
    admitted = excuses(e->life_hours, ADMIT);
    generous = excuses(e->life_hours, ADMIT_GENEROUS);
    fill_rows(r, b, n);
    take_out_bases(r, b->load == LOAD_NONE && e->hours >= 36);
    normal_equations(r, &p);
    nnls_solve(&p, LOADS | LEAKS | generous, x);
    parts_of_fit(r, x);
    residuals(e, r, used(x));
    with = fit(&p, admitted, e->n_eff, x);
    parts_of_fit(r, x);
    residuals(e, r, used(x));
    e->score = score_of(nnls_solve(&p, LOADS | admitted, none), with, e->n_eff, p.yy);
    e->score_generous = score_of(nnls_solve(&p, LOADS | generous, none), with, e->n_eff, p.yy);
    rates(e, r);
    judge_lateness(e, r);
    explained(e, r, x);
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static double median_level(const struct bins *b, struct work *w)
{
    for (size_t i = 0; i < b->n; i++)
        w->v[i] = b->bin[i].floor;
    return stats_median(w->v, b->n);
}

static size_t count_lives(const struct bins *b)
{
    size_t n = b->n > 0;

    for (size_t i = 1; i < b->n; i++)
        n += b->bin[i].life != b->bin[i - 1].life;
    return n;
}

static void cover(struct decomposition *d, const struct bins *b, const struct series *s)
{
    int64_t end = s->sum.ts_ns[s->sum.n - 1], day = 24 * 3600 * NS_PER_S;
    double work[2] = { 0 };

    d->hours = (double)(end - s->sum.ts_ns[0]) / 3.6e12;
    for (size_t k = 0; k < ARRAY_SIZE(d->covered); k++)
        d->covered[k] = d->hours + 0.5 < 24.0 * (double)(k + 1) ? (double)NAN : 0;
    for (size_t i = b->n; i-- > 0;) {
        size_t k = (size_t)((end - b->bin[i].end_ns) / day);

        if (k >= ARRAY_SIZE(d->covered))
            break;
        d->covered[k] += b->hours / 24;
        if (k < 2)
            work[k] += b->bin[i].load;
    }
    d->work_ratio = b->load != LOAD_NONE && work[1] > 0 ? work[0] / work[1] : (double)NAN;
}

/* What load explains is taken out before steps are looked for: a fast morning is not a step. */
static void still(struct bins *b, struct rows *r)
{
    struct nnls p;
    double x[NNLS_MAX];

    bins_lives(b);
    fill_rows(r, b, b->n);
    take_out_bases(r, false);
    normal_equations(r, &p);
    nnls_solve(&p, LOADS | LEAKS | excuses(longest_life(b, b->n), ADMIT), x);
    for (size_t i = 0; i < b->n; i++)
        b->bin[i].still = b->bin[i].floor - x[COL_LOAD] * b->bin[i].load - x[COL_LAGGED] * b->bin[i].lagged - x[COL_HIGH] * b->bin[i].high;
}

struct apart { struct bins bins; struct rows rows; };

struct apart *apart_new(void)
{
    return mem_alloc(sizeof(struct apart));
}

void decompose(struct decomposition *d, struct apart *apart, const struct series *s, const struct curve *c, struct work *w)
{
    struct bins *b = &apart->bins;
    size_t n;

    *d = (struct decomposition){ 0 };
    bins_make(b, s, c, w);
    if (b->n < BINS_MIN)
        return;
    d->usable = true;
    d->load_known = b->load != LOAD_NONE;
    d->level = median_level(b, w);
    d->lives = count_lives(b);
    still(b, &apart->rows);
    bins_steps(b, d, s);
    cover(d, b, s);
    evaluate(&d->now, &apart->rows, b, b->n);
    for (n = b->n; n > 0 && b->bin[n - 1].end_ns > b->bin[b->n - 1].end_ns - 24 * 3600 * NS_PER_S;)
        n--;
    evaluate(&d->day_before, &apart->rows, b, n);
}
