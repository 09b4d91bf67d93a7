/* The only door to the heap. Counts what is live, and can be told to fail the Nth allocation (tests sweep N).
 *
 * malloc, calloc, realloc, strdup and free are banned outside mem.c (scripts/check-banned). Memory that a library
 * hands us (jansson, SQLite) is freed by that library's own call.
 */
#ifndef LT_BASE_MEM_H
#define LT_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t size);                              /* uninitialised; NULL when out of memory; size 0 is 1 */
void *mem_zalloc(size_t count, size_t size);               /* zeroed; NULL on overflow of count*size */
void *mem_realloc(void *p, size_t size);                   /* p is intact when NULL comes back */
char *mem_strdup(const char *s);
char *mem_strndup(const char *s, size_t n);
void mem_free(void *p);                                    /* NULL allowed */

int64_t mem_live_blocks(void);      /* blocks handed out and not freed: a test compares before and after */
uint64_t mem_total_allocs(void);    /* allocations ever: the sampler's loop must not move it after warm-up */
void mem_fail_nth(uint64_t nth);    /* the nth allocation from now returns NULL (1 = next), 0 = never; later ones succeed */
int mem_failed(void);               /* whether the armed failure has been hit since mem_fail_nth() */

/* Scope-bound cleanup: `_cleanup_mem_ char *s = ...;` frees at scope end; `return TAKE_PTR(s);` keeps it. */
static inline void mem_freep(void *p) { void **pp = p; mem_free(*pp); *pp = NULL; }
#define _cleanup_(f) __attribute__((cleanup(f)))
#define _cleanup_mem_ _cleanup_(mem_freep)
#define TAKE_PTR(p) ({ __typeof__(p) *_pp = &(p); __typeof__(p) _v = *_pp; *_pp = NULL; _v; })

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* Evaluate each side once; the counter makes names of their own, so that calls nest. */
#ifndef __cppcheck__
#define MIN(a, b) LT_PICK(a, <, b, __COUNTER__)
#define MAX(a, b) LT_PICK(a, >, b, __COUNTER__)
#else /* it does not know statement expressions inside initialisers */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif
#define LT_PICK(a, op, b, n) LT_PICK_NAMED(a, op, b, n)
#define LT_PICK_NAMED(a, op, b, n) \
    ({ __typeof__(a) _a##n = (a); __typeof__(b) _b##n = (b); _a##n op _b##n ? _a##n : _b##n; })

#endif
