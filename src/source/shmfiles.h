/* The files in /dev/shm of a process's own root. The inside of shm.c. */
#ifndef LT_SOURCE_SHMFILES_H
#define LT_SOURCE_SHMFILES_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "source/netmount.h"

#define SHM_NAMES 32768 /* entries of a /dev/shm looked at: some 40 ms */

struct shm_file {
    uint64_t key;   /* device and inode in one */
    uid_t uid;
    int64_t bytes;  /* allocated */
};

typedef int (*shm_file_fn)(void *ctx, const struct shm_file *file); /* a negative return stops and is returned */

/* Where its /dev/shm lies: the others do not go there when it is on a network or FUSE file system (LT_EUNSUPPORTED). */
int shm_files_where(int pid_dirfd, struct netmount *ret);
/* Each regular file in it. No /dev/shm: none. LT_GONE, LT_EPERM, LT_EIO, LT_EUNSUPPORTED; LT_ELIMIT: more than SHM_NAMES. */
int shm_files_each(int pid_dirfd, const struct netmount *where, shm_file_fn fn, void *ctx, struct err *err);
/* Each of them that the process has open, found by reading at most `probes` fd links (0: 4,096). */
int shm_files_open(int pid_dirfd, const struct netmount *where, unsigned probes, shm_file_fn fn, void *ctx, struct err *err);

#endif
