/* What an open store holds. For the store's own files only. */
#ifndef LT_STORE_STATE_H
#define LT_STORE_STATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "store/chunk.h"
#include "store/db.h"
#include "store/sweep.h"

#define BLOCK_SWEEPS COLUMN_MAX        /* sweeps that are sealed at once */
#define LIVES_MAX (1 << 20)            /* lives a watcher may hold at once */
#define WORD_MAX 256                   /* bytes of a stored word (endpoint, role, histogram key); longer ones are cut */
#define TEXT_MAX 4096                  /* bytes of an event's or a gap's text */
#define LIFE_BYTES_MAX (128 + 22 * METRIC_N)
#define METRICS_ALL ((UINT64_C(1) << (METRIC_N - 1)) | ((UINT64_C(1) << (METRIC_N - 1)) - 1))
#define BUSY_MS 1000                   /* how long one writer waits for another */
#define BUDGET_MIN (4 << 20)           /* smallest disk budget: less could not hold the log of a busy host */
#define MS_INVALID INT64_MIN

/* The running summary of a life: of all its samples that are not NA, column by column. */
struct summary {
    int64_t first_ms, last_ms;         /* MS_INVALID when there are none */
    uint64_t samples;
    int64_t first[METRIC_N], last[METRIC_N];
};

/* A life the watcher writes samples of. */
struct live {
    int64_t id;
    uint64_t chain;                    /* the key row that prev[] belongs to */
    int64_t upto_seq;                  /* sweeps up to this one were in the row's summary when the store was opened */
    bool begun;                        /* store_life_begin was called for it through this handle */
    struct summary sum;
    int64_t prev[METRIC_N];            /* its last row since the key */
};

/* The watcher's queue: records {u32 length, u8 type, payload}, oldest first (queue.c). */
enum record_type { RECORD_LIFE, RECORD_LIFE_END, RECORD_SWEEP, RECORD_HIST, RECORD_GAP };
struct queue {
    struct buf records;
    size_t max;
    bool lost;                         /* since the last commit that succeeded: sweeps, and lives that began and ended */
    uint64_t lost_sweeps, lost_lives;
    int64_t lost_from_ms, lost_to_ms;
};

/* A stored chunk that new points may have to be merged with. */
struct old_chunk { int64_t id, ts, last; size_t n; };

/* Where the hourly pass over what is too old is. `key_hist`: histograms up to this row were looked at for their keys;
 * `keys_upto`: keys made before this part of it, 0: it has not begun; `key`: those up to this one were dropped or kept. */
struct pass { int64_t next_ms; unsigned part; int64_t life, hist, key_hist, keys_upto, key; };

struct watcher {
    struct queue queue;
    struct vec lives;                  /* struct live */
    struct map index;                  /* life id -> position in lives */
    uint64_t chain;                    /* number of the last key row */
    unsigned since_key;                /* sweeps since then; SWEEP_KEY_EVERY: the next is a key */
    int64_t last_ms;                   /* of the last sweep put through this handle */
    int64_t stored_ms;                 /* of the last one before it was opened */
    int64_t next_life, next_seq;
    int64_t last_sync_ns;              /* monotonic time of the last commit that was synced */
    struct pass pass;
    struct map keys_named;             /* keys that histograms name, as far as the pass has come */
    int64_t nkeys;                     /* keys there are; -1: not counted yet */
    struct buf encoded;                /* scratch: the sweep being put */
    struct vec order;                  /* scratch: rows of an unsorted sweep */
    uint8_t *rows;                     /* scratch: a group of rows */
    struct seal *seal;                 /* scratch: made at the first sealing */
};

struct store {
    sqlite3 *db;
    char *path;
    enum store_mode mode;
    struct store_config config;
    int lock_fd;                       /* <path>-watch */
    sqlite3_stmt *stmts[STMT_N];
    bool stmt_taken[STMT_N];           /* somebody is walking it */
    int depth;                         /* open transactions, nested by count */
    bool user_txn;                     /* between store_begin and store_end */
    bool poisoned;                     /* something failed inside: the outermost end rolls back */
    bool immutable;                    /* opened without a WAL: the folder is read-only */
    bool salvaged;                     /* db is a copy of what could be read */
    uint64_t lost_rows;                /* rows stepped over because their crc or content was wrong */
    char damage[512];
    store_verify_fn lost_fn;           /* set by verify: told of each lost row */
    void *lost_ctx;
    struct chunk_scratch *scratch;     /* made when first needed */
    struct chunk *chunk[2];
    struct chunk_view *view;
    struct vec olds;                   /* scratch of chunk_merge */
    struct buf row;                    /* scratch of life_write */
    int64_t log_first, log_last;       /* the sweeps that the readers' table of lives was made from */
    struct rcache *rcache;             /* requests.c: series by what names them */
    struct map dirty;                  /* imported lives whose summary must be made anew */
    struct watcher w;
};

static inline int64_t ms_of(int64_t ns) { return ns / NS_PER_MS - (ns % NS_PER_MS < 0); }
/* The last multiple of width at or before ts, also before 1970. */
static inline int64_t floor_to(int64_t ts, int64_t width) { return ts - ((ts % width) + width) % width; }
static inline int64_t ns_of(int64_t ms)
{
    return ms > INT64_MAX / NS_PER_MS ? INT64_MAX : ms < -INT64_MAX / NS_PER_MS ? CLOCK_INVALID : ms * NS_PER_MS;
}

#endif
