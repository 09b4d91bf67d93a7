/* What the files of verdict/ share; nobody else includes this. */
#ifndef LT_VERDICT_PARTS_H
#define LT_VERDICT_PARTS_H

#include "base/base.h"
#include "verdict/verdict.h"

void decide_memory(struct series_verdict *v, const struct analysis *a);
void decide_count(struct series_verdict *v, const struct analysis *a);
void decide_days(struct series_verdict *v, const struct analysis *a); /* memory over two days and more */

bool is_files(const struct finding *f); /* bytes of files and shared memory: no allocator there */

/* Fills shape and reason, and sets verdict and class. */
void say(struct series_verdict *v, enum verdict_id verdict, enum class_id class, const char *shape, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void say_next(struct series_verdict *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The sentence of a step: by how much, when, next to which event. */
void say_step(struct series_verdict *v, const struct series *s);

/* The growth to show is that of all lives together: the sum over them hides it. */
void show_within(struct series_verdict *v);

/* A leaked child brings its memory, descriptors and threads into the sum over the tree: that is the children's story.
 * True when that decided. */
bool told_by_children(struct series_verdict *v, const struct analysis *a);

/* What every rule needs first: enough points, a live source, a column that moves. True when that decided. */
bool decide_trivial(struct series_verdict *v, const struct analysis *a);

/* "312 KB" or "1,204 threads": an amount in the series' own unit. */
const char *amount(const struct finding *f, double v, char out[UNITS_TEXT_MAX]);
/* "12,300 requests" or "45m 10s": what the growth was measured over. */
const char *extent(const struct finding *f, char out[UNITS_TEXT_MAX]);
const char *seconds_text(double s, char out[UNITS_TEXT_MAX]);

#endif
