/* Open addressing with linear probing over a power of two of slots.
 *
 * Invariants: n <= nslots / 2, so that tables at their full size never grow; filled <= nslots * 3 / 4, so that every
 * probe meets a free slot. When removed slots eat up the second bound they are dropped in place, without allocating;
 * that is paid by the nslots / 4 removals before it.
 */
#include "base/map.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { SLOT_FREE, SLOT_USED, SLOT_REMOVED, SLOT_PENDING /* only inside drop_removed() */ };

#define MIN_SLOTS 16

static uint64_t mix(uint64_t k)
{
    k ^= k >> 32;
    k *= UINT64_C(0x9e3779b97f4a7c15);
    k ^= k >> 29;
    k *= UINT64_C(0xbf58476d1ce4e5b9);
    return k ^ (k >> 32);
}

static size_t home(const struct map *m, uint64_t key)
{
    return (size_t)mix(key) & (m->nslots - 1);
}

static size_t after(const struct map *m, size_t i)
{
    return (i + 1) & (m->nslots - 1);
}

void map_init(struct map *m, size_t max)
{
    *m = (struct map){ .max = max };
}

void map_release(struct map *m)
{
    mem_free(m->slots);
    *m = (struct map){ .max = m->max };
}

void map_clear(struct map *m)
{
    if (m->slots)
        memset(m->slots, 0, m->nslots * sizeof *m->slots);
    m->n = m->filled = 0;
}

static struct map_entry *find(const struct map *m, uint64_t key)
{
    if (!m->nslots)
        return NULL;
    for (size_t i = home(m, key); m->slots[i].used != SLOT_FREE; i = after(m, i))
        if (m->slots[i].used == SLOT_USED && m->slots[i].key == key)
            return &m->slots[i];
    return NULL;
}

/* Puts a key that is not there, behind its home; counts are the caller's. */
static void place(struct map *m, uint64_t key, uint64_t value)
{
    size_t i = home(m, key);

    while (m->slots[i].used != SLOT_FREE)
        i = after(m, i);
    m->slots[i] = (struct map_entry){ .key = key, .value = value, .used = SLOT_USED };
}

static int resize(struct map *m, size_t nslots)
{
    struct map old = *m;

    m->slots = mem_zalloc(nslots, sizeof *m->slots);
    if (!m->slots) {
        *m = old;
        return LT_ENOMEM;
    }
    m->nslots = nslots;
    m->filled = m->n;
    for (size_t i = 0; i < old.nslots; i++)
        if (old.slots[i].used == SLOT_USED)
            place(m, old.slots[i].key, old.slots[i].value);
    mem_free(old.slots);
    return 0;
}

/* Carries one entry to where it belongs; a pending one in its way is carried on in its place. */
static void carry(struct map *m, struct map_entry e)
{
    size_t i = home(m, e.key);

    e.used = SLOT_USED;
    for (;;) {
        struct map_entry *slot = &m->slots[i];

        if (slot->used == SLOT_FREE) {
            *slot = e;
            return;
        }
        if (slot->used == SLOT_PENDING) {
            struct map_entry next = *slot;

            *slot = e;
            e = next;
            e.used = SLOT_USED;
            i = home(m, e.key);
        } else {
            i = after(m, i);
        }
    }
}

static void drop_removed(struct map *m)
{
    for (size_t i = 0; i < m->nslots; i++)
        m->slots[i].used = m->slots[i].used == SLOT_USED ? SLOT_PENDING : SLOT_FREE;
    for (size_t i = 0; i < m->nslots; i++)
        if (m->slots[i].used == SLOT_PENDING) {
            struct map_entry e = m->slots[i];

            m->slots[i].used = SLOT_FREE;
            carry(m, e);
        }
    m->filled = m->n;
}

int map_reserve(struct map *m, size_t n)
{
    size_t nslots = m->nslots ? m->nslots : MIN_SLOTS;

    if (n > m->max)
        return LT_ELIMIT;
    if (n > SIZE_MAX / 4)
        return LT_ENOMEM;
    while (nslots / 2 < n)
        nslots *= 2;
    return nslots == m->nslots ? 0 : resize(m, nslots);
}

int map_put(struct map *m, uint64_t key, uint64_t value)
{
    struct map_entry *e = find(m, key);
    int r;

    if (e) {
        e->value = value;
        return 0;
    }
    if (m->n >= m->max)
        return LT_ELIMIT;
    r = map_reserve(m, m->n + 1);
    if (r < 0)
        return r;
    if (m->filled + 1 > m->nslots / 4 * 3)
        drop_removed(m);
    place(m, key, value);
    m->n++;
    m->filled++;
    return 0;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value)
{
    const struct map_entry *e = find(m, key);

    if (!e)
        return false;
    *ret_value = e->value;
    return true;
}

bool map_remove(struct map *m, uint64_t key)
{
    struct map_entry *e = find(m, key);
    size_t i;

    if (!e)
        return false;
    e->used = SLOT_REMOVED;
    m->n--;
    /* The end of a run needs no marks: no probe has to pass through it. */
    i = (size_t)(e - m->slots);
    if (m->slots[after(m, i)].used != SLOT_FREE)
        return true;
    for (; m->slots[i].used == SLOT_REMOVED; i = (i - 1) & (m->nslots - 1)) {
        m->slots[i].used = SLOT_FREE;
        m->filled--;
    }
    return true;
}

struct map_entry *map_next(const struct map *m, size_t *pos)
{
    while (*pos < m->nslots) {
        struct map_entry *e = &m->slots[(*pos)++];

        if (e->used == SLOT_USED)
            return e;
    }
    return NULL;
}
