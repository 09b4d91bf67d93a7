#include "source/socketpool.h"

#include <string.h>

#define GARBAGE_MIN 4096     /* so little is not worth packing */

void socketpool_init(struct socketpool *p, size_t max)
{
    vec_init(&p->items, sizeof(struct fd_socket), max);
    vec_init(&p->spare, sizeof(struct fd_socket), max);
    p->garbage = 0;
}

void socketpool_release(struct socketpool *p)
{
    vec_release(&p->items);
    vec_release(&p->spare);
}

void socketpool_take(struct socketpool *p, struct socketspan *s, size_t from)
{
    struct fd_socket *items = p->items.items;
    size_t n = p->items.n - from;

    if (n <= s->cap) {
        if (n)
            memmove(items + s->at, items + from, n * sizeof *items);
        p->items.n = from;
        s->n = n;
        return;
    }
    p->garbage += s->cap;
    *s = (struct socketspan){ from, n, n };
}

void socketpool_drop(struct socketpool *p, struct socketspan *s)
{
    p->garbage += s->cap;
    *s = (struct socketspan){ 0 };
}

bool socketpool_pack(struct socketpool *p)
{
    struct vec old = p->items;

    if (p->garbage < GARBAGE_MIN || p->garbage <= p->items.n / 2 || vec_reserve(&p->spare, p->items.cap) < 0)
        return false;
    p->items = p->spare;
    p->spare = old;
    p->garbage = 0;
    vec_clear(&p->items);
    return true;
}

/* Room was made for all. */
void socketpool_move(struct socketpool *p, struct socketspan *s)
{
    struct fd_socket *to = (struct fd_socket *)p->items.items + p->items.n;

    if (s->n)
        memcpy(to, (const struct fd_socket *)p->spare.items + s->at, s->n * sizeof *to);
    *s = (struct socketspan){ p->items.n, s->n, s->n };
    p->items.n += s->n;
}
