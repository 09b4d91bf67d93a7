/* All processes of the host: who is whose parent, which are new.
 *
 * A scan lists /proc and reads stat only of processes it does not know. Known means: the same number with the same inode
 * number. The kernel makes the inode of /proc/PID anew for a new process (and now and then for an old one, when memory is
 * short), so a recycled number is never taken for the process before; `reread` reads all that are not followed otherwise, for parents that changed.
 */
#ifndef LT_SOURCE_PROCTAB_H
#define LT_SOURCE_PROCTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "source/folder.h"

struct proctab_entry {
    uint64_t ino;
    uint64_t start;              /* ticks after boot */
    int32_t pid, ppid, pgrp, sid;
    uint8_t looks;               /* scans that saw it before this one; 255 is many */
    bool zombie;
};

struct proctab {
    int proc_fd;                 /* borrowed */
    int folder_fd;               /* of /proc, opened for reading its entries */
    struct vec now, before;      /* of struct proctab_entry, by pid */
    uint64_t stat_reads;         /* ever; for tests */
    struct folder folder;
};

int proctab_init(struct proctab *t, int proc_fd, size_t max, struct err *err);
void proctab_release(struct proctab *t);

/* Whether a process is followed by other means, so that `reread` may pass it over. */
typedef bool (*proctab_known_fn)(const void *ctx, int32_t pid);

/* 0; LT_ELIMIT when there are more than max (the rest is left out); LT_EIO, LT_ENOMEM. */
int proctab_scan(struct proctab *t, bool reread, proctab_known_fn known, const void *ctx, struct err *err);

const struct proctab_entry *proctab_find(const struct proctab *t, int32_t pid); /* as of the last scan, or NULL */

#endif
