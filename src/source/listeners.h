/* Who holds a listening socket, and which of the holders is the service's main process.
 *
 * Holders are one service when
 *   L1  one is an ancestor of the other (a master and its workers), or
 *   L2  they hold the same socket (it was inherited from one process, which may be gone), or
 *   L3  they are children of one process that is not init and that they were forked from: they have its command line, or are
 *       Python multiprocessing workers of it (SO_REUSEPORT workers with a socket each).
 * Anything else is two services on one port (SO_REUSEPORT by chance or by mistake): LT_EAMBIG.
 * A service manager that holds the socket beside the service (socket activation: systemd, init) is passed over.
 */
#ifndef LT_SOURCE_LISTENERS_H
#define LT_SOURCE_LISTENERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "source/proctab.h"

#define LISTENERS_MAX 256    /* sockets of one port */

struct holder { int32_t pid; uint64_t inode; };

/* Appends a struct holder for each process of the table that has one of the sockets open. Processes whose descriptors may
 * not be read are counted in *ret_hidden. */
int listeners_holders(const struct proctab *tab, const uint64_t *inodes, size_t n, struct vec *ret_holders, size_t *ret_hidden,
                      struct err *err);

/* The main processes among the holders, appended to roots (int32_t): one, or the workers themselves when their master is gone
 * or holds no socket and is another program. 0; LT_EAMBIG naming two; LT_ENOMEM. */
int listeners_roots(const struct proctab *tab, unsigned port, const struct vec *holders, struct vec *roots, struct err *err);

#endif
