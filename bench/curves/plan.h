/* What a case is made of, before it runs. */
#ifndef LT_BENCH_PLAN_H
#define LT_BENCH_PLAN_H

#include "curve.h"

struct jump { double at_s, bytes; };

struct plan {
    /* traffic */
    double begin_h, rps, peak_h, trough, weekend, growth, mix_sd, mix[ENDPOINTS_MAX];
    int weekday;
    /* memory */
    double base, flight, busy, noise, rho, warm, warm_requests;
    bool still;                        /* noise holds still and jumps */
    double kept, release_s, quantum;   /* allocator */
    double saw, saw_period_s;          /* collector */
    double wander, wander_s;
    double spike, spike_every_s, spike_s, spike_at_s;
    double slow, slow_tau_s;           /* warm-up by time */
    double cache, cache_full_s, ttl_s; /* ttl_s > 0: follows the load */
    double frag, frag_tau_s;           /* kept by the allocator only */
    double arena, arena_bursts;
    size_t nbursts;
    double burst_at_s[STEPS_OF_CASE], burst;
    size_t njumps;
    struct jump jumps[STEPS_OF_CASE];
    /* leak */
    double size, onset_s, ext, share, weight;
    size_t nstairs;
    double stair_at_s[STEPS_OF_CASE];
    double count_leak;
    /* lives */
    size_t nrestarts;
    double restart_at_s[LIVES_OF_CASE];
    double max_requests, limit;
    /* counts */
    double fds, threads, thread_pool, children, pool, pool_requests;
    size_t workers;
};

void plan_case(struct plan *p, struct curve *c);

/* Traffic: requests by bin and endpoint; units: what leaks, by bin. Sums are before each bin (nbins + 1). */
struct traffic { double *rate, *requests, *units; };
int traffic_make(struct traffic *t, struct plan *p, struct curve *c);
void traffic_free(struct traffic *t);
double traffic_at(const double *sums, const struct curve *c, double t_s); /* of a sum, linear within the bin */
double traffic_rate(const struct traffic *t, const struct curve *c, double t_s);

#endif
