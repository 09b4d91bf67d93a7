/* What a process's descriptors are: sockets, pipes, files, anonymous inodes; and which files.
 *
 * Everything is read by readlinkat(2) under a held /proc/PID: nothing is followed, so a dead NFS server cannot hang the
 * sampler, and no content is read.
 *
 * kind    text of the link                        examples
 * socket  "socket:[INODE]"
 * pipe    "pipe:[INODE]"                          named FIFOs have a path: file
 * file    starts with '/'                         files, folders, devices, FIFOs, memfds
 * deleted file whose link ends in " (deleted)"    also counted under file; memfds; a file really named so counts too
 * anon    anything else                           "anon_inode:[eventpoll]", "pidfd:[7]", "net:[4026531840]"
 *
 * Exact or estimated, within a budget of CPU time (no call here waits for anything). Few descriptors of a known count
 * are read by number, from 0 up until all are found, the folder being asked for the next one where one is missing: most
 * tables are dense, and it need not be listed. When listing the folder is foreseen to take less than half of the
 * budget, the links of the listed descriptors are read in random order: all of them (exact, err 0), or those the time
 * sufficed for. Above, the range of numbers is cut into equal parts and one random number is tried in each, in rounds
 * that each cover the whole range, until the time is spent: a process with 20,000 descriptors costs no more than one
 * with 2,000. The shares of those read are scaled to the count. err is the 90 % half-width of the widest kind, in
 * descriptors: 1.645 * sqrt(p (1 - p) / n~) * count, p = (hits + 1.35) / n~, n~ = n + 2.71 (Agresti and Coull 1998); of
 * a list, times sqrt((count - n) / (count - 1)).
 */
#ifndef LT_SOURCE_FDKINDS_H
#define LT_SOURCE_FDKINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/metric.h"
#include "base/vec.h"
#include "source/tally.h"

#define FDKINDS_BUDGET_NS (2 * INT64_C(1000000))

struct fdkinds; /* the reader: buffers and a random sequence; shared by all processes, one thread */

/* A descriptor seen to be a socket. */
struct fd_socket {
    uint64_t inode;
    int32_t fd;
};

struct fd_kinds {
    int64_t fds;      /* the count the kinds add up to */
    int64_t sockets, pipes, files, anon;
    int64_t deleted;  /* of files */
    int64_t shm;      /* of files: links into /dev/shm; of those read, not scaled */
    int64_t err;      /* 90 % half-width, 0 when exact */
    int64_t seen;     /* links read: fds when exact */
    bool exact;
    double scale;     /* descriptors each seen one stands for: 1 when exact; scales the socket list too */
};

int fdkinds_new(struct fdkinds **ret);
void fdkinds_free(struct fdkinds *r);

/* Kinds of the process whose /proc/PID is pid_dirfd. known_fds: the count by other means (size of /proc/PID/fd), or -1: then
 * it is counted here by listing the folder, which takes what it takes (1.5-2.5 us each at 20,000). budget_ns 0:
 * FDKINDS_BUDGET_NS. `sockets` (may be NULL): a vec of struct fd_socket that the sockets seen are appended to; when it is
 * full the rest is not appended and *ret_lost (may be NULL) says how many. 0, LT_GONE, LT_EPERM (needs CAP_SYS_PTRACE or the
 * same user), LT_ENOMEM. */
int fdkinds_read(struct fdkinds *r, int pid_dirfd, int64_t known_fds, int64_t budget_ns, struct fd_kinds *ret,
                 struct vec *sockets, size_t *ret_lost, struct err *err);

/* The 90 % half-width of a count scaled from hits among n to `all` (formula above). */
double fdkinds_half_width(int64_t hits, int64_t n, double all);

/* Puts SOCKETS, PIPES, FILES, ANON_INODES, FDS_DELETED and FD_KINDS_ERR into v. FDS is left alone. */
void fdkinds_metrics(const struct fd_kinds *k, int64_t v[METRIC_N]);

/* Histogram of what is open, counts scaled like the kinds: paths as patterns ("/tmp/job-#/x.wav"; pathpattern.h), "socket", "pipe",
 * and the kernel's names of anonymous inodes ("anon_inode:[eventpoll]"). Cleared first. Same errors and budget. */
int fdkinds_paths(struct fdkinds *r, int pid_dirfd, int64_t known_fds, int64_t budget_ns, struct tally *ret, struct err *err);

#endif
