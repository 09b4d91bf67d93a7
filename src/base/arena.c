#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

#define ALIGN 16
#define FIRST_BLOCK 4096

struct arena_block {
    struct arena_block *next;
    size_t size, used;
    _Alignas(ALIGN) char bytes[];
};

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){ .max = max };
}

void arena_release(struct arena *a)
{
    while (a->blocks) {
        struct arena_block *next = a->blocks->next;

        mem_free(a->blocks);
        a->blocks = next;
    }
    a->used = 0;
}

static struct arena_block *block_new(struct arena *a, size_t size)
{
    struct arena_block *b;

    if (size > SIZE_MAX - sizeof *b)
        return NULL;
    b = mem_alloc(sizeof *b + size);
    if (!b)
        return NULL;
    *b = (struct arena_block){ .next = a->blocks, .size = size };
    a->blocks = b;
    return b;
}

void arena_reset(struct arena *a)
{
    size_t peak = a->used;

    if (a->blocks && a->blocks->next) {
        /* When the one block cannot be had now, the next tick allocates as the first one did. */
        arena_release(a);
        block_new(a, peak);
    }
    if (a->blocks)
        a->blocks->used = 0;
    a->used = 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
    struct arena_block *b = a->blocks;
    void *p;

    if (size > SIZE_MAX - ALIGN)
        return NULL;
    size = (MAX(size, (size_t)1) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (size > a->max || a->used > a->max - size)
        return NULL;
    if (!b || b->size - b->used < size) {
        b = block_new(a, MAX(size, b ? b->size * 2 : (size_t)FIRST_BLOCK));
        if (!b)
            return NULL;
    }
    p = b->bytes + b->used;
    b->used += size;
    a->used += size;
    return p;
}

void *arena_zalloc(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    void *p;

    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    p = arena_alloc(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = arena_alloc(a, len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}
