/* What is too old: raw samples become bins, bins go after their time, old request counts are folded into 5 min, old
 * histograms are thinned to one an hour, then one a day, and keys that none names any more go. A pass begins once an hour;
 * each commit does a bounded part of it. */
#include <string.h>

#include "store/parts.h"

#define HOUR_MS INT64_C(3600000)
#define LIVES_A_STEP 32
#define ROWS_A_STEP 1000
#define SERIES_BITS 21
#define FOLD_MS INT64_C(300000)

/* ---- chunks ---- */

static int next_life(struct store *s, int64_t after, int64_t *ret_life, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_CHUNK_LIVES, TABLE_NONE, err, VI(after));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc != 1 || sqlite3_column_type(r.st, 0) == SQLITE_NULL)
        return rc < 0 ? rc : 0;
    *ret_life = rows_int(&r, 0);
    return 1;
}

static int raw_start(struct store *s, int64_t life, int64_t *ret_ms, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_CHUNK_START, TABLE_NONE, err, VI(life), VI(0));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1)
        *ret_ms = rows_int(&r, 0);
    return rc < 0 ? rc : 0;
}

/* Raw is thinned ten hours at a time, so that a chunk of 5 min bins is written whole and once. */
static int age_life(struct store *s, int64_t life, int64_t now_ms, struct err *err)
{
    int64_t start = MS_INVALID, cut = floor_to(now_ms - ms_of(s->config.raw_keep_ns), HOUR_MS);
    int rc = raw_start(s, life, &start, err);
    if (!rc && start != MS_INVALID && start < cut - 10 * HOUR_MS)
        rc = thin_life(s, life, cut, err);
    if (!rc)
        rc = db_run(s, STMT_CHUNK_DROP_OLD, err, VI(life), VI(1), VI(now_ms - ms_of(s->config.tier1_keep_ns) - 10 * HOUR_MS));
    if (!rc)
        rc = db_run(s, STMT_CHUNK_DROP_OLD, err, VI(life), VI(2), VI(now_ms - ms_of(s->config.tier2_keep_ns) - 120 * HOUR_MS));
    return rc;
}

/* Imported curves (ids below zero) are not thinned by age: they are judged as of their own last sample. */
static int age_chunks(struct store *s, int64_t now_ms, bool *ret_done, struct err *err)
{
    for (int i = 0; i < LIVES_A_STEP; i++) {
        int rc = next_life(s, s->w.pass.life, &s->w.pass.life, err);
        if (rc <= 0) {
            *ret_done = true;
            return rc;
        }
        rc = age_life(s, s->w.pass.life, now_ms, err);
        if (rc)
            return rc;
    }
    *ret_done = false;
    return 0;
}

/* ---- requests ---- */

struct fold { int64_t id, n; };

static int series_is_import(struct store *s, int64_t series, bool *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_RSERIES_GET, TABLE_RSERIES, err, VI(series));
    if (!rc)
        rc = rows_next(&r, err);
    *ret = rc == 1 && rows_int(&r, 7);
    return rc < 0 ? rc : 0;
}

static int add_to(struct store *s, int64_t id, int64_t n, struct err *err)
{
    {
        _cleanup_rows_ struct rows r = {0};
        int rc = rows_open(&r, s, STMT_REQUEST_GET, TABLE_REQUEST, err, VI(id));
        if (!rc)
            rc = rows_next(&r, err);
        if (rc < 0)
            return rc;
        if (rc == 1 && __builtin_add_overflow(n, rows_int(&r, 1), &n))
            n = INT64_MAX;
    }
    return db_put(s, STMT_REQUEST_PUT, TABLE_REQUEST, err, VI(id), VI(n));
}

/* Imported counts keep their times: importing their file again must find them. */
static int fold_row(struct store *s, const struct fold *f, struct err *err)
{
    int64_t ts = f->id >> SERIES_BITS, series = f->id & ((INT64_C(1) << SERIES_BITS) - 1);
    bool import;
    if (ts % FOLD_MS == 0)
        return 0;
    int rc = series_is_import(s, series, &import, err);
    if (rc || import)
        return rc;
    rc = db_run(s, STMT_REQUEST_DROP, err, VI(f->id));
    return rc ? rc : add_to(s, floor_to(ts, FOLD_MS) << SERIES_BITS | series, f->n, err);
}

static int collect(struct store *s, int64_t lo, int64_t hi, struct vec *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_REQUEST_SPAN, TABLE_REQUEST, err, VI(lo), VI(hi));
    while (!rc && ret->n < ROWS_A_STEP && (rc = rows_next(&r, err)) == 1) {
        struct fold f = {rows_int(&r, 0), rows_int(&r, 1)};
        rc = vec_append(ret, &f) ? err_set(err, LT_ENOMEM, "store %s: out of memory", s->path) : 0;
    }
    return rc;
}

static int fold_requests(struct store *s, int64_t now_ms, bool *ret_done, struct err *err)
{
    _cleanup_vec_ struct vec rows;
    int64_t from, cut = floor_to(now_ms - ms_of(s->config.raw_keep_ns), FOLD_MS);
    vec_init(&rows, sizeof(struct fold), ROWS_A_STEP);
    *ret_done = true;
    int rc = meta_get(s, META_FOLDED_ID, 0, &from, err);
    if (rc || cut <= 0 || from >= cut << SERIES_BITS)
        return rc;
    rc = collect(s, from, (cut << SERIES_BITS) - 1, &rows, err);
    VEC_EACH(struct fold, f, &rows)
        rc = rc ? rc : fold_row(s, f, err);
    if (rc)
        return rc;
    *ret_done = rows.n < ROWS_A_STEP;
    from = *ret_done ? cut << SERIES_BITS : ((struct fold *)vec_at(&rows, rows.n - 1))->id + 1;
    int64_t gone = now_ms - ms_of(s->config.tier2_keep_ns);
    if (gone > 0)
        rc = db_run(s, STMT_REQUEST_DROP_TO, err, VI(gone << SERIES_BITS));
    return rc ? rc : meta_put(s, META_FOLDED_ID, from, err);
}

/* ---- histograms ---- */

struct hist_row { int64_t id, life, ts, what; };

static int hist_has_earlier(struct store *s, const struct hist_row *h, int64_t width, bool *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_HIST_BEFORE, TABLE_HIST, err, VI(h->life), VI(h->what), VI(h->ts));
    if (!rc)
        rc = rows_next(&r, err);
    *ret = rc == 1 && floor_to(rows_int(&r, 2), width) == floor_to(h->ts, width);
    return rc < 0 ? rc : 0;
}

static int age_hist(struct store *s, const struct hist_row *h, int64_t now_ms, struct err *err)
{
    int64_t age = now_ms - h->ts;
    bool drop = age > ms_of(s->config.tier1_keep_ns);
    int rc = 0;
    if (!drop && age > 48 * HOUR_MS)
        rc = hist_has_earlier(s, h, age > ms_of(s->config.raw_keep_ns) ? 24 * HOUR_MS : HOUR_MS, &drop, err);
    return rc || !drop ? rc : db_run(s, STMT_HIST_DROP, err, VI(h->id));
}

static int age_hists(struct store *s, int64_t now_ms, bool *ret_done, struct err *err)
{
    _cleanup_vec_ struct vec rows;
    vec_init(&rows, sizeof(struct hist_row), ROWS_A_STEP);
    int rc;
    {
        _cleanup_rows_ struct rows r = {0};
        rc = rows_open(&r, s, STMT_HIST_ALL, TABLE_HIST, err, VI(s->w.pass.hist));
        while (!rc && rows.n < ROWS_A_STEP && (rc = rows_next(&r, err)) == 1) {
            struct hist_row h = {rows_int(&r, 0), rows_int(&r, 1), rows_int(&r, 2), rows_int(&r, 3)};
            rc = vec_append(&rows, &h) ? err_set(err, LT_ENOMEM, "store %s: out of memory", s->path) : 0;
        }
    }
    VEC_EACH(struct hist_row, h, &rows) {
        rc = rc ? rc : age_hist(s, h, now_ms, err);
        s->w.pass.hist = h->id;
    }
    *ret_done = rows.n < ROWS_A_STEP;
    return rc;
}

/* ---- the pass ---- */

static int step(struct store *s, int64_t now_ms, struct err *err)
{
    static int (*const parts[])(struct store *s, int64_t now_ms, bool *ret_done, struct err *err) = {
        age_chunks, fold_requests, age_hists, keys_age};
    struct pass *p = &s->w.pass;
    bool done = false;
    int rc = parts[p->part](s, now_ms, &done, err);
    if (rc || !done)
        return rc;
    if (++p->part == ARRAY_SIZE(parts))
        *p = (struct pass){.next_ms = now_ms + HOUR_MS};
    return 0;
}

int retain_step(struct store *s, int64_t now_ms, struct err *err)
{
    struct pass was = s->w.pass;
    /* A clock that went back must not stop it for as long as it went. */
    if (now_ms < was.next_ms && was.next_ms - now_ms <= HOUR_MS)
        return 0;
    int rc = db_begin(s, true, err);
    if (rc)
        return rc;
    rc = step(s, now_ms, err);
    int rc2 = db_end(s, !rc, rc ? NULL : err);
    if (rc || rc2) {
        s->w.pass = was;
        s->w.nkeys = -1;
    }
    return rc ? rc : rc2;
}
