/* Small exact statistics over arrays of doubles. NaN is never passed in unless a comment says so. */
#ifndef LT_ANALYSIS_STATS_H
#define LT_ANALYSIS_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Value of rank floor(q * (n-1)) of v[0..n); reorders v; NaN when n == 0. O(n). */
double stats_quantile(double *v, size_t n, double q);
double stats_median(double *v, size_t n); /* mean of the middle two when n is even; reorders */

/* 95th percentile of Student's t (so that +- it is a 90 % interval), df >= 1, within 0.5 % of the tables. */
double stats_t95(double df);

struct line { double slope, at0, sse, sst; size_t n; };
/* Least squares through the points where both are numbers (NaN pairs are skipped); n < 2 or no spread in x: NaN slope. */
struct line stats_line(const double *x, const double *y, size_t n);

/* Kendall's tau-b of y against its order, and its one-sided p for "rising": exact up to n = 10 (ties as
 * inversions), else normal. */
void stats_kendall(const double *y, size_t n, double *ret_tau, double *ret_p);

#define THEIL_SEN_MAX 64
/* Median of all pairwise slopes and its one-sided 95 % lower bound (Sen 1968); n <= THEIL_SEN_MAX; NaN under 3 points. */
void stats_theil_sen(const double *x, const double *y, size_t n, double *ret_slope, double *ret_lo);

#endif
