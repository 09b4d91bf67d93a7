/* What the files of series/ share; nobody else includes this. */
#ifndef LT_SERIES_PARTS_H
#define LT_SERIES_PARTS_H

#include <math.h>
#include <string.h>

#include "series/series.h"

#define TIMES_MAX ((size_t)1 << 20)    /* moments collected before they are thinned */
#define REQUESTS_MAX ((size_t)1 << 18) /* request bins collected before neighbours are merged */
#define GATHER_MAX 256                 /* values of one bin that are looked at */
#define OWN_POINTS_MAX (4 * (size_t)SERIES_POINTS_MAX)

void column_release(struct column *c);

/* requests.c: evaluates the cumulative counts on the grid. */
int requests_join(struct series *s);

/* Index of the last grid time <= ts; 0 when before the first. */
size_t grid_index(const struct series *s, int64_t ts_ns);

/* fill.c: puts what was gathered into the columns and carries forward. */
int fill_flush(struct series *s);

#endif
