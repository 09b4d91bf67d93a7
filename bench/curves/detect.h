/* The detector under test on a curve: a series built in process, analysis, verdict. */
#ifndef LT_BENCH_DETECT_H
#define LT_BENCH_DETECT_H

#include "curve.h"
#include "base/buf.h"
#include "series/series.h"
#include "verdict/verdict.h"

struct detect_options { bool no_heap, no_requests; double cut_s; }; /* cut_s: only what was read before; 0: all */

struct outcome {
    enum verdict_id verdict, rss, heap; /* VERDICT_N: not judged */
    enum class_id class;
    double ms;                          /* of analysis and verdict */
};

struct series *detect_series(const struct curve *c, const struct detect_options *o); /* exits when out of memory */
/* explain != NULL gets what `lowtide diagnose --explain` prints. */
struct outcome detect(const struct series *s, struct buf *explain);

#define MUST(x) do { if (x) { fprintf(stderr, "bench-curves: %s failed\n", #x); exit(1); } } while (0)

#endif
