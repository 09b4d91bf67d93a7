/* A sealed chunk: up to COLUMN_MAX samples, or bins, of one life, column by column. Bytes: FORMAT.md, "Chunk". */
#ifndef LT_STORE_CHUNK_H
#define LT_STORE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metric.h"
#include "store/column.h"

enum chunk_form { CHUNK_RAW = 1, CHUNK_BINS = 2 };

/* The five columns of a metric in a bin, in the order they are stored; raw chunks have the first only. */
enum chunk_part { PART_MIN, PART_FIRST, PART_LAST, PART_P10, PART_MAX, PART_N };

#define CHUNK_NO_PREV INT64_MIN

/* Times are wall milliseconds, ascending. */
struct chunk {
    enum chunk_form form;
    size_t n;
    uint64_t mask;                 /* metrics with at least one measured value */
    int64_t prev_ms;               /* last time of the raw chunk before this one, CHUNK_NO_PREV: there is none */
    int64_t ts[COLUMN_MAX];        /* of the sample, or the bin's start */
    int64_t count[COLUMN_MAX];     /* samples in the bin; 1 for raw */
    int64_t v[METRIC_N][PART_N][COLUMN_MAX]; /* raw: [m][0] */
};

#define CHUNK_COLUMNS (2 + 64 * PART_N) /* time, count, and every column a 64-bit mask can name */
#define CHUNK_BYTES_MAX (256 * 1024)

/* Where an encoder works; one per store, zeroed when made. */
struct chunk_scratch {
    uint8_t heads[(2 + METRIC_N * PART_N) * COLUMN_HEAD_MAX + 1024];
    uint8_t bits[(2 + METRIC_N * PART_N) * COLUMN_BITS_MAX + COLUMN_PAD];
    uint8_t out[CHUNK_BYTES_MAX];
};

/* Writes c into scratch->out; `c->mask` is trusted, columns outside it are left out. 0 or LT_ELIMIT. */
int chunk_encode(const struct chunk *c, struct chunk_scratch *scratch, size_t *ret_len);

/* An encoded chunk taken apart: heads read and checked, bits not yet unpacked. */
struct chunk_view {
    enum chunk_form form;
    size_t n;
    int64_t prev_gap;              /* ms between the last time of the chunk before and the first of this, 0: there is none */
    int64_t span_ms;               /* last time minus first */
    uint64_t present, zero, constant; /* zero and constant columns are not packed */
    int64_t constant_v[64];
    struct column_head heads[CHUNK_COLUMNS];
    size_t bit[CHUNK_COLUMNS];     /* where the column's bits start */
    uint16_t measured[CHUNK_COLUMNS]; /* values that are not NA */
    uint16_t at[64];               /* index of a packed metric's first head */
    size_t nheads, len;
    uint8_t data[CHUNK_BYTES_MAX + COLUMN_PAD];
};

/* Copies p[0..len) into the view and reads every head: 0 or LT_ECORRUPT. */
int chunk_parse(struct chunk_view *view, const void *p, size_t len);
/* Unpacks times, counts and the metrics of `wanted` (bit i = metric i) that the chunk has; c->mask says which. */
int chunk_decode(const struct chunk_view *view, int64_t from_ms, uint64_t wanted, struct chunk *c);
/* First, last, min, p10, max of a raw chunk's metric without unpacking, indexed by chunk_part; false when not in it. */
bool chunk_footer(const struct chunk_view *view, int metric, int64_t ret[PART_N]);
/* Stored values that are not NA. */
uint64_t chunk_values(const struct chunk_view *view);

#endif
