/* The socket lists of all members in one block of memory: a list is kept from one reading of descriptors to the next.
 *
 *  P1  A span's n items lie at items[at .. at + n) and belong to no other span; cap >= n is the room it has there.
 *  P2  garbage is the room that belongs to no span.
 *
 * Nothing is allocated while lists keep their sizes: a new list is read to the end of the block, then moved to its old place.
 */
#ifndef LT_SOURCE_SOCKETPOOL_H
#define LT_SOURCE_SOCKETPOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vec.h"
#include "source/fdkinds.h"

struct socketspan { size_t at, n, cap; };

struct socketpool {
    struct vec items;    /* of struct fd_socket: a new list is appended here, then taken or cut off */
    struct vec spare;    /* the block before the last packing */
    size_t garbage;
};

void socketpool_init(struct socketpool *p, size_t max);
void socketpool_release(struct socketpool *p);

/* What was appended from `from` on becomes the list of the span. */
void socketpool_take(struct socketpool *p, struct socketspan *s, size_t from);
void socketpool_drop(struct socketpool *p, struct socketspan *s);
static inline const struct fd_socket *socketpool_list(const struct socketpool *p, const struct socketspan *s)
{
    return (const struct fd_socket *)p->items.items + s->at;
}

/* Packing, when more is garbage than not: true, then each span must be moved. (False too when there is no memory for it.) */
bool socketpool_pack(struct socketpool *p);
void socketpool_move(struct socketpool *p, struct socketspan *s);

#endif
