/* bench-diagnose: milliseconds for a full verdict on a week at 30 s, one series and all of them, memory only and counts. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "lib/synth.h"
#include "verdict/verdict.h"

#define ROUNDS 20

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median of ROUNDS full runs: analysis and verdict; reading the store is not part of it. */
static double median_ms(const struct series *s, const struct analysis_options *o, enum verdict_id *ret)
{
    double ms[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = clock_mono_ns();
        struct analysis *a = NULL;
        struct verdict *v = NULL;

        if (analysis_run(&a, s, o) || verdict_decide(&v, a))
            exit(1);
        ms[i] = (double)(clock_mono_ns() - begin) / 1e6;
        *ret = v->verdict;
        verdict_free(v);
        analysis_free(a);
    }
    qsort(ms, ROUNDS, sizeof *ms, by_value);
    return ms[ROUNDS / 2];
}

static void row(const char *what, const struct series *s, bool steady, uint64_t only)
{
    struct analysis_options o = { .steady = steady, .metrics = only };
    enum verdict_id verdict;
    double ms = median_ms(s, &o, &verdict);

    printf("%-44s %8.2f ms   %s\n", what, ms, verdict_name(verdict));
}

int main(void)
{
    struct synth c = synth_healthy_days(3);
    struct series *s;

    c.seconds = 7 * 86400;
    c.interval_s = 30;
    c.restart_s = c.drop = 0;
    s = synth_series(&c);
    printf("%zu points of every series\n", s->sum.n);
    row("memory by days", s, false, UINT64_C(1) << METRIC_RSS_ANON);
    row("memory as one steady run", s, true, UINT64_C(1) << METRIC_RSS_ANON);
    row("descriptors", s, false, UINT64_C(1) << METRIC_FDS);
    row("all series by days", s, false, 0);
    row("all series as one steady run", s, true, 0);
    series_free(s);
    return 0;
}
