/* Doing one thing inside another process's namespace, and coming back.
 *
 * Only the calling thread moves, only while fn runs. When it cannot go back the program ends at once (abort): everything read
 * from there on would be of another machine or container. fn must not return by other ways, start threads or fork.
 */
#ifndef LT_SOURCE_NAMESPACE_H
#define LT_SOURCE_NAMESPACE_H

#include <stdint.h>

#include "base/err.h"

/* which: "net", "ipc". The namespace's inode number: 0, LT_GONE, LT_EPERM, LT_EIO. */
int namespace_inode(int pid_dirfd, const char *which, uint64_t *ret, struct err *err);
/* The same for ourselves. */
int namespace_own_inode(const char *which, uint64_t *ret, struct err *err);

/* Runs fn(ctx) in the namespace `which` of the process, or here when it is ours too. Returns what fn returned, or LT_GONE,
 * LT_EPERM (needs CAP_SYS_ADMIN), LT_EIO when it could not go there. */
int namespace_run(int pid_dirfd, const char *which, int (*fn)(void *ctx), void *ctx, struct err *err);

#endif
