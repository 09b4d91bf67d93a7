/* Interned strings: bytes in an arena (so that pointers stay), an index of ids by hash beside it. */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

struct entry {
    const char *str;
    size_t len;
    uint32_t hash;
};

struct strset {
    struct arena bytes;
    struct vec entries; /* of struct entry, by id */
    uint32_t *slots;    /* id + 1, 0: free; a power of two of them, at least twice the entries */
    size_t nslots;
    size_t used_bytes, max_bytes; /* content and its NULs */
};

static uint32_t hash_of(const char *s, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * UINT64_C(0x100000001b3);
    return (uint32_t)(h ^ (h >> 32));
}

int strset_new(struct strset **ret, size_t max, size_t max_bytes)
{
    struct strset *s = mem_zalloc(1, sizeof *s);

    if (!s)
        return LT_ENOMEM;
    /* The arena's own bound is above ours: it counts its padding too. */
    arena_init(&s->bytes, SIZE_MAX);
    vec_init(&s->entries, sizeof(struct entry), MIN(max, (size_t)UINT32_MAX - 1));
    s->max_bytes = max_bytes;
    *ret = s;
    return 0;
}

void strset_free(struct strset *s)
{
    if (!s)
        return;
    arena_release(&s->bytes);
    vec_release(&s->entries);
    mem_free(s->slots);
    mem_free(s);
}

void strset_clear(struct strset *s)
{
    arena_reset(&s->bytes);
    vec_clear(&s->entries);
    if (s->slots)
        memset(s->slots, 0, s->nslots * sizeof *s->slots);
    s->used_bytes = 0;
}

/* The slot of this string, or the free one where it would go. */
static uint32_t *slot_of(const struct strset *s, const char *str, size_t len, uint32_t hash)
{
    for (size_t i = hash & (s->nslots - 1);; i = (i + 1) & (s->nslots - 1)) {
        const struct entry *e;

        if (!s->slots[i])
            return &s->slots[i];
        e = vec_at(&s->entries, s->slots[i] - 1);
        if (e->hash == hash && e->len == len && !memcmp(e->str, str, len))
            return &s->slots[i];
    }
}

static int grow(struct strset *s)
{
    size_t nslots = s->nslots ? s->nslots * 2 : 32;
    uint32_t *slots;

    if (s->entries.n < s->nslots / 2)
        return 0;
    slots = mem_zalloc(nslots, sizeof *slots);
    if (!slots)
        return LT_ENOMEM;
    for (size_t id = 0; id < s->entries.n; id++) {
        const struct entry *e = vec_at(&s->entries, id);
        size_t i = e->hash & (nslots - 1);

        while (slots[i])
            i = (i + 1) & (nslots - 1);
        slots[i] = (uint32_t)id + 1;
    }
    mem_free(s->slots);
    s->slots = slots;
    s->nslots = nslots;
    return 0;
}

int strset_id(struct strset *s, const char *str, size_t len, uint32_t *ret_id)
{
    struct entry e = { .len = len, .hash = hash_of(str, len) };
    uint32_t *slot;
    int r = grow(s);

    if (r < 0)
        return r;
    slot = slot_of(s, str, len, e.hash);
    if (*slot) {
        *ret_id = *slot - 1;
        return 0;
    }
    if (s->entries.n >= s->entries.max || len >= s->max_bytes - s->used_bytes)
        return LT_ELIMIT;
    e.str = arena_strndup(&s->bytes, str, len);
    if (!e.str)
        return LT_ENOMEM;
    r = vec_append(&s->entries, &e);
    if (r < 0)
        return r;
    s->used_bytes += len + 1;
    *slot = (uint32_t)s->entries.n;
    *ret_id = *slot - 1;
    return 0;
}

const char *strset_str(const struct strset *s, uint32_t id)
{
    return id < s->entries.n ? ((const struct entry *)vec_at(&s->entries, id))->str : NULL;
}

size_t strset_count(const struct strset *s)
{
    return s->entries.n;
}
