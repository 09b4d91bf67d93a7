/* The outside world in: selectors to process trees, trees to samples, forks and exits to events.
 *
 * struct watch is the sampler. Shape of use (cmd/watch.c):
 *     watch_open(&w, &config, &sink, &err);
 *     watch_add(w, "api", "port:8000", target_id, &err);      // more targets
 *     every interval: watch_sweep(w, clock_wall_ns(), &sweep, &err);   // rows valid until the next call
 *     between: poll watch_event_fd(w), then watch_events(w)   // forks, execs, exits as they happen
 *     watch_close(w);
 * After warm-up (a sweep with no new process) watch_sweep allocates nothing. It never stops, traces or writes to a
 * process, and never opens maps, smaps or pagemap.
 */
#ifndef LT_SOURCE_SOURCE_H
#define LT_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "source/sample.h"

/* ---- selectors ------------------------------------------------------------------------------------------------ */

enum selector_kind { SELECT_PID, SELECT_PORT, SELECT_CMD, SELECT_UNIT, SELECT_CGROUP, SELECT_PIDFILE };

/* Checks the form ("pid:N", "port:N", "cmd:REGEX", "unit:NAME", "cgroup:PATH", "pidfile:PATH"): 0 or LT_EUSAGE with
 * a text that lists the forms. A plain number is pid:N. */
int selector_check(const char *text, struct err *err);

/* ---- the sampler ---------------------------------------------------------------------------------------------- */

struct watch;

struct watch_config {
    const char *proc_root;      /* "/proc"; tests feed trees */
    const char *cgroup_root;    /* "/sys/fs/cgroup" */
    const char *const *tmp_dirs; /* temp folders that count for every target, seen from the target's own root; ntmp of them */
    size_t ntmp;
    size_t max_lives;           /* most lives at once, 0: 32,768 */
    int64_t kinds_budget_ns;    /* most time for fd kinds of one process, 0: 2 ms */
    /* Sweeps between two readings of socket states and folders, and of fd kinds and status while they change, 0: 10. What does
     * not change backs off to 6 times that, which is how old any value of a row may be; 1: all is read at every sweep. */
    unsigned kinds_every;
    /* Refresh paths and peers every this many sweeps, 0: 20; paths of processes whose kinds do not change every 3rd time.
     * Processes take turns with their paths, except when kinds_every is 1. */
    unsigned slow_every;
    bool watch_self;            /* the sampler's own process may be a target too; otherwise it is part of none */
};

/* What the sampler tells its owner; `ctx` is passed through. Called from watch_add, watch_sweep and watch_events. */
struct watch_sink {
    void *ctx;
    /* A new life: the owner gives it an id (store_life_begin). A negative return stops the sweep with that error. */
    int (*begin)(void *ctx, const struct life_info *info, int64_t *ret_life_id);
    /* A life ended; last values are those of its last sample (METRIC_NA where never measured). */
    void (*end)(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N]);
    /* Something the user should know once: target found, target gone, permission missing, event overflow. Kinds:
     * "found", "gone", "waiting", "permission", "overflow", "ambiguous", "limit". */
    void (*note)(void *ctx, const char *target, const char *kind, const char *text);
    /* Histogram rows, at the slow rate: what = "path" (a pattern: pathpattern.h) or "peer" ("10.0.0.7:443 CLOSE_WAIT"). */
    void (*histogram)(void *ctx, int64_t life_id, const char *what, const char *key, int64_t count);
};

int watch_open(struct watch **ret, const struct watch_config *config, const struct watch_sink *sink, struct err *err);
void watch_close(struct watch *w);

/* Adds a target. Not there yet is fine (it is looked for at every sweep, LT_ENOENT is not returned);
 * LT_EUSAGE for a bad selector; LT_EAMBIG when two unrelated processes listen on one port (they are named). */
int watch_add(struct watch *w, const char *name, const char *selector, int64_t target_id, struct err *err);

/* Reads every target's tree once. Rows: every live process of a target, and one row per target that has any process
 * (key.pid == 0), in the order of life ids. Rows stay valid until the next call. */
int watch_sweep(struct watch *w, int64_t wall_ns, struct sweep *ret_sweep, struct err *err);

/* Forks, execs and exits as they happen (proc connector), else exits of known lives (pidfd): readable when there is
 * something. -1 when neither can be had. */
int watch_event_fd(const struct watch *w);
int watch_events(struct watch *w, struct err *err);

struct watch_stats {
    size_t targets, targets_present, lives;
    uint64_t forks, execs, exits;     /* of watched trees */
    uint64_t overflows;               /* times the kernel said it dropped events */
    uint64_t oom_waits;               /* milliseconds the kernel's log was waited for to name a kill */
    uint64_t gone_mid_read;           /* processes that went while they were read */
    bool has_connector, has_pidfd_exit, fd_count_by_stat;
    int64_t cpu_ns, last_sweep_ns;    /* CPU spent in sweeps; wall time of the last one */
};
void watch_stats(const struct watch *w, struct watch_stats *ret);

/* ---- single looks, for doctor and top ------------------------------------------------------------------------- */

/* The life key of a running pid: 0, LT_ENOENT when there is no such process, LT_EPERM. */
int life_of_pid(const char *proc_root, int32_t pid, struct life_key *ret, struct err *err);

#endif
