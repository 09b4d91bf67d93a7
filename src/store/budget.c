/* The disk budget: file, WAL and shared-memory file together stay under it. What goes first: oldest raw (into bins), oldest
 * 5 min bins, histograms, requests, 1 h bins, and last the rows of lives that ended longest ago; before all of them events
 * and gaps beyond their share. */
#include "store/parts.h"

#define HOUR_MS INT64_C(3600000)
#define STEPS_A_TURN 32
#define SERIES_BITS 21
#define DAY_MS (24 * HOUR_MS)

static int64_t total_bytes(const struct store *s) { return file_bytes(s, "") + file_bytes(s, "-wal") + file_bytes(s, "-shm"); }

/* Room kept free for what one commit may write. */
static int64_t reserve(const struct store *s) { return MAX(s->config.disk_budget_bytes / 8, INT64_C(1) << 20); }

/* Moves the WAL into the file and cuts both. A reader may be in the way: then it is not waited for. */
static int settle(struct store *s, struct err *err)
{
    sqlite3_busy_timeout(s->db, 0);
    int rc = db_run_n(s, STMT_CHECKPOINT, TABLE_NONE, NULL, 0, err);
    sqlite3_busy_timeout(s->db, BUSY_MS);
    return rc == LT_EBUSY ? 0 : rc;
}

static int vacuum(struct store *s, struct err *err)
{
    int64_t pages;
    int rc = db_number(s, STMT_FREE_PAGES, &pages, err);
    if (!rc && pages)
        rc = db_run_n(s, STMT_VACUUM_SOME, TABLE_NONE, NULL, 0, err);
    return rc ? rc : settle(s, err);
}

/* ---- what can go ---- */

/* The oldest chunk of a tier, by when it was written: 1 when there is one. */
static int oldest(struct store *s, int tier, int64_t *ret_id, int64_t *ret_life, int64_t *ret_ts, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_CHUNK_OLDEST, TABLE_NONE, err, VI(tier));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1) {
        *ret_id = rows_int(&r, 0);
        *ret_life = rows_int(&r, 1);
        *ret_ts = rows_int(&r, 2);
    }
    return rc;
}

static int drop_raw(struct store *s, struct err *err)
{
    int64_t id, life, ts;
    int rc = oldest(s, 0, &id, &life, &ts, err);
    if (rc != 1)
        return rc;
    rc = thin_life(s, life, floor_to(ts, HOUR_MS) + HOUR_MS, err);
    return rc ? rc : 1;
}

static int drop_bins(struct store *s, int tier, struct err *err)
{
    int64_t id, life, ts;
    int rc = oldest(s, tier, &id, &life, &ts, err);
    if (rc != 1)
        return rc;
    rc = db_run(s, STMT_CHUNK_DROP, err, VI(id));
    return rc ? rc : 1;
}

static int drop_hists(struct store *s, struct err *err)
{
    int64_t first;
    int rc = db_number(s, STMT_HIST_OLDEST, &first, err);
    if (rc || !first)
        return rc;
    rc = db_run(s, STMT_HIST_DROP_TO, err, VI(first + 255));
    return rc ? rc : 1;
}

static int drop_requests(struct store *s, struct err *err)
{
    int64_t first;
    int rc = db_number(s, STMT_REQUEST_OLDEST, &first, err);
    if (rc || first < 0)
        return rc;
    rc = db_run(s, STMT_REQUEST_DROP_TO, err, VI(((first >> SERIES_BITS) + DAY_MS) << SERIES_BITS));
    return rc ? rc : 1;
}

static int drop_lives(struct store *s, struct err *err)
{
    int before = sqlite3_total_changes(s->db);
    int rc = db_run_n(s, STMT_LIFE_DROP_ENDED, TABLE_NONE, NULL, 0, err);
    return rc ? rc : sqlite3_total_changes(s->db) > before;
}

/* Events and gaps may take an eighth of the budget each, so that nobody's marks push out what was measured; oldest go. */
static int trim_texts(struct store *s, enum stmt_id size, enum stmt_id trim, struct err *err)
{
    int64_t rows, bytes, share = s->config.disk_budget_bytes / 8;
    {
        _cleanup_rows_ struct rows r = {0};
        int rc = rows_open_n(&r, s, size, TABLE_NONE, NULL, 0, err);
        if (!rc)
            rc = rows_next(&r, err);
        if (rc < 0)
            return rc;
        rows = rows_int(&r, 0);
        bytes = rows_int(&r, 1);
    }
    if (bytes <= share)
        return 0;
    return db_run(s, trim, err, VI((int64_t)((double)rows * (double)share / (double)bytes * 0.75)));
}

/* 1 when something went, 0 when there is nothing left that may. */
static int drop_something(struct store *s, struct err *err)
{
    int rc = drop_raw(s, err);
    if (!rc)
        rc = drop_bins(s, 1, err);
    if (!rc)
        rc = drop_hists(s, err);
    if (!rc)
        rc = drop_requests(s, err);
    if (!rc)
        rc = drop_bins(s, 2, err);
    return rc ? rc : drop_lives(s, err);
}

/* Some steps in one transaction; *ret_any is false when nothing was left. */
static int drop_some(struct store *s, bool *ret_any, struct err *err)
{
    int rc = db_begin(s, true, err);
    if (rc)
        return rc;
    int before = sqlite3_total_changes(s->db);
    rc = trim_texts(s, STMT_EVENT_SIZE, STMT_EVENT_TRIM, err);
    if (!rc)
        rc = trim_texts(s, STMT_GAP_SIZE, STMT_GAP_TRIM, err);
    for (int i = 0; !rc && i < STEPS_A_TURN && (rc = drop_something(s, err)) == 1; i++)
        ;
    *ret_any = sqlite3_total_changes(s->db) != before; /* a damaged index must not make this go on for ever */
    rc = MIN(rc, 0);
    int rc2 = db_end(s, !rc, rc ? NULL : err);
    return rc ? rc : rc2;
}

/* Short writers must not trim a store to a budget that is not its own. */
int budget_agree(struct store *s, struct err *err)
{
    int64_t was;
    int rc = meta_get(s, META_BUDGET, 0, &was, err);
    if (rc)
        return rc;
    if (!s->config.disk_budget_bytes)
        s->config.disk_budget_bytes = was;
    config_defaults(&s->config);
    if (s->mode != STORE_WATCH || s->config.disk_budget_bytes == was)
        return 0;
    rc = meta_put(s, META_BUDGET, s->config.disk_budget_bytes, err);
    return rc == LT_EFULL || rc == LT_EBUSY ? 0 : rc; /* the next watch says it again */
}

int budget_keep(struct store *s, int64_t more_bytes, struct err *err)
{
    int64_t limit = s->config.disk_budget_bytes - reserve(s) - more_bytes;
    int rc = 0;
    if (total_bytes(s) <= limit)
        return 0;
    rc = settle(s, err);
    if (total_bytes(s) > limit)
        limit -= s->config.disk_budget_bytes / 32; /* enough for a while: this costs syncs */
    for (bool any = true; !rc && any && total_bytes(s) > limit;) {
        int64_t before = total_bytes(s), free_pages;
        rc = db_number(s, STMT_FREE_PAGES, &free_pages, err);
        if (!rc && free_pages * 4096 < before - limit)
            rc = drop_some(s, &any, err);
        if (!rc)
            rc = vacuum(s, err);
        any = any && (free_pages == 0 || total_bytes(s) < before);
    }
    if (!rc && total_bytes(s) + more_bytes > s->config.disk_budget_bytes)
        rc = err_set(err, LT_EFULL, "store %s: %lld bytes reach the disk budget and nothing more can go; raise it", s->path,
                     (long long)total_bytes(s));
    return rc;
}
