/* One column of a chunk: up to COLUMN_MAX values of one metric, bit-packed. Bytes: FORMAT.md, "Column".
 *
 * A column is written in two places: its head (bytes) and its bits. Heads of all columns come first, so that first, last,
 * min, p10 and max are read without touching the bits, and columns nobody asked for are stepped over.
 */
#ifndef LT_STORE_COLUMN_H
#define LT_STORE_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLUMN_MAX 120
#define COLUMN_PAD 16 /* readable bytes that must follow the bits: they are loaded eight at a time */
/* Most bytes of a head, and of a column's bits: 120 values of 64 bits, a bitmap; exceptions are taken only when they save. */
#define COLUMN_HEAD_MAX 96
#define COLUMN_BITS_MAX (COLUMN_MAX * 8 + 16)

enum column_transform { COLUMN_FOR, COLUMN_DELTA, COLUMN_DELTA2, COLUMN_PRED, COLUMN_TRANSFORM_N };

struct column_head {
    enum column_transform transform;
    bool sparse;              /* a bitmap of n bits says which are measured */
    unsigned width;           /* bits of a residual, 0..64 */
    unsigned exc_n, exc_width;
    int64_t first, last, min, p10, max; /* of the measured values; valid when read or written with a footer */
    uint64_t unit;            /* greatest common divisor of the differences to `first`, or to the first residual of PRED */
    int64_t start;            /* what residuals start from: `first`, or first minus its prediction */
    int64_t base;             /* lowest residual in the window, in units */
};

/* A bit string that is being written; `p` has room for `cap` bytes and is zeroed before. */
struct column_bits { uint8_t *p; size_t cap, bit; };
/* Heads being written. */
struct column_heads { uint8_t *p; size_t cap, len; };

/* Writes v[0..n), 1 <= n <= COLUMN_MAX, values >= 0 or METRIC_NA, at least one measured. `pred` (NULL: none) predicts v and is
 * measured wherever v is. `footer`: last, min, p10, max are kept. `measured` gets the number of values that are not NA.
 * 0 or LT_ELIMIT when there is no room. */
int column_encode(struct column_heads *heads, struct column_bits *bits, const int64_t *v, size_t n, const int64_t *pred, bool footer);

/* Reads one head of p[0..len) at *pos; 0 or LT_ECORRUPT. */
int column_head_read(const uint8_t *p, size_t len, size_t *pos, size_t n, bool footer, struct column_head *ret);

/* Bits the column takes from `bit` on: 0 or LT_ECORRUPT when they run past `nbits`. `ret_measured` may be NULL. */
int column_bits_len(const struct column_head *h, const uint8_t *p, size_t bit, size_t nbits, size_t n, size_t *ret_len,
                    size_t *ret_measured);

/* Fills out[0..n); METRIC_NA where nothing was measured. The bits must lie within (column_bits_len) and be followed by
 * COLUMN_PAD bytes. LT_ECORRUPT when a value comes out negative or the prediction is missing. */
int column_decode(const struct column_head *h, const uint8_t *p, size_t bit, size_t n, const int64_t *pred, int64_t *out);

/* Index of the 10th percentile (nearest rank) in n sorted values. */
static inline size_t column_p10_index(size_t n) { return (n + 9) / 10 - 1; }
void column_sort(int64_t *v, size_t n); /* ascending, no allocation */

#endif
