#include "base/vec.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"

void vec_init(struct vec *v, size_t item_size, size_t max)
{
    *v = (struct vec){ .max = max, .item_size = item_size };
}

void vec_release(struct vec *v)
{
    mem_free(v->items);
    v->items = NULL;
    v->n = v->cap = 0;
}

void vec_clear(struct vec *v)
{
    v->n = 0;
}

int vec_reserve(struct vec *v, size_t cap)
{
    size_t bytes;
    void *items;

    if (cap > v->max)
        return LT_ELIMIT;
    if (cap <= v->cap)
        return 0;
    if (__builtin_mul_overflow(cap, v->item_size, &bytes))
        return LT_ENOMEM;
    items = mem_realloc(v->items, bytes);
    if (!items)
        return LT_ENOMEM;
    v->items = items;
    v->cap = cap;
    return 0;
}

/* Room for one more: doubles, within the maximum. */
static int grow(struct vec *v)
{
    if (v->n < v->cap)
        return 0;
    if (v->n >= v->max)
        return LT_ELIMIT;
    return vec_reserve(v, MIN(v->max, v->cap > v->max / 2 ? v->max : MAX(v->cap * 2, (size_t)8)));
}

void *vec_push(struct vec *v)
{
    if (grow(v) < 0)
        return NULL;
    return memset(vec_at(v, v->n++), 0, v->item_size);
}

int vec_append(struct vec *v, const void *item)
{
    int r = grow(v);

    if (r < 0)
        return r;
    memcpy(vec_at(v, v->n++), item, v->item_size);
    return 0;
}

void vec_remove_unordered(struct vec *v, size_t i)
{
    v->n--;
    if (i != v->n)
        memcpy(vec_at(v, i), vec_at(v, v->n), v->item_size);
}
