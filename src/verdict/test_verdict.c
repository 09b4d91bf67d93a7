/* Verdicts on runs of known truth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/harness.h"
#include "synth/synth.h"
#include "verdict/verdict.h"

struct outcome { struct series *s; struct analysis *a; struct verdict *v; };

static struct outcome judge(const struct synth *c, bool steady)
{
    struct analysis_options o = { .steady = steady };
    struct outcome out = { .s = synth_series(c) };

    assert_int_equal(analysis_run(&out.a, out.s, &o), 0);
    assert_int_equal(verdict_decide(&out.v, out.a), 0);
    return out;
}

static void outcome_release(struct outcome *o)
{
    verdict_free(o->v);
    analysis_free(o->a);
    series_free(o->s);
}

static void show(const struct outcome *o)
{
    for (size_t i = 0; i < o->v->n; i++)
        printf("   %-16s %-12s %s\n", metrics[o->v->series[i].finding->metric].name, verdict_name(o->v->series[i].verdict), o->v->series[i].reason);
}

static void test_sweep(void **state)
{
    size_t n = getenv("N") ? (size_t)atoi(getenv("N")) : 500, tally[VERDICT_N] = { 0 };

    (void)state;
    for (uint64_t seed = 1; seed <= n; seed++) {
        struct synth c = synth_healthy(seed);
        struct outcome o = judge(&c, true);

        tally[o.v->verdict]++;
        if (o.v->verdict == VERDICT_LEAK || (n<=500&&o.v->verdict == VERDICT_SUSPECT) || o.v->verdict == VERDICT_EXTERNAL || (getenv("ALL"))) {
            printf("seed %d: %s\n", (int)seed, verdict_name(o.v->verdict));
            for (size_t i = 0; i < o.v->n; i++)
                if (o.v->series[i].verdict == o.v->verdict && o.v->series[i].decides)
                    printf("   %-16s %-12s %s\n", metrics[o.v->series[i].finding->metric].name, verdict_name(o.v->series[i].verdict), o.v->series[i].reason);
        }
        outcome_release(&o);
    }
    for (int i = 0; i < VERDICT_N; i++)
        printf("%s %zu\n", verdict_name((enum verdict_id)i), tally[i]);
    (void)show;
}

static void test_recall(void **state)
{
    static const char *const names[] = {"fd","socket","thread","child","zombie","tmp","shm","mem"};
    static const double sizes[] = { 12, 16, 25, 50, 200, 2000 };
    (void)state;
    for (int k = 0; k < 8; k++) for (size_t z = 0; z < 6; z++) {
        size_t tally[VERDICT_N] = {0};
        for (uint64_t seed = 1; seed <= 200; seed++) {
            struct synth c = synth_healthy(seed * 7919 + (uint64_t)k);
            double total = c.rps * (c.seconds - c.head_s - c.tail_s);
            double *leak[] = { &c.fd_leak, &c.socket_leak, &c.thread_leak, &c.child_leak, &c.zombie_leak, &c.tmp_leak, &c.shm_leak, &c.mem_leak };
            static const enum metric_id ms[] = { METRIC_FDS, METRIC_CONNECTIONS, METRIC_THREADS, METRIC_CHILDREN, METRIC_ZOMBIES, METRIC_TMPFILES, METRIC_SHM_SEGMENTS, METRIC_RSS_ANON };
            *leak[k] = sizes[z] / total;
            if (k == 7) *leak[k] = c.base * sizes[z] / 1000 / total;
            struct outcome o = judge(&c, true);
            for (size_t i = 0; i < o.v->n; i++) if (o.v->series[i].finding->metric == ms[k]) {
                tally[o.v->series[i].verdict]++;
                if (getenv("MISS") && (size_t)atoi(getenv("MISS")) == (size_t)k && sizes[z] >= 200 && o.v->series[i].verdict != VERDICT_LEAK) printf("%d: %s\n", (int)seed, o.v->series[i].reason);
            }
            outcome_release(&o);
        }
        printf("%-8s %6g:", names[k], sizes[z]);
        for (int i = 0; i < VERDICT_N; i++) printf(" %s %zu", verdict_name((enum verdict_id)i), tally[i]);
        printf("\n");
    }
}

HARNESS_MAIN(CASE(test_recall), CASE(test_sweep))
