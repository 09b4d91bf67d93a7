#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Counters are relaxed: each is exact in itself, and no other memory is ordered by them. */
static atomic_int_fast64_t live_blocks;
static atomic_uint_fast64_t total_allocs;
static atomic_uint_fast64_t countdown; /* allocations until the armed failure; 0: not armed */
static atomic_int failure_hit;

/* Whether this allocation is the one told to fail. */
static int must_fail(void)
{
    uint_fast64_t left = atomic_load_explicit(&countdown, memory_order_relaxed);

    while (left)
        if (atomic_compare_exchange_weak_explicit(&countdown, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            if (left > 1)
                return 0;
            atomic_store_explicit(&failure_hit, 1, memory_order_relaxed);
            return 1;
        }
    return 0;
}

/* Counts what the C library gave, if it gave anything. */
static void *counted(void *p)
{
    if (p) {
        atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&total_allocs, 1, memory_order_relaxed);
    }
    return p;
}

/* No object may be larger (C's pointer differences); sanitizers end the program when asked for one. */
static int too_large(size_t size)
{
    return size > PTRDIFF_MAX;
}

void *mem_alloc(size_t size)
{
    if (must_fail() || too_large(size))
        return NULL;
    return counted(malloc(size ? size : 1));
}

void *mem_zalloc(size_t count, size_t size)
{
    size_t bytes;

    if (must_fail() || __builtin_mul_overflow(count, size, &bytes) || too_large(bytes))
        return NULL;
    if (!bytes)
        count = size = 1;
    return counted(calloc(count, size));
}

void *mem_realloc(void *p, size_t size)
{
    void *moved;

    if (!p)
        return mem_alloc(size);
    if (must_fail() || too_large(size))
        return NULL;
    moved = realloc(p, size ? size : 1);
    if (moved)
        atomic_fetch_add_explicit(&total_allocs, 1, memory_order_relaxed);
    return moved;
}

char *mem_strndup(const char *s, size_t n)
{
    size_t len = strnlen(s, n);
    char *copy = mem_alloc(len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

void mem_free(void *p)
{
    if (p)
        atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    free(p);
}

int64_t mem_live_blocks(void)
{
    return atomic_load_explicit(&live_blocks, memory_order_relaxed);
}

uint64_t mem_total_allocs(void)
{
    return atomic_load_explicit(&total_allocs, memory_order_relaxed);
}

void mem_fail_nth(uint64_t nth)
{
    atomic_store_explicit(&failure_hit, 0, memory_order_relaxed);
    atomic_store_explicit(&countdown, nth, memory_order_relaxed);
}

int mem_failed(void)
{
    return atomic_load_explicit(&failure_hit, memory_order_relaxed);
}
