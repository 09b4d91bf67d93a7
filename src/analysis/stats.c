#include "analysis/stats.h"

#include <math.h>

#include "base/mem.h"

static void swap(double *a, double *b)
{
    double t = *a;

    *a = *b;
    *b = t;
}

/* Hoare's selection with a median-of-three pivot: v[k] ends where a sort would put it. */
static double select_rank(double *v, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;

    while (hi > lo) {
        size_t i = lo, j = hi, mid = lo + (hi - lo) / 2;
        double pivot;

        if (v[mid] < v[lo])
            swap(&v[mid], &v[lo]);
        if (v[hi] < v[lo])
            swap(&v[hi], &v[lo]);
        if (v[hi] < v[mid])
            swap(&v[hi], &v[mid]);
        pivot = v[mid];
        while (i <= j) {
            while (v[i] < pivot)
                i++;
            while (v[j] > pivot)
                j--;
            if (i <= j) {
                swap(&v[i], &v[j]);
                i++;
                if (!j)
                    break;
                j--;
            }
        }
        if (k <= j)
            hi = j;
        else if (k >= i)
            lo = i;
        else
            break;
    }
    return v[k];
}

double stats_quantile(double *v, size_t n, double q)
{
    if (!n)
        return (double)NAN;
    return select_rank(v, n, (size_t)(q * (double)(n - 1)));
}

double stats_median(double *v, size_t n)
{
    double hi, lo;

    if (!n)
        return (double)NAN;
    hi = select_rank(v, n, n / 2);
    if (n % 2)
        return hi;
    lo = v[0];
    for (size_t i = 1; i < n / 2; i++)
        lo = v[i] > lo ? v[i] : lo;
    return lo + (hi - lo) / 2;
}

double stats_t95(double df)
{
    static const double table[] = { 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812 };
    const size_t n = ARRAY_SIZE(table);
    const double z = 1.644854;

    if (!(df > 1))
        return table[0];
    if (df < (double)n) {
        size_t i = (size_t)df;
        double share = df - (double)i;

        return table[i - 1] + share * (table[i] - table[i - 1]);
    }
    /* Cornish-Fisher expansion in 1/df (Abramowitz and Stegun 26.7.5). */
    return z + (z * z * z + z) / (4 * df) + (5 * pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * df * df);
}

struct line stats_line(const double *x, const double *y, size_t n)
{
    struct line l = { .slope = (double)NAN, .at0 = (double)NAN };
    double mx = 0, my = 0, sxx = 0, sxy = 0;

    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i]))
            continue;
        l.n++;
        mx += (x[i] - mx) / (double)l.n;
        my += (y[i] - my) / (double)l.n;
    }
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]) || isnan(y[i]))
            continue;
        sxx += (x[i] - mx) * (x[i] - mx);
        sxy += (x[i] - mx) * (y[i] - my);
        l.sst += (y[i] - my) * (y[i] - my);
    }
    if (l.n < 2 || !(sxx > 0))
        return l;
    l.slope = sxy / sxx;
    l.at0 = my - l.slope * mx;
    for (size_t i = 0; i < n; i++) {
        double e = y[i] - l.at0 - l.slope * x[i];

        if (!isnan(e))
            l.sse += e * e;
    }
    return l;
}

/* Share of the n! orders with at most `inversions` inversions: the exact null distribution of Kendall's S. */
static double kendall_exact(size_t n, size_t inversions)
{
    double count[46] = { 1 }, total = 1, below = 0;
    size_t most = n * (n - 1) / 2;

    for (size_t k = 2; k <= n; k++) {
        double next[46] = { 0 };

        for (size_t i = 0; i <= most; i++)
            for (size_t j = 0; j < k && j <= i; j++)
                next[i] += count[i - j];
        for (size_t i = 0; i <= most; i++)
            count[i] = next[i];
        total *= (double)k;
    }
    for (size_t i = 0; i <= inversions && i <= most; i++)
        below += count[i];
    return below / total;
}

void stats_kendall(const double *y, size_t n, double *ret_tau, double *ret_p)
{
    double up = 0, down = 0, pairs = (double)n * ((double)n - 1) / 2, nd = (double)n;

    *ret_tau = 0;
    *ret_p = 1;
    if (n < 2)
        return;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++) {
            up += y[j] > y[i];
            down += y[j] < y[i];
        }
    if (up + down == 0)
        return;
    *ret_tau = (up - down) / sqrt((up + down) * pairs);
    if (n <= 10) /* a tie counts as an inversion: never too sure */
        *ret_p = kendall_exact(n, (size_t)(pairs - up));
    else
        *ret_p = 0.5 * erfc((up - down - 1) / sqrt(nd * (nd - 1) * (2 * nd + 5) / 18) / sqrt(2));
}

void stats_theil_sen(const double *x, const double *y, size_t n, double *ret_slope, double *ret_lo)
{
    double s[THEIL_SEN_MAX * (THEIL_SEN_MAX - 1) / 2], nd = (double)n, width, rank;
    size_t m = 0;

    *ret_slope = *ret_lo = (double)NAN;
    if (n < 3 || n > THEIL_SEN_MAX)
        return;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            if (x[j] != x[i])
                s[m++] = (y[j] - y[i]) / (x[j] - x[i]);
    if (!m)
        return;
    width = 1.644854 * sqrt(nd * (nd - 1) * (2 * nd + 5) / 18);
    rank = ((double)m - width) / 2;
    *ret_lo = select_rank(s, m, rank > 0 ? (size_t)rank : 0);
    *ret_slope = stats_median(s, m);
}
