/* A sweep row: one tick of all lives, delta-coded against the tick before. Bytes: FORMAT.md, "Sweep". */
#ifndef LT_STORE_SWEEP_H
#define LT_STORE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/metric.h"

#define SWEEP_GROUP 64      /* lives of one group: ids that agree in all but the low six bits */
#define SWEEP_KEY_EVERY 30  /* a key row, readable on its own, at least this often */

enum sweep_kind { SWEEP_DELTA = 0, SWEEP_KEY = 1 };

/* Writing: begin, rows in ascending order of life id (> 0), end. `prev` are the life's values in the sweeps since the key, all
 * METRIC_NA where it was in none. An error leaves `out` longer than it was: the caller cuts it back. */
struct sweep_writer {
    struct buf *out;
    int64_t group;      /* life id / SWEEP_GROUP of the open group, -1: none */
    int64_t last_group;
    uint8_t *rows;      /* the open group, behind whose length it is written; room for SWEEP_GROUP rows */
    size_t len;
};
#define SWEEP_ROW_MAX (1 + 1 + 8 + 10 * METRIC_N)

int sweep_begin(struct sweep_writer *w, struct buf *out, enum sweep_kind kind, uint8_t *rows);
int sweep_row(struct sweep_writer *w, int64_t life_id, const int64_t *v, const int64_t *prev);
int sweep_end(struct sweep_writer *w);

/* Reading. `slot` gives where the life's values are kept between sweeps (METRIC_N of them, all METRIC_NA before its
 * first row since a key: the caller blanks them at every key row), or NULL when it does not matter; `row` is then called
 * with them brought up to date. With no `slot` at all only ids are read, and `row` gets NULL for the values. */
struct sweep_reader {
    void *ctx;
    int64_t *(*slot)(void *ctx, int64_t life_id);
    int (*row)(void *ctx, int64_t life_id, const int64_t *v);
    int64_t lo, hi;     /* only lives of [lo, hi]; groups outside are stepped over */
};
int sweep_read(const struct sweep_reader *r, const uint8_t *p, size_t len); /* 0, LT_ECORRUPT or what `row` returned */
/* Whether the row is a key row, -1 when it is neither. */
int sweep_kind_of(const uint8_t *p, size_t len);

#endif
