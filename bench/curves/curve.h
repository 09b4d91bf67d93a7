/* LT-Curves: labelled weeks of services, healthy and leaking. A case is drawn from (seed, family, number) alone, by a hash
 * of (case, stream, index), so that no draw depends on how many others were made before it.
 */
#ifndef LT_BENCH_CURVE_H
#define LT_BENCH_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DAY_S 86400.0
#define ENDPOINTS_MAX 16
#define EVENTS_MAX 64
#define STEPS_OF_CASE 32
#define LIVES_OF_CASE 512
#define CURVE_BEGIN_NS (INT64_C(1789948800) * 1000000000) /* a midnight, UTC */

/* id, name, class; ok, step, bounded and retention are healthy */
#define FAMILIES(X) \
    X(FLAT, "flat", OK) X(DIURNAL, "diurnal", OK) X(GC_SAW, "gc_saw", OK) X(OU, "ou", OK) X(CRON, "cron", OK) \
    X(STEP, "step", STEP) X(MULTI_STEP, "multi_step", STEP) X(STEP_EVENT, "step_event", STEP) \
    X(WARMUP, "warmup", BOUNDED) X(CACHE_BOUND, "cache_bound", BOUNDED) \
    X(FRAG_LOG, "frag_log", RETENTION) X(RETENTION, "retention", RETENTION) \
    X(DEPLOYS, "deploys", OK) X(AUTOSCALE, "autoscale", OK) X(TRAFFIC_GROWTH, "traffic_growth", OK) \
    X(CREEP_REQ, "creep_req", CREEP) X(CREEP_TIME, "creep_time", CREEP) X(TWO_EP, "two_ep", CREEP) \
    X(CANCEL_ONLY, "cancel_only", CREEP) X(STREAM_ONLY, "stream_only", CREEP) X(VERSION_ONLY, "version_only", CREEP) \
    X(HEALTH_PROBE, "health_probe", CREEP) X(LATE_CREEP, "late_creep", CREEP) X(STEP_CREEP, "step_creep", CREEP) \
    X(STAIR, "stair", CREEP) X(DIURNAL_HIDDEN, "diurnal_hidden", CREEP) \
    X(SAW_OOM, "saw_oom", SAWTOOTH) X(SAW_DAILY, "saw_daily", SAWTOOTH) X(SAW_MAXREQ, "saw_maxreq", SAWTOOTH) \
    X(EXT_BASE, "ext_base", EXTERNAL) X(EXT_SAW, "ext_saw", EXTERNAL) \
    X(FD, "fd", COUNT) X(THREAD, "thread", COUNT) X(CHILD, "child", COUNT) X(CONNECTION, "connection", COUNT) \
    X(TMPFILE, "tmpfile", COUNT)

enum family_id {
#define X(id, name, class) FAMILY_##id,
    FAMILIES(X)
#undef X
    FAMILY_N
};

enum truth { TRUTH_OK, TRUTH_STEP, TRUTH_BOUNDED, TRUTH_RETENTION, TRUTH_CREEP, TRUTH_SAWTOOTH, TRUTH_EXTERNAL, TRUTH_COUNT, TRUTH_N };
enum modifier { MODIFIER_NONE, MODIFIER_GAPS, MODIFIER_CLOCK, MODIFIER_DUPLICATES, MODIFIER_RESTART, MODIFIER_DST, MODIFIER_N };
enum value_id { V_RSS, V_HEAP, V_FDS, V_THREADS, V_CHILDREN, V_CONNECTIONS, V_TMPFILES, V_N };

const char *family_name(enum family_id f);
const char *truth_name(enum truth t);
const char *modifier_name(enum modifier m);
static inline bool truth_is_leak(enum truth t) { return t >= TRUTH_CREEP; }
enum truth family_truth(enum family_id f);

struct label {
    enum family_id family;
    enum truth class;
    bool leak;
    double onset_s;        /* since the begin of the window; NaN: no leak */
    double kb_per_1k;      /* KiB a thousand requests of all endpoints, from the onset on; 0 without a memory leak */
    double per_week;       /* share of base a week, memory leaks; else 0 */
    double count_per_request; /* count leaks */
    enum modifier modifier;
    uint64_t seed;
    unsigned number;
};

struct row { int64_t ts_ns; uint32_t life; int64_t v[V_N]; };
struct curve_life { int32_t pid, ppid; int64_t start_ns, end_ns; bool oom; }; /* end_ns INT64_MAX: running */
struct curve_event { int64_t ts_ns; const char *kind; };
struct curve_gap { int64_t from_ns, to_ns; };

/* no_leak: the same curve had nothing leaked. */
struct curve_options { uint64_t seed; enum family_id family; unsigned number; double days, interval_s; bool no_leak; };

struct curve {
    struct curve_options options;
    struct label label;
    struct row *rows;      /* by life, then in the order read */
    size_t nrows, room;
    struct curve_life lives[LIVES_OF_CASE];
    size_t nlives;
    struct curve_event events[EVENTS_MAX];
    size_t nevents;
    struct curve_gap gaps[EVENTS_MAX];
    size_t ngaps;
    double bin_s;          /* of the request counts */
    size_t nbins, endpoints;
    uint32_t *requests;    /* [bin * ENDPOINTS_MAX + endpoint] */
};

/* NULL: out of memory. */
struct curve *curve_make(const struct curve_options *o);
void curve_free(struct curve *c);

/* ---- random numbers ------------------------------------------------------------------------------------------- */

struct stream { uint64_t key, at; };
struct stream stream_of(const struct curve_options *o, uint64_t which);
double draw(struct stream *s);                                /* [0, 1) */
double draw_between(struct stream *s, double lo, double hi);
double draw_log(struct stream *s, double lo, double hi);      /* log-uniform */
double draw_normal(struct stream *s);
double draw_t4(struct stream *s);                             /* variance 1 */
double draw_poisson(struct stream *s, double mean);

#endif
