/* What the files of output/ share; nobody else includes this. */
#ifndef LT_OUTPUT_PARTS_H
#define LT_OUTPUT_PARTS_H

#include "base/base.h"
#include "output/output.h"

#define WIDTH 100
#define CURVE_CELLS 64

static inline const struct finding *finding_of(const struct series_verdict *s) { return s->finding; }

enum term_color verdict_color(enum verdict_id v);
/* Whether a row of its own is due: it grew, or it may have. */
bool output_grew(const struct series_verdict *s);
/* Wraps text at WIDTH with `indent` spaces before every line but the first, which continues the current one at `col`. */
void put_wrapped(struct buf *out, const char *text, size_t col, size_t indent);
/* Signed amount in the metric's unit: "+312 KB", "-0.25". */
const char *signed_amount(enum metric_id m, double v, char out[UNITS_TEXT_MAX]);
void put_curve(struct buf *out, const struct verdict *v, const struct series_verdict *s, const struct output_options *o);
void put_explain(struct buf *out, const struct series_verdict *s);

#endif
