/* Temp folders: how many files are in them and how many bytes they take, as seen from the target's own root.
 *
 * All that lies in a configured folder counts for the target (the user names folders that belong to it). One file: every
 * entry that is not a folder, and every empty folder (a leaked mkdtemp). Hard links count once. Bytes are those allocated
 * (st_blocks * 512), not the length.
 *
 * Never leaves the folder: its path is resolved inside the target's root (openat2 RESOLVE_IN_ROOT), below it no symbolic
 * link is followed and nothing mounted there entered, bind mounts included; stat asks no server (AT_STATX_DONT_SYNC).
 *
 * Not on a network or FUSE file system, whose server might be dead: the mount table is asked first (netmount.h), and a folder on
 * one is LT_EUNSUPPORTED, as is, while any is mounted, one whose name has a symbolic link or ".." in it. What remains: a target
 * whose whole root is on one, and one that is mounted on the way in the moment between the two looks; those wait.
 *
 * Bounded: TMPDIR_DEPTH folders deep, TMPDIR_ENTRIES entries, and `budget_ns` per refresh. A walk that does not end within the
 * budget goes on at the next refresh from where it was; until it ends, the result is that of the last whole walk
 * (`at_least` when there is none yet: then the values so far). What lies too deep, or cannot be opened, makes `partial`.
 * Two targets with one folder: it is walked once a round (same device and inode), both get the values.
 */
#ifndef LT_SOURCE_TMPDIR_H
#define LT_SOURCE_TMPDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TMPDIR_DEPTH 32
#define TMPDIR_ENTRIES 20000000
#define TMPDIR_FOLDERS 64                    /* most folders of all targets */
#define TMPDIR_BUDGET_NS INT64_C(20000000)   /* 20 ms per folder and round */

struct tmpdirs;

struct tmpdir_count {
    int64_t files, bytes;
    int64_t age_ns;   /* how old: 0 when the walk ended in this round */
    bool at_least;    /* no walk has ended yet: there are at least so many */
    bool partial;     /* parts were too deep, too many, or not readable: at least so many */
};

int tmpdirs_new(struct tmpdirs **ret, int64_t budget_ns); /* budget per folder and round, 0: TMPDIR_BUDGET_NS; LT_ENOMEM */
void tmpdirs_free(struct tmpdirs *t);

/* Starts a round (one refresh): each folder is then walked at most once until the next call. Folders not asked for in the
 * round before are dropped. */
void tmpdirs_round(struct tmpdirs *t);

/* Adds the folders paths[0..n) as seen from pid_dirfd's root up: each device and inode once, and none that lies below another
 * of them (by name). A folder that does not exist counts 0. 0, LT_GONE, LT_EPERM (cannot look into the target's root),
 * LT_ELIMIT (over TMPDIR_FOLDERS), LT_EUNSUPPORTED (network or FUSE file system), LT_ENOMEM. */
int tmpdirs_count(struct tmpdirs *t, int pid_dirfd, const char *const *paths, size_t n, struct tmpdir_count *ret,
                  struct err *err);

#endif
