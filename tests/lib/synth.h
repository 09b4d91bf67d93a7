/* Series of known truth: a service under load, with the habits of healthy ones and, if asked, a leak.
 *
 * A run is drawn from a seed: the same seed gives the same bytes on every machine. Everything in it is stated in the
 * service's own terms (requests a second, bytes a request), so that a test knows what the verdict must be.
 */
#ifndef LT_TESTS_SYNTH_H
#define LT_TESTS_SYNTH_H

#include "lib/random.h"
#include "series/series.h"

struct synth {
    uint64_t seed;
    double seconds, interval_s;   /* of the whole run */
    double head_s, tail_s;        /* quiet before and after the traffic, within seconds */
    double rps;                   /* while there is traffic; Poisson */
    double ramp;                  /* rate at the end over the rate at the begin, 0: 1 */
    double day_low;               /* > 0: traffic follows a day, down to this share of its peak */
    bool no_requests;             /* no request rows */
    bool no_cpu;
    /* memory, bytes */
    double base;
    double warm, warm_requests;   /* warm (1 - exp(-n / warm_requests)) */
    double inflight;              /* bytes a request in flight */
    double noise, rho;            /* AR(1) at the sampling interval */
    double collect, collect_requests; /* cyclic garbage: rises to this, then falls, every so many requests */
    double cache, cache_requests; /* fills evenly to this within so many requests, then stays */
    double chunk;                 /* allocator: memory is taken in these and never given back, 0: as it is */
    double spike;                 /* one-off jump, at half of the run */
    double mem_leak;              /* bytes a request */
    double mem_leak_s;            /* bytes a second, traffic or not */
    /* counts */
    double fds, threads;          /* at rest */
    double latency_s;             /* requests in flight = rate * latency; each has a socket */
    double pool, pool_requests;   /* connections: fills evenly to pool within so many requests */
    double thread_pool;           /* grows with the highest number in flight up to this */
    double late_fd_s;             /* when > 0, one descriptor more from then on */
    double fd_leak, socket_leak, thread_leak, child_leak, zombie_leak, tmp_leak, shm_leak; /* a request; fractions are Poisson */
    double slow_children;         /* children that come and go, on average so many */
    double restart_s;             /* > 0: a new process every so many seconds */
    double drop;                  /* share of samples that is missing */
    double hole_s, hole_at_s;     /* a hole */
    double seldom_s;              /* > 0: temp files and shared memory are read only every so many seconds */
};

/* A service of seven minutes at 20 requests a second, sampled every second, without noise or leak. */
struct synth synth_plain(uint64_t seed);
/* A healthy one with habits drawn from the seed: warm-up, collector, caches, pools, allocator, quiet or not. */
struct synth synth_healthy(uint64_t seed);
/* A healthy one over days, with daily traffic. */
struct synth synth_healthy_days(uint64_t seed);

/* The series; asserts on out of memory. */
struct series *synth_series(const struct synth *c);

/* Whether the run leaves any sample at all (holes and drops may take them all). */
bool synth_has_samples(const struct synth *c);

double synth_uniform(struct random *r); /* [0, 1) */
double synth_between(struct random *r, double lo, double hi);
double synth_normal(struct random *r);
double synth_poisson(struct random *r, double mean);

#endif
