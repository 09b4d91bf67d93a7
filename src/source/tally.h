/* Counts by name, bounded: the first TALLY_KEYS distinct names are counted, all later ones share "other".
 * Fixed size (about 80 kB), no allocation after tally_new. Names longer than TALLY_KEY_MAX - 1 bytes are cut there. */
#ifndef LT_SOURCE_TALLY_H
#define LT_SOURCE_TALLY_H

#include <stddef.h>
#include <stdint.h>

#define TALLY_KEYS 512
#define TALLY_KEY_MAX 128

struct tally;

int tally_new(struct tally **ret); /* 0 or LT_ENOMEM */
void tally_free(struct tally *t);
void tally_clear(struct tally *t);
void tally_add(struct tally *t, const char *key, size_t len, int64_t n);
/* Every count becomes round(count * factor), at least 1: for counts taken from a sample. */
void tally_scale(struct tally *t, double factor);
int64_t tally_total(const struct tally *t);
/* The `top` names with the highest counts, highest first (equal counts by name), then "other" with the rest when there is any.
 * A callback that returns anything but 0 stops, and that is returned. Keys are printable. */
int tally_each(struct tally *t, size_t top, int (*fn)(void *ctx, const char *key, int64_t count), void *ctx);

#endif
