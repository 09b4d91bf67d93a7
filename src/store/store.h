/* The store: one SQLite file in WAL mode. Bytes and invariants: FORMAT.md.
 *
 * Writers: one watcher at a time (STORE_WATCH holds <path>-watch), beside any number of short ones (STORE_WRITE: mark,
 * import) and readers (STORE_READ). Life ids above zero belong to the watcher, below zero to imports.
 *
 * What the watcher puts goes into a bounded queue and is written by store_commit, one transaction. When that fails with
 * LT_EFULL the queue keeps the last hour (oldest sweeps dropped first, and a gap recorded), and the next commit tries again.
 */
#ifndef LT_STORE_STORE_H
#define LT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "source/sample.h"

struct store;

enum store_mode {
    STORE_READ,   /* read-only; a damaged store opens and store_damage() says so; LT_ENOENT when there is none */
    STORE_WRITE,  /* creates it; short transactions */
    STORE_WATCH,  /* creates it; the one watcher; LT_EBUSY names the pid that holds it */
};

struct store_config {
    int64_t disk_budget_bytes;  /* hard cap of file + WAL, 0: what the last watch said, else 256 MiB; oldest raw first, tiers kept */
    int64_t raw_keep_ns;        /* raw samples, 0: 14 d */
    int64_t tier1_keep_ns;      /* 5 min bins, 0: 90 d */
    int64_t tier2_keep_ns;      /* 1 h bins, 0: 2 y */
    int64_t queue_max_bytes;    /* what is kept in memory while the disk is full, 0: 8 MiB; at most an eighth of the budget */
    int64_t interval_ns;        /* of the watch: a pause up to three of them at a restart is no gap, 0: any pause is one */
};

int store_open(struct store **ret, const char *path, enum store_mode mode, const struct store_config *config,
               struct err *err);
/* The default path for this user (contract: --db), its folder made (0700) when `create`. */
int store_default_path(bool create, char *out, size_t size, struct err *err);
int store_close(struct store *s, struct err *err); /* commits what is queued; s is gone whatever it returns */
/* NULL when sound, else one sentence on what is lost (a string of the store's). */
const char *store_damage(const struct store *s);

/* ---- writing: the watcher ------------------------------------------------------------------------------------- */

int store_target(struct store *s, const char *name, const char *selector, int64_t *ret_id, struct err *err); /* finds or makes */
int store_life_begin(struct store *s, const struct life_info *info, int64_t *ret_id, struct err *err);
/* `last` are the life's last values (NULL: the store's own last sample of it). Its first values are those of its first sample.
 * Ended twice, the first end stands. */
int store_life_end(struct store *s, int64_t life_id, const struct life_end *end, const int64_t *last, struct err *err);
/* After a restart of the watcher, once its first sweep was put: ends every life of the target that is still running in the
 * store and was not begun again through this handle: as LIFE_REBOOT when it is of another boot, else as LIFE_VANISHED. */
int store_end_stale(struct store *s, int64_t target_id, const uint8_t boot_id[16], struct err *err);
/* Wall time of the newest sample in the store, CLOCK_INVALID when there is none: where the gap of a restart begins. */
int store_last_sweep(struct store *s, int64_t *ret_wall_ns, struct err *err);
/* Times are kept in whole milliseconds. A pause before the first sweep of a handle, and a clock that goes back, are recorded as
 * gaps. */
int store_put_sweep(struct store *s, const struct sweep *sweep, struct err *err);
/* A histogram row replaces the one with the same life, what, key and moment. Those of one life, what and moment are one
 * histogram; when it says what the last one said, it is written again only after an hour. */
int store_put_histogram(struct store *s, int64_t life_id, int64_t wall_ns, const char *what, const char *key,
                        int64_t count, struct err *err);
int store_put_gap(struct store *s, int64_t from_ns, int64_t to_ns, const char *why, struct err *err);
/* Writes the queue; seals full blocks, thins and keeps the budget as needed. LT_EFULL: kept in memory, see above. */
int store_commit(struct store *s, struct err *err);
size_t store_queued_bytes(const struct store *s);

/* ---- writing: anybody (own transactions) ---------------------------------------------------------------------- */

int store_begin(struct store *s, struct err *err);   /* groups the calls below; nests not */
int store_end(struct store *s, bool keep, struct err *err);
int store_put_event(struct store *s, int64_t target_id, int64_t wall_ns, const char *kind, const char *text, struct err *err);

struct request_row {
    int64_t ts_ns;          /* start of the bin the count is for */
    const char *endpoint;   /* never NULL */
    const char *version;    /* "" when unknown */
    const char *outcome;    /* ok|cancelled|client_error|upstream_error|timeout|error */
    int stream;             /* 0, 1, -1 unknown */
    int32_t pid;            /* 0 unknown */
    int64_t n;
};
/* Adds n to the row with the same target, ts, endpoint, version, stream, outcome, pid. With `replace`, sets it: importing
 * the same file twice changes nothing. */
int store_put_request(struct store *s, int64_t target_id, const struct request_row *row, bool replace, struct err *err);

/* Imported curves: a life with a negative id, then its samples in any order; duplicates (same life and time) keep the last. */
int store_import_life(struct store *s, const struct life_info *info, int64_t *ret_id, struct err *err); /* finds or makes by key */
int store_import_samples(struct store *s, int64_t life_id, const int64_t *ts_ns, const struct sample *rows, size_t n,
                         struct err *err);

/* ---- reading -------------------------------------------------------------------------------------------------- */

struct target_row { int64_t id; const char *name; const char *selector; int64_t first_ns, last_ns; uint64_t samples; };
struct life_row {
    int64_t id, target_id;
    struct life_info info;
    struct life_end end;                 /* cause LIFE_RUNNING while it runs */
    int64_t first_ns, last_ns;           /* of its samples; CLOCK_INVALID when none */
    uint64_t samples;
    int64_t first[METRIC_N], last[METRIC_N]; /* the first and last measured value of each */
};
struct event_row { int64_t target_id, ts_ns; const char *kind; const char *text; };
struct gap_row { int64_t from_ns, to_ns; const char *why; };

/* One point of one life. Raw: n == 1 and all five agree. Tiers: over the bin; METRIC_NA where nothing was measured. */
struct point { int64_t ts_ns; uint32_t n; int64_t bin_ns; };
struct point_values { int64_t first, last, min, p10, max; };

/* Callbacks return 0 to go on, anything else stops and is returned. Strings live until the callback returns. */
typedef int (*store_target_fn)(void *ctx, const struct target_row *row);
typedef int (*store_life_fn)(void *ctx, const struct life_row *row);
typedef int (*store_event_fn)(void *ctx, const struct event_row *row);
typedef int (*store_gap_fn)(void *ctx, const struct gap_row *row);
typedef int (*store_request_fn)(void *ctx, const struct request_row *row);
typedef int (*store_point_fn)(void *ctx, const struct point *p, const struct point_values v[METRIC_N]);
typedef int (*store_histogram_fn)(void *ctx, int64_t life_id, int64_t ts_ns, const char *what, const char *key, int64_t count);

int store_each_target(struct store *s, store_target_fn fn, void *ctx, struct err *err);
int store_find_target(struct store *s, const char *name, int64_t *ret_id, struct err *err); /* LT_ENOENT names those there are */
int store_each_life(struct store *s, int64_t target_id, int64_t from_ns, int64_t to_ns, store_life_fn fn, void *ctx, struct err *err);
int store_each_event(struct store *s, int64_t target_id, int64_t from_ns, int64_t to_ns, store_event_fn fn, void *ctx, struct err *err);
int store_each_gap(struct store *s, int64_t from_ns, int64_t to_ns, store_gap_fn fn, void *ctx, struct err *err);
int store_each_request(struct store *s, int64_t target_id, int64_t from_ns, int64_t to_ns, store_request_fn fn, void *ctx, struct err *err);
/* Points of one life in time order, of the finest tier that still holds each span. Only columns in `wanted` (bit i =
 * metric i; 0: all) are decoded, the others are METRIC_NA. */
int store_each_point(struct store *s, int64_t life_id, int64_t from_ns, int64_t to_ns, uint64_t wanted, store_point_fn fn,
                     void *ctx, struct err *err);
int store_each_histogram(struct store *s, int64_t life_id, int64_t from_ns, int64_t to_ns, store_histogram_fn fn, void *ctx, struct err *err);

struct store_info {
    int64_t file_bytes, wal_bytes, budget_bytes;
    int64_t schema_version;
    uint64_t targets, lives, events, gaps, request_rows, histogram_rows;
    uint64_t sweeps;                                      /* unsealed */
    struct { uint64_t chunks, samples, values, bytes; int64_t from_ns, to_ns; } tier[3]; /* raw, 5 min, 1 h; values: stored, not NA */
    int32_t watcher_pid;                                  /* 0: none */
};
int store_info(struct store *s, struct store_info *ret, struct err *err);

/* Reads every byte: SQLite's own check, every checksum, every invariant of FORMAT.md. Each damage is reported by `fn` in one
 * line; returns 0 when sound, LT_ECORRUPT when not. */
typedef void (*store_verify_fn)(void *ctx, const char *line);
int store_verify(struct store *s, store_verify_fn fn, void *ctx, struct err *err);

#endif
