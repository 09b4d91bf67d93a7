/* A bounded vector of equal-sized items. Growing moves the items: keep indexes, not pointers. */
#ifndef LT_BASE_VEC_H
#define LT_BASE_VEC_H

#include <stddef.h>

struct vec {
    void *items;
    size_t n;
    size_t cap;
    size_t max;       /* most items */
    size_t item_size; /* bytes */
};

void vec_init(struct vec *v, size_t item_size, size_t max);
void vec_release(struct vec *v);
void vec_clear(struct vec *v);                    /* n = 0, keeps the allocation */
int vec_reserve(struct vec *v, size_t cap);       /* room for cap items in all: 0, LT_ELIMIT, LT_ENOMEM */
void *vec_push(struct vec *v);                    /* a zeroed new last item, NULL when full or out of memory */
int vec_append(struct vec *v, const void *item);  /* copies one item: 0, LT_ELIMIT, LT_ENOMEM */
static inline void *vec_at(const struct vec *v, size_t i) { return (char *)v->items + i * v->item_size; }
void vec_remove_unordered(struct vec *v, size_t i); /* the last item takes its place */

#define VEC_EACH(type, it, v) \
    for (type *it = (type *)(v)->items; it && it < (type *)(v)->items + (v)->n; it++)
#define _cleanup_vec_ __attribute__((cleanup(vec_release)))

#endif
