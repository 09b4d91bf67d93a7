/* A window of one target's samples as arrays, with requests, events, gaps and lives joined on.
 *
 * Built either from the store (series_load) or by hand (doctor, tests):
 *     series_new, then series_life / series_event / series_gap / series_request in any order,
 *     series_time for every moment of the roots, series_plan,
 *     series_point for every point of every life (one life after the other, roots before the others, in time order: a
 *     point that goes back in time is dropped), series_finish.
 *
 * Times are put on one grid: every moment a root was read, at most SERIES_POINTS_MAX of them; when there are more, k
 * consecutive moments share a bin and floor = p10, mid = median, max = maximum of what fell into it (k == 1: all agree).
 * NaN means "not measured". A value of a child that was not read in a bin is carried forward for a short while, so that
 * the sum over a tree does not dip when one process is read later than the others; a root's is not.
 */
#ifndef LT_SERIES_SERIES_H
#define LT_SERIES_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "store/store.h"

#define SERIES_POINTS_MAX 20160  /* points of the grid: a week at 30 s */
#define SERIES_LIVES_MAX 32768
#define SERIES_EVENTS_MAX 4096
#define SERIES_GAPS_MAX 4096
#define SERIES_EPOCHS_MAX 32768
#define SERIES_OWN_MAX 64        /* lives that keep columns of their own */
#define SERIES_OWN_MIN_POINTS 24
#define SERIES_TARGET_MAX 64
#define SERIES_TEXT_MAX 120

/* One metric over a track. All three are one array while the grid is not binned; NULL when never measured (n == 0). */
struct column {
    double *floor, *mid, *max;
    size_t n; /* measured points */
};

/* Metrics over common times. */
struct track {
    size_t n;
    const int64_t *ts_ns;  /* the grid's, or a part of it */
    const double *req;     /* requests served since the window's begin, NULL when no requests are known */
    struct column col[METRIC_N];
};

struct series_life {
    int64_t id;
    struct life_key key;
    int32_t ppid;
    int64_t start_ns;           /* wall time the process began */
    int64_t first_ns, last_ns;  /* of its samples within the window; CLOCK_INVALID when none */
    struct life_end end;
    char comm[COMM_MAX];
    char role[ROLE_MAX];
    uint64_t samples;           /* over its whole life */
    int64_t first[METRIC_N], last[METRIC_N];
    bool root;                  /* no parent among the target's lives of its time */
    bool whole;                 /* the row of the target as a whole (pid 0) */
    bool summed;                /* counts in the sums over the tree */
    bool cut;                   /* went on past the window's end */
    struct track *own;          /* NULL unless kept */
};

/* A stretch of the grid with the same root processes. */
struct series_epoch {
    size_t from, to;            /* grid indices [from, to) */
    size_t roots;               /* how many */
};

struct series_event { int64_t ts_ns; char kind[16]; char text[SERIES_TEXT_MAX]; };
struct series_gap { int64_t from_ns, to_ns; };

struct series_request { int64_t ts_ns; double n; };

struct series {
    char target[SERIES_TARGET_MAX];
    int64_t from_ns, to_ns;     /* asked; narrowed to the samples by series_finish */
    size_t grid_step;           /* moments a bin, 1: not binned */
    double interval_s;          /* median distance of the grid's times */
    uint64_t samples;           /* of processes; of the target's own row when there is nothing else */
    uint64_t whole_samples;     /* of the target's own row */
    struct track sum;           /* per-process metrics summed over the tree, target metrics as they are */
    struct vec lives;           /* struct series_life */
    struct vec epochs;          /* struct series_epoch, in time order */
    struct vec events;          /* struct series_event, in time order */
    struct vec gaps;            /* struct series_gap, in time order */
    double requests;            /* in the window; NaN when not known */
    double request_bin_s;       /* width of the request counts' bins; 0 when not known */
    /* building */
    struct vec times;           /* int64_t */
    struct vec reqs;            /* struct series_request */
    double *req;                /* backs sum.req */
    double *gather;             /* METRIC_N x grid_step values of the bin being filled */
    uint16_t gathered[METRIC_N];
    double carried[METRIC_N];
    int64_t carried_ns;
    size_t life_at, bin_at;     /* the life and bin being filled; SIZE_MAX: none */
};

int series_new(struct series **ret, const char *target, int64_t from_ns, int64_t to_ns);
void series_free(struct series *s);
static inline void series_freep(struct series **s) { series_free(*s); }

/* All return 0, LT_ENOMEM or LT_ELIMIT. Lives come oldest first; past SERIES_LIVES_MAX those that ran shortest are dropped, then
 * the oldest that have ended. */
int series_life(struct series *s, const struct life_row *row);
int series_event(struct series *s, const struct event_row *row); /* past SERIES_EVENTS_MAX the oldest go */
int series_gap(struct series *s, const struct gap_row *row);     /* past SERIES_GAPS_MAX those close together become one */
int series_request(struct series *s, int64_t ts_ns, int64_t n);
int series_time(struct series *s, int64_t ts_ns);
int series_plan(struct series *s);
int series_point(struct series *s, size_t life, const struct point *p, const struct point_values v[METRIC_N]);
int series_finish(struct series *s);

/* Reads the window from the store. LT_ENOENT: no such target. LT_ENODATA: it has no sample in the window. */
int series_load(struct series **ret, struct store *store, const char *target, int64_t from_ns, int64_t to_ns,
                struct err *err);

static inline struct series_life *series_life_at(const struct series *s, size_t i)
{
    return (struct series_life *)s->lives.items + i;
}
static inline const struct series_epoch *series_epoch_at(const struct series *s, size_t i)
{
    return (const struct series_epoch *)s->epochs.items + i;
}

/* Requests between two grid indices; NaN when none are known. */
double series_requests_between(const struct track *t, size_t from, size_t to);

#define _cleanup_series_ __attribute__((cleanup(series_freep)))

#endif
