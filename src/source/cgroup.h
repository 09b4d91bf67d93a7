/* The memory cgroup of a process, v1 and v2: bytes, the tightest limit up the tree, OOM kills, who is in it.
 *
 * Where: a hierarchy is a mounted folder (dir) and the part of the hierarchy that is its root (root). /proc/PID/cgroup gives
 * a path as seen from our own cgroup namespace; the folder is dir + (path - root). A path outside the mount (the target is in
 * a container that we, in another one, cannot see) is LT_EUNSUPPORTED, never a guess.
 *
 * v1: the memory controller's hierarchy; pids come from it too. v2: the unified one, when it has the memory controller; on a
 * host where v1 has it (hybrid), v1 is used. A v2 group without memory.current (controller not enabled that deep) is charged
 * to the nearest ancestor that has it: that one is read, and `above` says so.
 */
#ifndef LT_SOURCE_CGROUP_H
#define LT_SOURCE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define CGROUP_PATH_MAX 1024

struct cgroup_mount {
    char dir[CGROUP_PATH_MAX];   /* where it is mounted, "" when it is not */
    char root[CGROUP_PATH_MAX];  /* what part of the hierarchy that is: "/" or "/docker/abc" */
};

struct cgroup_mounts {
    struct cgroup_mount v2, memory, systemd; /* unified; v1 memory; v1 name=systemd (units on v1 hosts) */
    bool v2_has_memory;
};

struct cgroup {
    int version;                 /* 1 or 2 */
    char path[CGROUP_PATH_MAX];  /* as /proc/PID/cgroup gave it */
    char dir[CGROUP_PATH_MAX];   /* its folder */
    size_t mount_len;            /* dir[0..mount_len) is the mount: the walk up ends there */
};

struct cgroup_memory {
    int64_t bytes;      /* METRIC_NA when not given (the root of v2, no controller) */
    int64_t limit;      /* the smallest limit of this group and those above it; METRIC_NA: none */
    int64_t oom_kills;  /* METRIC_NA before 4.13 */
    bool above;         /* bytes are those of an ancestor: they hold others too */
};

/* Finds what is mounted below cgroup_root. mountinfo: the text file to believe ("/proc/self/mountinfo"), or NULL: by what
 * the folders hold (tests, odd containers). 0, or LT_ENOENT when there is no cgroup file system. */
int cgroup_mounts(struct cgroup_mounts *ret, const char *cgroup_root, const char *mountinfo, struct err *err);

/* The group whose memory the process is charged to. 0, LT_GONE, LT_EUNSUPPORTED, LT_EPERM, LT_EPARSE. */
int cgroup_of(const struct cgroup_mounts *m, int pid_dirfd, struct cgroup *ret, struct err *err);
/* The group at `path` (of selector cgroup:PATH): a folder, or relative to v2, v1 memory or v1 systemd, in this order. */
int cgroup_at(const struct cgroup_mounts *m, const char *path, struct cgroup *ret, struct err *err);
/* The group of a systemd unit ("nginx", "nginx.service"): system.slice first, then anywhere at most 6 folders deep. LT_ENOENT
 * when the unit is not running; LT_EAMBIG when two groups bear that name. */
int cgroup_unit(const struct cgroup_mounts *m, const char *name, struct cgroup *ret, struct err *err);

int cgroup_memory(const struct cgroup *g, struct cgroup_memory *ret, struct err *err);

/* Appends the pids of the group, and of those below it when `deep` (at most 8 folders down), to pids (a vec of int32_t; read
 * the bound from it: LT_ELIMIT when full). Pids of other pid namespaces (shown as 0) are left out. */
int cgroup_pids(const struct cgroup *g, bool deep, struct vec *pids, struct err *err);

/* Whether the group holds more than one service: the root, a slice, a login session, init's own scope, or the group that we
 * are in ourselves (own: of /proc/self, may be NULL). Orphans are not looked for in those. */
bool cgroup_is_shared(const struct cgroup *g, const struct cgroup *own);

/* Parts, for tests and fuzzing. The path of hierarchy `want` ("" for v2, "memory", "name=systemd") in the text of
 * /proc/PID/cgroup: 0, LT_ENOENT, LT_EPARSE. */
int cgroup_parse(const char *text, size_t len, const char *want, char out[CGROUP_PATH_MAX]);
/* One limit or counter: "max" and v1's huge numbers are METRIC_NA. */
int cgroup_parse_limit(const char *text, size_t len, int64_t *ret);

#endif
