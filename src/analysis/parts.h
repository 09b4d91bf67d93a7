/* What the files of analysis/ share; nobody else includes this. */
#ifndef LT_ANALYSIS_PARTS_H
#define LT_ANALYSIS_PARTS_H

#include "analysis/analysis.h"

/* A stretch of one column: what most steps look at. */
struct curve {
    const struct track *track;
    const struct column *col;
    size_t from, to;           /* indices into the track, [from, to) */
    bool by_requests;          /* x in requests, else in seconds */
    bool by_points;            /* blocks of equal numbers of points, not of equal x */
    double quantum;            /* smallest jump that counts: 1, or a page's worth of allocator chunks */
    bool memory;
};

/* Room to sort in; one for the whole run. */
struct work { double v[SERIES_POINTS_MAX]; };

static inline double curve_x(const struct curve *c, size_t i)
{
    return c->by_requests ? c->track->req[i]
                          : (double)(c->track->ts_ns[i] - c->track->ts_ns[c->from]) / 1e9;
}
static inline double curve_seconds(const struct curve *c, size_t from, size_t to)
{
    return to > from + 1 ? (double)(c->track->ts_ns[to - 1] - c->track->ts_ns[from]) / 1e9 : 0;
}
size_t curve_points(const struct curve *c, size_t from, size_t to); /* measured ones */
/* Median of mid over [from, to); NaN when nothing was measured. */
double curve_median(const struct curve *c, struct work *w, size_t from, size_t to);
double curve_floor(const struct curve *c, struct work *w, size_t from, size_t to, double q);

/* blocks.c: n floors of [c->from, c->to). A block needs two points. */
void blocks_make(struct blocks *b, const struct curve *c, struct work *w, size_t n);
void blocks_make_by_points(struct blocks *b, const struct curve *c, struct work *w, size_t n);
/* The first block at or behind this share of the whole. */
size_t blocks_at(const struct blocks *b, double share);
size_t blocks_usable(const struct blocks *b);
/* Median of the usable floors among [from, to). */
double blocks_level(const struct blocks *b, size_t from, size_t to);
struct fit blocks_fit(const struct blocks *b, size_t from, size_t to);

/* load.c */
void load_find(struct load *l, const struct series *s, size_t from, size_t to, struct work *w);
/* Work done between two grid indices: requests, or nanoseconds of CPU; falls (a process of the sum ended) are left out. */
double load_work(const struct series *s, enum load_source src, size_t from, size_t to);

/* growth.c */
void warmup_find(struct warmup *wu, const struct curve *c, struct work *w, double least, size_t *ret_from);
void growth_measure(struct growth *g, struct blocks *b, const struct curve *c, struct work *w, double x_begin);

/* steps.c */
void steps_find(struct finding *f, const struct series *s, const struct curve *c, struct work *w);
/* The event nearest to a jump, up to `before` before it or `after` after it; -1: none. */
int steps_event(const struct series *s, int64_t at_ns, int64_t before_ns, int64_t after_ns);

/* ebb.c */
void ebb_look(struct ebb *e, const struct curve *c, struct work *w, const struct load *l, size_t end, double before);

/* days.c */
void days_measure(struct days *d, const struct series *s, const struct curve *c, struct work *w, int64_t utc_offset_ns);

/* decompose.c: its own room, of half a megabyte, is made once for all series. */
struct apart;
struct apart *apart_new(void); /* NULL: no memory; freed by mem_free */
void decompose(struct decomposition *d, struct apart *apart, const struct series *s, const struct curve *c, struct work *w);

/* lives.c */
void starts_measure(struct starts *ret, const struct series *s, enum metric_id m, struct work *w);
void within_measure(struct within *in, const struct series *s, enum metric_id m, double quantum, struct work *w);
double root_rise(const struct series *s, enum metric_id m, size_t from, size_t to, struct work *w);
void restarts_find(struct analysis *a);
size_t epoch_choose(const struct series *s);

#endif
