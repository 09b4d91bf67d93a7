/* Inside the sampler: what watch.c, find.c, member.c, reading.c, handles.c, ending.c, tree.c and target.c share. Not for other folders.
 *
 * A member is a process of a target, known by its number in one map. Its states:
 *
 *     NEW     known from a fork event or a scan, not yet opened: no life, no row
 *     LIVE    opened, has a life, is read at every sweep
 *     LOST    found gone when it was read; how it ended may still be told by an event
 *     ZOMBIE  has ended (its life too), its parent has not waited for it: counted in its parent's zombies
 *
 * Invariants (tests cite the numbers):
 *  E1  A LIVE member's descriptors belong to the process its key names: its start was read through them.
 *  E2  A life that was begun is ended exactly once, by watch_close at the latest.
 *  E3  A process is a member of one target at most; this process is never one (unless config.watch_self).
 *  E4  A row is written only after all reads of that sweep for it went well; a process that goes in between has no row.
 *  E5  Events older than a target's joining do not count for it.
 */
#ifndef LT_SOURCE_ENGINE_H
#define LT_SOURCE_ENGINE_H

#include "base/base.h"
#include "source/cgroup.h"
#include "source/events.h"
#include "source/fdkinds.h"
#include "source/oomlog.h"
#include "source/procfs.h"
#include "source/proctab.h"
#include "source/selector.h"
#include "source/shm.h"
#include "source/socketpool.h"
#include "source/sockets.h"
#include "source/source.h"
#include "source/tmpdir.h"

#define NO_LIFE INT64_C(-1)
#define SHM_NEVER INT64_C(-2)
#define SPARE_FDS 256           /* left for the rest of the program when descriptors are kept per process; more for walks of temp folders */

enum member_state { MEMBER_FREE, MEMBER_NEW, MEMBER_LIVE, MEMBER_LOST, MEMBER_ZOMBIE };

struct member {
    struct life_key key;
    int64_t life_id;            /* NO_LIFE until begun and after its end */
    int64_t since_mono_ns;      /* when it became known */
    int64_t cpu_seen_ns;        /* CPU clock at the last reading of what changes only while it runs; -1: read that next time */
    int64_t lost_status;        /* wait status told by an event, -1: not told */
    int64_t kinds_fds;          /* descriptors when the kinds were read, -1: never */
    int64_t kinds_cpu_ns;       /* cpu_seen_ns then */
    int64_t kinds_err;          /* FD_KINDS_ERR of the kinds alone */
    int64_t kinds_shm;          /* open files in /dev/shm then, -1: not known */
    int64_t shm_files;          /* open files when its open segments were looked for, or SHM_NEVER */
    int64_t status_cpu_ns;      /* cpu_seen_ns when status was read */
    int64_t status_pages, status_shared; /* resident, and of it file and shared, then; -1: never */
    uint64_t status_swap;       /* watch.free_swap then */
    uint32_t kinds_sweep, status_sweep, stat_sweep; /* when they were read last */
    uint32_t lost_sweep;        /* when it was found gone */
    uint32_t generation;        /* of the slot, for cookies */
    int32_t ppid, pgrp, sid;
    int32_t dirfd, statm_fd, fd_fd, task_fd, pidfd; /* fd_fd, task_fd: the folders fd and task, O_PATH */
    uint16_t target;
    uint8_t state;
    bool root;                  /* chosen by the selector itself */
    bool promoted;              /* a left-over that took the place of a gone root */
    bool orphan;                /* its parent ended before it */
    bool permitted;             /* the kernel shows us its exit code */
    bool counted;               /* its fork was counted: so is its exit */
    bool exec_seen;             /* another program than its parent's */
    bool kernel_thread;         /* has no memory of its own */
    bool alone;                 /* first thread ended, others run */
    bool stat_due;              /* its parent may have changed, or it may have ended */
    bool lost_weak;             /* lost_status is that of the first thread alone */
    bool fresh;                 /* read well in this sweep */
    uint8_t kinds_pace;         /* 1, 2, 6: kinds are read every that many times kinds_every sweeps while no count moves */
    bool paths_seen;            /* its histogram of paths was told once */
    bool sockets_now;           /* their states are to be counted in this sweep */
    bool sockets_kept;          /* from a list of an earlier sweep */
    bool sockets_lapsed;        /* that list was out of date */
    bool sockets_churn;         /* so it was lately: read anew whenever states are counted */
    char comm[COMM_MAX];
    struct socketspan sockets;  /* its sockets in watch.socketpool, as of kinds_sweep */
    double sockets_scale;
    int64_t pages, pages_shared; /* resident, and of it file and shared, by statm of this sweep */
    int64_t size;               /* of its address space, pages */
    bool size_moved;            /* since its threads were counted */
    bool threads_owed;          /* it ran since then */
    bool no_memory;             /* statm of this sweep was all zeros */
    int64_t v[METRIC_N];
};

/* The file a pidfile selector names, as it was when its pid was read. */
struct pidfile_stamp { int64_t mtime_ns; uint64_t ino; int64_t size; int32_t pid; };

struct target {
    char *name;
    struct selector sel;
    int64_t id;                 /* the store's */
    int64_t life_id;            /* of the target's own row */
    int64_t since_mono_ns;      /* E5: of the first joining */
    size_t members, roots;      /* NEW, LIVE or LOST */
    uint64_t forks, exits;
    struct cgroup cgroup;       /* of its first root; version 0: none */
    bool cgroup_shared;
    int64_t oom_seen;           /* kills of the group that are accounted for: its counter a sweep ago, and those named since */
    int64_t oom_last;           /* its counter at the last sweep */
    struct pidfile_stamp pidfile;
    uint64_t sockets_sum;       /* of the listening sockets' inodes at the last search */
    struct shm *shm;
    bool was_read;              /* its slow values, once */
    bool present, said_waiting, said_ambiguous, said_tmp, said_shm, spent; /* spent: pid:N has ended, it does not come back */
    int64_t v[METRIC_N];
};

struct watch {
    struct watch_config config;
    struct watch_sink sink;
    int proc_fd;
    int32_t self;               /* our own pid, never a member; 0: may be one */
    uint8_t boot_id[16];
    int64_t hz, page;
    uint64_t exe_ino, exe_dev;  /* of this program; 0: not known */
    bool own_proc;              /* this /proc shows our own pid namespace: its numbers may be used in system calls */
    bool fd_by_size;
    long fd_all, fd_limit, fd_kept; /* descriptors there may be; that may be kept for members, and are */
    struct proctab tab;
    struct events *events;
    struct oomlog oomlog;
    int64_t oom_wait_ns;        /* when the log was waited for last; 0: never */
    int oom_tries;              /* milliseconds waited for it since */
    struct cgroup_mounts mounts;
    bool has_mounts, has_own_cgroup;
    struct cgroup own_cgroup;
    struct vec targets;         /* of struct target */
    struct vec members;         /* of struct member; slots are reused */
    struct vec free_slots;      /* of uint32_t */
    struct vec order;           /* of uint32_t: LIVE members by life id */
    struct map by_pid;          /* pid to slot */
    struct vec rows;            /* of struct sample */
    struct socketpool socketpool;
    struct vec pids;            /* of int32_t: scratch */
    struct vec tops;            /* of struct proctab_entry: scratch */
    struct vec holders;         /* of struct holder: scratch */
    struct vec own_line;        /* of int32_t: our own pid and those above it */
    struct map leaders;         /* pids that lead or led a session or process group, to their target */
    struct fdkinds *kinds;
    struct sockets *sockets;
    struct tmpdirs *tmpdirs;
    struct tally *tally;
    uint32_t sweep;             /* number of this sweep, from 1 */
    bool someone_died;          /* since the last sweep: parents may have changed */
    bool rescan;                /* the next sweep looks at the whole host */
    uint32_t overflow_sweep;    /* number of the sweep before or in which events were lost last */
    int64_t wall_ns;            /* of this sweep */
    uint64_t free_swap;         /* of the host, in this sweep */
    int failure;                /* what sink.begin said, or LT_ENOMEM: ends the sweep */
    bool said_limit, said_limit_fd, said_permission_fd, said_permission_events, said_overflow;
    struct watch_stats stats;
};

static inline struct target *target_at(const struct watch *w, size_t i) { return vec_at(&w->targets, i); }
static inline struct member *member_at(const struct watch *w, size_t i) { return vec_at(&w->members, i); }
static inline struct target *target_of(const struct watch *w, const struct member *m) { return target_at(w, m->target); }

/* Whether this sweep is one of those for what is done every `every` sweeps: the first, and so on. */
static inline bool watch_due(const struct watch *w, unsigned every) { return (w->sweep - 1) % every == 0; }

/* Whether it is this member's turn for what is done every `every` sweeps: spread, so that no sweep bears it all. */
static inline bool watch_turn(const struct watch *w, const struct member *m, unsigned every)
{
    return (w->sweep + (uint32_t)(m - (const struct member *)w->members.items)) % every == 0;
}

/* Sweeps between two looks at what is so quiet that `times` of the ordinary turns may pass; with kinds_every 1 none may. All
 * `times` divide 6, so whoever changes between them misses no turn of 6. */
static inline unsigned watch_every(const struct watch *w, unsigned times)
{
    return w->config.kinds_every > 1 ? times * w->config.kinds_every : 1;
}

/* ---- member.c: the table ---------------------------------------------------------------------------------------- */

struct member *member_find(const struct watch *w, int32_t pid);           /* NULL: none */
/* A NEW member; the one there is when the pid is known. NULL: full (said once), out of memory, or ourselves (E3). */
struct member *member_join(struct watch *w, size_t target, int32_t pid, int32_t ppid, int64_t mono_ns);
void member_drop(struct watch *w, struct member *m);                      /* closes, forgets; its life has been ended */
uint64_t member_cookie(const struct watch *w, const struct member *m);
struct member *member_of_cookie(const struct watch *w, uint64_t cookie);  /* NULL: that one is no more */
/* Opens a NEW member and begins its life: 0; LT_GONE; LT_TORN: it is a zombie already; or what sink.begin said, which is
 * kept in w->failure. */
int member_open(struct watch *w, struct member *m);
/* A life for one that died before it was ever read (by a signal): what is known of it is in st. */
int member_begin_unread(struct watch *w, struct member *m, const struct proc_stat *st);
void member_is_zombie(struct watch *w, struct member *m);                 /* ended, not reaped: keeps what shows it */
void member_watch_exit(struct watch *w, struct member *m);                /* its pidfd will tell (EVENT_PIDFD) */
void member_unorder(struct watch *w, const struct member *m);             /* no more rows */

/* ---- reading.c: one member, one sweep --------------------------------------------------------------------------- */

/* Cheap values. 0, LT_GONE, or an error of one file (the values it gives are METRIC_NA). */
int reading_quick(struct watch *w, struct member *m);
int reading_slow(struct watch *w, struct member *m); /* kinds, status: when due. 0 or LT_GONE */
void reading_swap(struct watch *w);  /* before the members of a sweep */
/* The folder to look through at what it holds (when its first thread has ended that of another): the kept one, or one for now
 * (*temp, the caller's) whose start was checked (E1). A descriptor or an LT code. */
int reading_window(const struct watch *w, const struct member *m, int *temp);
/* stat through what is held, or by number with the start checked: 0, LT_GONE ... */
int reading_stat(struct watch *w, const struct member *m, struct proc_stat *ret);

/* ---- handles.c: descriptors by kind, sockets --------------------------------------------------------------------- */

bool handles_due(const struct watch *w, const struct member *m);
int handles_read(struct watch *w, struct member *m, int dirfd); /* kinds and the list of sockets: 0 or LT_GONE */
void handles_keep(const struct watch *w, struct member *m);     /* instead: what was read last stands for this sweep */
void handles_count(struct watch *w);    /* second half, after all were read: states of the sockets */
void handles_histograms(struct watch *w, struct member *m); /* those that are due */

/* ---- ending.c ---------------------------------------------------------------------------------------------------- */

void ending_event(void *ctx, const struct event *e);   /* event_fn over struct watch */
/* A member that could not be read: finds out how it ended as far as can be told now. */
void ending_lost(struct watch *w, struct member *m);
void ending_unopened(struct watch *w, struct member *m, bool zombie); /* NEW, and dead or gone when it was to be opened */
void ending_settle(struct watch *w);                   /* LOST members whose end nobody told: vanished; zombies that were reaped */
void ending_close(struct watch *w);                    /* E2 */

/* ---- find.c ------------------------------------------------------------------------------------------------------ */

/* Looks for roots of the target; `thorough` looks at all processes, not the new ones only. */
int find_roots(struct watch *w, size_t target, bool thorough, struct err *err);
void find_descendants(struct watch *w);                /* processes of the last scan whose parent is a member */
void find_by_exec(struct watch *w, int32_t pid);       /* cmd selectors, for a program just started */
bool find_joins_root(struct watch *w, size_t target, int32_t pid); /* makes pid a root: false when it is gone or taken */

/* ---- tree.c ------------------------------------------------------------------------------------------------------ */

void tree_count(struct watch *w);                      /* CHILDREN and ZOMBIES of every LIVE member */
void tree_parent_changed(struct watch *w, struct member *m, int32_t ppid);
void tree_after_deaths(struct watch *w);               /* makes those be read whose parent is no more */
void tree_orphans(struct watch *w);                    /* host-wide: re-parented processes of a target's group or session */
/* Whether a process of the target's own group, whose parent is outside of it, has left the tree. */
bool tree_is_left_over(struct watch *w, size_t target, const struct proctab_entry *e);
void tree_take_left_over(struct watch *w, size_t target, const struct proctab_entry *e);

/* ---- target.c ---------------------------------------------------------------------------------------------------- */

int target_init(struct target *t, const char *name, const char *selector, int64_t id, struct err *err);
void target_release(struct target *t);
int target_joined(struct watch *w, struct target *t, const struct member *root); /* a root was opened: 0 or what sink.begin said */
void target_presence(struct watch *w);                 /* notes: found, gone, waiting */
void target_read(struct watch *w, struct target *t, bool slow);
void watch_note(struct watch *w, const struct target *t, const char *kind, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
