/* What is measured: one table; names, units and help of every output come from it (contract: series[].name).
 *
 * All values are int64_t >= 0; METRIC_NA (-1) means "not measured", which is never 0 and never a pass.
 * The numbers are stored (FORMAT.md): append, never renumber.
 *
 * scope: P per process, T per target (held by the target's own row, life.pid == 0)
 * kind:  level   goes up and down, in bytes or things
 *        total   only grows within a life (CPU time, faults, OOM kills): judged by its rate, not its level
 * judge: memory / count / none: which rule decides about it (methods.md 2.8); none = context, never a verdict
 */
#ifndef LT_BASE_METRIC_H
#define LT_BASE_METRIC_H

#include <stddef.h>
#include <stdint.h>

#define METRIC_NA INT64_C(-1)

/* id, name, scope, unit, kind, judge, title */
#define METRICS(X) \
    X(RSS_ANON, "rss_anon", P, BYTES, LEVEL, MEMORY, "anonymous memory, exact to the page (statm)") \
    X(RSS, "rss", P, BYTES, LEVEL, MEMORY, "resident memory (statm)") \
    X(RSS_FILE, "rss_file", P, BYTES, LEVEL, NONE, "resident file pages") \
    X(RSS_SHMEM, "rss_shmem", P, BYTES, LEVEL, MEMORY, "resident shared memory") \
    X(SWAP, "swap", P, BYTES, LEVEL, MEMORY, "swapped-out anonymous memory") \
    X(FDS, "fds", P, COUNT, LEVEL, COUNT, "open file descriptors") \
    X(SOCKETS, "sockets", P, COUNT, LEVEL, COUNT, "descriptors that are sockets") \
    X(PIPES, "pipes", P, COUNT, LEVEL, COUNT, "descriptors that are pipes") \
    X(FILES, "files", P, COUNT, LEVEL, COUNT, "descriptors of files and folders") \
    X(ANON_INODES, "anon_inodes", P, COUNT, LEVEL, COUNT, "descriptors of epoll, eventfd, timerfd and the like") \
    X(FDS_DELETED, "fds_deleted", P, COUNT, LEVEL, COUNT, "descriptors of deleted files, memfds included") \
    X(FD_KINDS_ERR, "fd_kinds_err", P, COUNT, LEVEL, NONE, "90 % error of the kinds when they are an estimate, else 0") \
    X(CONNECTIONS, "connections", P, COUNT, LEVEL, COUNT, "TCP sockets with a peer, in any state") \
    X(TCP_ESTABLISHED, "tcp_established", P, COUNT, LEVEL, NONE, "TCP sockets in ESTABLISHED") \
    X(TCP_CLOSE_WAIT, "tcp_close_wait", P, COUNT, LEVEL, COUNT, "TCP sockets in CLOSE_WAIT: the peer left, we did not") \
    X(TCP_LISTEN, "tcp_listen", P, COUNT, LEVEL, NONE, "listening TCP sockets") \
    X(TCP_OTHER, "tcp_other", P, COUNT, LEVEL, NONE, "TCP sockets in other states") \
    X(SOCKETS_NO_ROW, "sockets_no_row", P, COUNT, LEVEL, COUNT, "IP sockets with no row in the TCP or UDP tables: never connected or half closed") \
    X(UNIX_SOCKETS, "unix_sockets", P, COUNT, LEVEL, COUNT, "unix-domain sockets") \
    X(THREADS, "threads", P, COUNT, LEVEL, COUNT, "threads") \
    X(CHILDREN, "children", P, COUNT, LEVEL, COUNT, "child processes alive, of any thread") \
    X(ZOMBIES, "zombies", P, COUNT, LEVEL, COUNT, "dead children nobody waited for") \
    X(CPU_NS, "cpu_ns", P, NS, TOTAL, NONE, "CPU time, user and system") \
    X(MINFLT, "minflt", P, COUNT, TOTAL, NONE, "minor page faults") \
    X(MAJFLT, "majflt", P, COUNT, TOTAL, NONE, "major page faults") \
    X(ORPHANS, "orphans", T, COUNT, LEVEL, COUNT, "processes that left the tree: re-parented, still in its cgroup or session") \
    X(TMPFILES, "tmpfiles", T, COUNT, LEVEL, COUNT, "files in the temp folders that count for the target") \
    X(TMP_BYTES, "tmp_bytes", T, BYTES, LEVEL, MEMORY, "bytes allocated to those files") \
    X(SHM_SEGMENTS, "shm_segments", T, COUNT, LEVEL, COUNT, "POSIX and SysV shared memory segments the target made or maps") \
    X(SHM_BYTES, "shm_bytes", T, BYTES, LEVEL, MEMORY, "bytes of those segments") \
    X(CGROUP_BYTES, "cgroup_bytes", T, BYTES, LEVEL, NONE, "memory charged to the target's cgroup") \
    X(CGROUP_LIMIT, "cgroup_limit", T, BYTES, LEVEL, NONE, "memory limit of that cgroup (the tightest up the tree)") \
    X(OOM_KILLS, "oom_kills", T, COUNT, TOTAL, NONE, "processes the kernel killed for memory in that cgroup") \
    X(FORKS, "forks", T, COUNT, TOTAL, NONE, "processes started in the tree since the watch began") \
    X(EXITS, "exits", T, COUNT, TOTAL, NONE, "processes ended in the tree since the watch began") \
    X(HEAP_USED, "heap_used", P, BYTES, LEVEL, MEMORY, "heap in use: what the program keeps, not what the allocator holds") \
    X(LIVE_OBJECTS, "live_objects", P, COUNT, LEVEL, COUNT, "live objects of the language runtime") \
    X(SUSPENDED, "suspended", P, COUNT, LEVEL, COUNT, "suspended coroutines, generators and tasks")

enum metric_id {
#define X(id, name, scope, unit, kind, judge, title) METRIC_##id,
    METRICS(X)
#undef X
    METRIC_N
};

enum metric_scope { METRIC_SCOPE_P, METRIC_SCOPE_T };
enum metric_unit { METRIC_UNIT_BYTES, METRIC_UNIT_COUNT, METRIC_UNIT_NS };
enum metric_kind { METRIC_KIND_LEVEL, METRIC_KIND_TOTAL };
enum metric_judge { METRIC_JUDGE_MEMORY, METRIC_JUDGE_COUNT, METRIC_JUDGE_NONE };

struct metric {
    const char *name;
    const char *title;
    enum metric_scope scope;
    enum metric_unit unit;
    enum metric_kind kind;
    enum metric_judge judge;
};

extern const struct metric metrics[METRIC_N];

int metric_by_name(const char *name, size_t len); /* the id, or -1 */
const char *metric_unit_name(enum metric_unit unit); /* "bytes", "count", "ns" */

#endif
