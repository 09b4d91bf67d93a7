/* The verb watch, in parts: options and set-up (watch.c), the event loop (loop.c), what the sampler says into the store
 * (recorder.c), the time a sweep is stamped with (sweep_clock.c), the service manager (notify.c). */
#ifndef LT_CMD_WATCH_WATCHING_H
#define LT_CMD_WATCH_WATCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "source/source.h"
#include "store/store.h"

#define TARGET_NAME_MAX 64
#define SELECTOR_MAX 1024
#define TARGETS_MAX 256

/* ---- targets -------------------------------------------------------------------------------------------------- */

struct watched {
    char name[TARGET_NAME_MAX];
    char selector[SELECTOR_MAX];
    int64_t id;            /* the store's */
    size_t lives;          /* running now */
    size_t begun;          /* ever */
};

/* "NAME=SELECTOR", or a selector alone: then the name is made from it (pid:7 becomes the process's comm). */
int watched_parse(const char *text, struct watched *ret, struct err *err);

/* ---- the time of a sweep -------------------------------------------------------------------------------------- */

struct clock_reading { int64_t wall_ns, boot_ns, mono_ns; };
struct clock_reading clock_reading_now(void);

/* Sweeps never go back in the store. While the wall clock is behind the last sweep (it was set back), sweeps are stamped
 * at half the speed of time behind that last one, so that the clock catches up after as long as it was set back; all
 * of that is recorded as gaps, which no verdict trusts. Nothing is lost: the samples are there, in order. */
struct sweep_clock {
    int64_t interval_ns;
    int64_t stamp_ns;           /* of the last sweep; from the store at the start; CLOCK_INVALID: none yet */
    struct clock_reading last;  /* at the last sweep of this watch */
    bool started, behind;
};

struct sweep_gap { int64_t from_ns, to_ns; char why[120]; bool any; };

void sweep_clock_init(struct sweep_clock *c, int64_t interval_ns, int64_t last_stamp_ns);
/* The stamp of a sweep read at `now`, and the gap to record before it, if any. */
int64_t sweep_clock_next(struct sweep_clock *c, const struct clock_reading *now, struct sweep_gap *ret_gap);

/* ---- recorder ------------------------------------------------------------------------------------------------- */

struct recorder {
    struct store *store;
    struct vec *targets;        /* struct watched */
    struct map lives;           /* running: life id to target index */
    int64_t sweep_ns;           /* stamp of the sweep being read */
    int64_t floor_ns;           /* stamp of the last sweep put: no life ends before it */
    int failing;                /* LT_E* of the last commit, 0: written */
    uint64_t begun, ended, unwritten;
};

void recorder_init(struct recorder *r, struct store *store, struct vec *targets);
void recorder_release(struct recorder *r);
struct watch_sink recorder_sink(struct recorder *r);
/* Puts the sweep and commits. A disk that is full, or fails, is said once and once more when it works again. */
void recorder_put(struct recorder *r, const struct sweep *sweep, const struct sweep_gap *gap);
/* A sweep, or the events between two, could not be taken. What is queued is written all the same: a full queue may be
 * why, and then there is room again. */
void recorder_failed(struct recorder *r, int code, const struct err *err);
/* After the first sweep: lives an earlier watch left running, and this one did not find, have ended. */
void recorder_end_stale(struct recorder *r);

/* ---- loop ----------------------------------------------------------------------------------------------------- */

struct watching {
    struct watch *watch;
    struct recorder recorder;
    struct sweep_clock clock;
    int64_t duration_ns;        /* 0: until stopped */
    bool once, progress;        /* progress: a line on the terminal */
    uint64_t sweeps, failed, missed, gaps, samples; /* samples: of processes */
    bool stopped;               /* by a signal */
};

int watching_run(struct watching *w, struct err *err);
/* Removes the progress line, before something else is printed. */
void watching_clear_line(void);

/* ---- the service manager -------------------------------------------------------------------------------------- */

struct notify { int fd; int64_t watchdog_ns; }; /* how often it wants to hear of us, 0: not at all */

void notify_open(struct notify *n);   /* does nothing without NOTIFY_SOCKET */
void notify_send(const struct notify *n, const char *state);
void notify_close(struct notify *n);

#endif
