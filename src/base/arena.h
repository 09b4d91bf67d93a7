/* Per-tick memory: bump allocation, reset once a tick. Its first block is kept, so a steady load allocates nothing. */
#ifndef LT_BASE_ARENA_H
#define LT_BASE_ARENA_H

#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *blocks; /* newest first */
    size_t used;                /* bytes handed out since the last reset */
    size_t max;                 /* most bytes between two resets */
};

void arena_init(struct arena *a, size_t max);
void arena_release(struct arena *a);
void arena_reset(struct arena *a); /* everything handed out is invalid; blocks are merged into one of the peak size */
void *arena_alloc(struct arena *a, size_t size); /* 16-byte aligned, uninitialised; NULL when over max or out of memory */
void *arena_zalloc(struct arena *a, size_t count, size_t size);
char *arena_strndup(struct arena *a, const char *s, size_t n);

#endif
