/* Bounded hash maps: u64 to u64 (open addressing, no allocation once at its full size), and interned strings. */
#ifndef LT_BASE_MAP_H
#define LT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
    uint64_t key;
    uint64_t value;
    uint32_t used; /* 0 free, 1 used, 2 removed */
};

struct map {
    struct map_entry *slots;
    size_t n, filled, nslots, max; /* filled counts removed ones too */
};

void map_init(struct map *m, size_t max);
void map_release(struct map *m);
void map_clear(struct map *m);                                   /* keeps the allocation */
int map_reserve(struct map *m, size_t n);                        /* so that n entries go in without allocating */
int map_put(struct map *m, uint64_t key, uint64_t value);        /* inserts or replaces: 0, LT_ELIMIT, LT_ENOMEM */
bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value);
bool map_remove(struct map *m, uint64_t key);
/* Iterate: *pos starts at 0; returns NULL at the end. Removing the entry just returned is allowed. */
struct map_entry *map_next(const struct map *m, size_t *pos);

/* String interning: equal strings get equal small ids (0, 1, 2 ...), at most max of them. */
struct strset;
int strset_new(struct strset **ret, size_t max, size_t max_bytes);
void strset_free(struct strset *s);
int strset_id(struct strset *s, const char *str, size_t len, uint32_t *ret_id); /* 0, LT_ELIMIT, LT_ENOMEM */
const char *strset_str(const struct strset *s, uint32_t id);
size_t strset_count(const struct strset *s);
void strset_clear(struct strset *s);

#define _cleanup_map_ __attribute__((cleanup(map_release)))

#endif
