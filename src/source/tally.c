/* Counts by name: a fixed array of entries and a fixed open-addressing index over it. */
#include "source/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define TALLY_SLOTS (TALLY_KEYS * 2) /* a power of two */

struct tally_entry {
    int64_t count;
    uint32_t hash;
    uint32_t len;
    char key[TALLY_KEY_MAX];
};

struct tally {
    size_t n;
    int64_t other;
    uint16_t slots[TALLY_SLOTS];   /* entry + 1, 0: free */
    uint16_t order[TALLY_KEYS];    /* by count, filled by tally_each */
    struct tally_entry entries[TALLY_KEYS];
};

int tally_new(struct tally **ret)
{
    struct tally *t = mem_zalloc(1, sizeof *t);

    if (!t)
        return LT_ENOMEM;
    *ret = t;
    return 0;
}

void tally_free(struct tally *t)
{
    mem_free(t);
}

void tally_clear(struct tally *t)
{
    t->n = 0;
    t->other = 0;
    memset(t->slots, 0, sizeof t->slots);
}

/* FNV-1a: short keys, and nobody gains by making them collide (the table is bounded). */
static uint32_t hash_of(const char *key, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)key[i]) * 16777619u;
    return h;
}

void tally_add(struct tally *t, const char *key, size_t len, int64_t n)
{
    len = MIN(len, (size_t)TALLY_KEY_MAX - 1);
    uint32_t h = hash_of(key, len);
    size_t i = h % TALLY_SLOTS;

    for (; t->slots[i]; i = (i + 1) % TALLY_SLOTS) {
        struct tally_entry *e = &t->entries[t->slots[i] - 1];
        if (e->hash == h && e->len == len && !memcmp(e->key, key, len)) {
            e->count += n;
            return;
        }
    }
    if (t->n == TALLY_KEYS) {
        t->other += n;
        return;
    }
    struct tally_entry *e = &t->entries[t->n++];
    *e = (struct tally_entry){ .count = n, .hash = h, .len = (uint32_t)len };
    memcpy(e->key, key, len);
    e->key[len] = '\0';
    t->slots[i] = (uint16_t)t->n;
}

static int64_t scaled(int64_t n, double factor)
{
    return n > 0 ? MAX(INT64_C(1), (int64_t)llround((double)n * factor)) : 0;
}

void tally_scale(struct tally *t, double factor)
{
    for (size_t i = 0; i < t->n; i++)
        t->entries[i].count = scaled(t->entries[i].count, factor);
    t->other = scaled(t->other, factor);
}

int64_t tally_total(const struct tally *t)
{
    int64_t sum = t->other;

    for (size_t i = 0; i < t->n; i++)
        sum += t->entries[i].count;
    return sum;
}

static int by_count(const void *pa, const void *pb, void *ctx)
{
    const struct tally *t = ctx;
    const struct tally_entry *a = &t->entries[*(const uint16_t *)pa], *b = &t->entries[*(const uint16_t *)pb];

    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return strcmp(a->key, b->key);
}

int tally_each(struct tally *t, size_t top, int (*fn)(void *ctx, const char *key, int64_t count), void *ctx)
{
    int64_t rest = t->other;

    for (size_t i = 0; i < t->n; i++)
        t->order[i] = (uint16_t)i;
    qsort_r(t->order, t->n, sizeof t->order[0], by_count, t);
    for (size_t i = 0; i < t->n; i++) {
        const struct tally_entry *e = &t->entries[t->order[i]];
        if (i >= top) {
            rest += e->count;
            continue;
        }
        char key[TALLY_KEY_MAX];
        str_copy(key, sizeof key, e->key);
        str_printable(key);
        int r = fn(ctx, key, e->count);
        if (r)
            return r;
    }
    return rest > 0 ? fn(ctx, "other", rest) : 0;
}
