/* PURE: series in, findings out. No I/O, no clock, no globals; the same input gives the same bytes.
 *
 * analysis_run looks at every judged metric of a series and measures: the load, the warm-up, growth with 90 % intervals
 * that know about autocorrelation, two halves, steps, what happens when traffic ends, floors by day, start values by
 * life. It decides nothing: verdict/ does.
 *
 * Sources of the formulas: methods.md of the design, part 2; each function names its own.
 */
#ifndef LT_ANALYSIS_ANALYSIS_H
#define LT_ANALYSIS_ANALYSIS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/decompose.h"
#include "base/metric.h"
#include "series/series.h"

#define BLOCKS_MAX 48
#define DAYS_MAX 40
#define WORKERS_MAX SERIES_OWN_MAX

struct analysis_options {
    bool steady;               /* judged by requests over one run, not by days */
    bool brief;                /* with steady: a look of a minute; memory can then be no more than suspect */
    int64_t utc_offset_ns;     /* of local time, for the low window */
    uint64_t metrics;          /* bit i: judge metric i; 0: all */
};

struct interval { double value, lo, hi; }; /* 90 %; NaN: not known */

/* ---- the load ------------------------------------------------------------------------------------------------- */

enum load_source { LOAD_NONE, LOAD_REQUESTS, LOAD_CPU };

struct load {
    enum load_source source;
    size_t from, to;           /* grid indices of the traffic, [from, to) */
    double seconds;            /* of it */
    double requests;           /* in it; NaN when not known */
    double per_s;              /* mean rate of whatever `source` counts */
    bool constant;             /* the traffic kept its rate from begin to end */
    double low, high;          /* slowest and fastest tenth of the traffic, as a share of the mean */
    double drift;              /* rate of the second half over that of the first */
    double head_s, tail_s;     /* quiet before and after; 0 when there is none worth using */
};

/* ---- one series ----------------------------------------------------------------------------------------------- */

/* Floors of blocks of equal length in x (requests when known, else seconds). */
struct blocks {
    size_t n;
    bool by_requests;
    double x0, x1;             /* ends of the whole */
    double x[BLOCKS_MAX];      /* middle of each block */
    double y[BLOCKS_MAX];      /* floor, NaN when too little was read */
    double top[BLOCKS_MAX];    /* highest value */
};

struct fit { double slope, se, df, mean, resid_sd, rho; size_t n; }; /* NaN slope: too few blocks */

struct growth {
    bool usable;               /* enough blocks to say anything */
    size_t from, to;           /* grid indices that were judged: the traffic after the warm-up */
    double seconds, requests;  /* of them; requests NaN when not known */
    double x_span;             /* length in x of what was judged */
    size_t points;             /* measured values */
    double level;              /* median of the floors */
    double first, last;        /* floor at the begin and at the end (median of two or three blocks) */
    double rise;               /* slope times length */
    struct interval slope;     /* per unit of x */
    double half[2];            /* rise of each half had it gone on for the whole length */
    bool halves_agree;
    double third[3];           /* rise within each third (counts: from block to block) */
    double against_log;        /* squared error of a straight line over that of a logarithm: above 1 it is slowing down */
    double r2;                 /* share of the floors' variation a straight line explains */
    double drawdown;           /* deepest fall below an earlier floor */
    bool monotone;             /* the floors hardly fall back */
    double late;               /* gained in the second half of the work */
    bool even;                 /* every third has its share of the rise, and a straight line explains it */
    double quanta;             /* growth in units of its typical jump */
    double quantum;            /* the smallest jump that counts */
    double noise;              /* sd of the floors around the line */
    double visible;            /* smallest rise over this length that could have been told from noise */
    double band;               /* rise over this length that healthy runs show */
};

struct warmup {
    double share;              /* of the traffic that was cut */
    double seconds, requests;
    double rise;               /* floor at the end of the cut minus that at its begin */
    bool settled;              /* what follows no longer slows down */
};

/* After the traffic ended. */
struct ebb {
    bool known;
    double before, peak, after; /* floor before the growth, at the end of traffic, in the last half of the quiet */
    double returned;            /* share of the growth that came back: 0 none, 1 all */
};

struct day { int64_t begin_ns; double floor; bool usable; };
struct days {
    size_t n;                  /* whole days that end at the window's end, oldest first */
    struct day day[DAYS_MAX];
    size_t low_n;              /* low windows seen */
    struct day low[DAYS_MAX];  /* their floors, oldest first */
    int low_from_min, low_to_min; /* minutes of local day */
    bool low_usable;           /* traffic falls below a tenth of its peak there (or is not known) */
    bool low_traffic_known;
};

struct starts {
    size_t n;                  /* lives that began within the window */
    double tau, p, slope_lo, first, last;
    bool rising;
    bool traffic_known;        /* that they did not begin at ever busier hours was checked */
};

/* Growth inside the lives of workers or restarted roots: what a restart hides. */
struct within {
    size_t lives;              /* looked at: workers when there are three and more, else roots */
    size_t rising;             /* of these, those that rose evenly and by more than the band */
    size_t replaced;           /* of the rising ones, those that ended before the window did */
    size_t maybe;              /* counts: that gained something in the second half of their work too, rising ones included */
    size_t calm;               /* of these, those that did not rise, and whose growth would have shown */
    double median_rise;        /* of the rising ones */
    double per_kreq, per_hour; /* of all lives together; NaN when not known */
};

struct finding {
    enum metric_id metric;
    size_t n;                  /* points measured in the window */
    size_t in_use;             /* of these within the epoch judged */
    double interval_s;         /* median distance of this metric's own points */
    double coverage;           /* share of the epoch that was sampled */
    double min, median, max, now;
    bool all_zero, constant;
    size_t from, to;           /* the epoch judged, grid indices */
    struct load load;
    struct warmup warmup;
    struct blocks blocks;      /* over growth.from..to */
    struct growth growth;
    struct interval per_hour;
    struct interval per_kreq;  /* NaN when no requests are known */
    double band_per_kreq;      /* NaN likewise */
    struct ebb ebb;
    double root_rise;          /* rise of the root process alone; NaN when there is not one root with children */
    size_t nsteps;
    struct step steps[STEPS_MAX];
    double beside_steps;       /* what it rose besides the steps, begin to end */
    struct days days;
    struct decomposition parts; /* memory over days; not usable with steady */
    struct starts starts;
    struct within within;
};

/* ---- the whole ------------------------------------------------------------------------------------------------ */

struct dense { int64_t from_ns, to_ns; size_t n; };
#define DENSE_MAX 16

struct analysis {
    const struct series *series;
    struct analysis_options options;
    size_t epoch;              /* the one judged */
    size_t restarts;           /* roots that ended and were followed by another */
    size_t ndense;
    struct dense dense[DENSE_MAX];
    struct starts starts;      /* of memory (rss_anon, else rss), by root life */
    double gap_share;          /* of the window without samples */
    size_t n;
    struct finding finding[METRIC_N];
};

/* 0 or LT_ENOMEM. The series must outlive the analysis. */
int analysis_run(struct analysis **ret, const struct series *s, const struct analysis_options *options);
void analysis_free(struct analysis *a);
static inline void analysis_freep(struct analysis **a) { analysis_free(*a); }
#define _cleanup_analysis_ __attribute__((cleanup(analysis_freep)))

const struct finding *analysis_find(const struct analysis *a, enum metric_id m); /* NULL: not measured */

#endif
