/* What people alert on today, on the summed rss_anon of the same curves, each in its usual form. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stats.h"
#include "base/mem.h"
#include "score.h"

static const struct { const char *name, *rule; } table[] = {
#define X(id, name, rule) { name, rule },
    BASELINES(X)
#undef X
};

const char *baseline_name(enum baseline_id b) { return table[b].name; }
const char *baseline_rule(enum baseline_id b) { return table[b].rule; }

#define HOURS_MAX 800
struct hours {
    size_t n;
    double mean[HOURS_MAX], min[HOURS_MAX], slope[HOURS_MAX]; /* slope: rise within the hour; NaN: not sampled */
};

static void look(struct hours *h, const struct series *s)
{
    const double *y = s->sum.col[METRIC_RSS_ANON].mid;
    int64_t begin = s->from_ns;
    size_t i = 0;

    h->n = 0;
    while (y && i < s->sum.n && h->n < HOURS_MAX) {
        int64_t end = begin + (int64_t)(h->n + 1) * 3600 * 1000000000;
        double x[512], v[512], sum = 0, least = INFINITY;
        size_t n = 0;

        for (; i < s->sum.n && s->sum.ts_ns[i] < end; i++)
            if (!isnan(y[i]) && n < 512) {
                x[n] = (double)(s->sum.ts_ns[i] - begin) / 3600e9;
                v[n++] = y[i];
                sum += y[i];
                least = fmin(least, y[i]);
            }
        h->mean[h->n] = n ? sum / (double)n : (double)NAN;
        h->min[h->n] = n ? least : (double)NAN;
        h->slope[h->n++] = n > 60 ? stats_line(x, v, n).slope : (double)NAN;
    }
}

/* Mean over hours [from, to), NaN ones left out. */
static double mean_of(const double *v, size_t from, size_t to)
{
    double sum = 0, n = 0;

    for (size_t i = from; i < to; i++)
        if (!isnan(v[i])) {
            sum += v[i];
            n++;
        }
    return n > 0 ? sum / n : (double)NAN;
}

static bool predict(const struct hours *h)
{
    double first[24], x[6] = { 0, 1, 2, 3, 4, 5 }, limit;
    size_t n = 0, run = 0;

    for (size_t i = 0; i < 24 && i < h->n; i++)
        if (!isnan(h->mean[i]))
            first[n++] = h->mean[i];
    limit = 2 * stats_median(first, n);
    for (size_t i = 6; i <= h->n; i++) {
        struct line l = stats_line(x, h->mean + i - 6, 6);

        run = l.at0 + l.slope * 9 > limit ? run + 1 : 0;
        if (run == 2)
            return true;
    }
    return false;
}

/* Every day's lowest value is above the last one's by `more`; hours from..to of the day, of UTC. */
static bool ascending(const struct hours *h, const struct series *s, int from, int to, double more)
{
    size_t begin_h = (size_t)(s->from_ns / 3600000000000 % 24), days = h->n / 24, n = 0;
    double last = (double)NAN;

    for (size_t d = 0; d < days; d++) {
        double least = INFINITY;

        for (size_t i = d * 24; i < d * 24 + 24; i++)
            if ((int)((begin_h + i) % 24) >= from && (int)((begin_h + i) % 24) < to && !isnan(h->min[i]))
                least = fmin(least, h->min[i]);
        if (isinf(least))
            continue;
        if (n++ && least <= last * (1 + more))
            return false;
        last = least;
    }
    return n >= 3;
}

static bool theil_sen(const struct hours *h)
{
    double x[THEIL_SEN_MAX], y[THEIL_SEN_MAX], slope, lo, v;
    size_t n = 0, width = MAX((size_t)3, (h->n + THEIL_SEN_MAX - 1) / THEIL_SEN_MAX);

    for (size_t i = 0; i + width <= h->n && n < THEIL_SEN_MAX; i += width)
        if (!isnan(v = mean_of(h->mean, i, i + width))) {
            x[n] = (double)i;
            y[n++] = v;
        }
    if (n < 3)
        return false;
    stats_theil_sen(x, y, n, &slope, &lo);
    return lo > 0 && slope * 168 > 0.05 * stats_median(y, n);
}

static bool mann_kendall(const struct hours *h)
{
    double y[HOURS_MAX], tau, p;
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++)
        if (!isnan(h->mean[i]))
            y[n++] = h->mean[i];
    if (n < 3)
        return false;
    stats_kendall(y, n, &tau, &p);
    return tau > 0 && p < 0.01;
}

void baselines(const struct series *s, bool ret[BASELINE_N])
{
    struct hours *h = mem_zalloc(1, sizeof *h);

    memset(ret, 0, BASELINE_N * sizeof *ret);
    if (!h)
        return;
    look(h, s);
    if (h->n) {
        ret[BASELINE_FIRST_LAST] = h->mean[h->n - 1] > 1.1 * h->mean[0];
        for (size_t i = 0; i < h->n; i++)
            ret[BASELINE_OLS_1H] |= h->slope[i] > 0.1 * h->mean[i];
        ret[BASELINE_PREDICT] = predict(h);
        ret[BASELINE_BUCKET] = ascending(h, s, 0, 24, 0);
        ret[BASELINE_MANN_KENDALL] = mann_kendall(h);
        ret[BASELINE_THEIL_SEN] = theil_sen(h);
        ret[BASELINE_EBB] = ascending(h, s, 2, 5, 0.003);
    }
    mem_free(h);
}
