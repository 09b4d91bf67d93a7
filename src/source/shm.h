/* Shared memory segments that count for a target: POSIX (files in /dev/shm of its own root) and SysV (of its IPC namespace).
 *
 * The leak to catch outlives its maker: a server is killed, its segments stay, the next one adds its own, until start-up
 * fails. So a segment must count after its creator died, and must not start or stop counting for no reason. The rule:
 *
 * SysV. The kernel keeps creator pid, last-attach pid, owner uid and creation time. A segment counts when
 *   S1  its creator is a life of the target, running now or seen before (shm_life), and it was made within that life; or
 *   S2  the last process that attached or detached it is a running life of the target; or
 *   S3  its creator runs no more (or its pid is another's now), was no life of another target, and its owner or creator uid is the target's; or
 *   S4  it counted before (same id, same creation time), as long as it exists.
 * POSIX. The kernel keeps only the owner uid. A regular file in /dev/shm (named semaphores too; folders in it are not entered)
 * counts when
 *   P1  a process of the target has it open (shm_open_files, by fd links; maps are never read); or
 *   P2  it counted before by P1 (same inode); or
 *   P3  its owner uid is one of the target's.
 *
 * Limits. S3 and P3 rest on the owner alone (`by_owner` says how many): two services of one user in one IPC or mount
 * namespace that are not both watched count each other's leftovers; give services their own user or container, as
 * systemd and container runtimes do. What was there before the watch and is not ours is a constant, which no verdict
 * rests on. A segment that the target only maps (made by another user, descriptor closed) is seen for SysV (S2), not for
 * POSIX. Bytes are those allocated (resident and swapped), not the size asked for. At most SHM_MAX segments of a target.
 * A /dev/shm of more than SHM_NAMES entries (shmfiles.h) is not counted at all, and is looked at again in the 16th round after;
 * one on a network or FUSE file system is not looked at (netmount.h).
 */
#ifndef LT_SOURCE_SHM_H
#define LT_SOURCE_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define SHM_MAX 65536        /* segments of one target */
#define SHM_LIVES 16384      /* lives remembered of one target */
#define SHM_UIDS 8           /* different users in one target's tree */

struct shm; /* what is known of one target: its lives, users, and which segments counted */

struct shm_count {
    int64_t segments, bytes;
    int64_t by_owner;        /* of segments: by owner alone (S3, P3) */
    bool posix, sysv;        /* which could be read; a segment count needs both */
    int code;                /* why not, when one could not */
};

/* Whether a pid that made a segment at wall_s was a life of another target: true takes the segment out of S3. */
typedef bool (*shm_foreign_fn)(void *ctx, int32_t pid, int64_t wall_s);

int shm_new(struct shm **ret);      /* LT_ENOMEM */
void shm_free(struct shm *s);

/* A life of the target: kept after its end. start_wall_ns: life_info.start_wall_ns. LT_ENOMEM; the oldest goes when full. */
int shm_life(struct shm *s, int32_t pid, int64_t start_wall_ns);
void shm_life_ended(struct shm *s, int32_t pid);
/* Whether pid was a life of the target at that time, running or ended since. */
bool shm_was_life(const struct shm *s, int32_t pid, int64_t at_s);
/* The file-system uid of the process (status, 4th of Uid:) joins the users of the target: 0, LT_GONE, LT_EPERM, LT_ELIMIT. */
int shm_user(struct shm *s, int pid_dirfd, struct err *err);
/* Its open descriptors on /dev/shm, by fd links (readlinkat only), at most `probes` descriptors looked at (0: 4,096): P1. */
int shm_open_files(struct shm *s, int pid_dirfd, unsigned probes, struct err *err);

/* Counts, as seen from the process pid_dirfd (any one of the tree): its root's /dev/shm and its IPC namespace. proc_root is for
 * "is the creator running". foreign may be NULL. A part that could not be read is false in ret, and err then says why;
 * 0 when either could be, else LT_GONE, LT_EPERM, LT_ENOMEM. */
int shm_count(struct shm *s, const char *proc_root, int pid_dirfd, shm_foreign_fn foreign, void *ctx, struct shm_count *ret,
              struct err *err);

/* One line of /proc/sysvipc/shm, for tests and fuzzing; the header line and garbage are false. */
struct shm_row {
    int32_t id, cpid, lpid;
    uint32_t uid, cuid;
    int64_t size, nattch, used_s, ctime_s; /* used: the last attach or detach, 0 when never */
    int64_t rss, swap;                     /* bytes */
};
bool shm_parse(const char *line, size_t len, struct shm_row *ret);

#endif
