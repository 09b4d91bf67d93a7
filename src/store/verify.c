/* `store verify`: SQLite's own check, every checksum, every invariant of FORMAT.md that a reader can see. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

struct verify {
    struct store *s;
    store_verify_fn fn;
    void *ctx;
    struct err *err;
    uint64_t found;
    struct chunk *c;
};

static void report(void *ctx, const char *line)
{
    struct verify *v = ctx;
    v->found++;
    if (v->fn)
        v->fn(v->ctx, line);
}

static void reportf(struct verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void reportf(struct verify *v, const char *fmt, ...)
{
    _cleanup_buf_ struct buf b;
    va_list ap;
    buf_init(&b, 1024);
    va_start(ap, fmt);
    int rc = buf_vprintf(&b, fmt, ap);
    va_end(ap);
    report(v, rc ? fmt : b.p);
}

/* Damage of one part is a finding, not the end: anything else is an error. */
static int finding(struct verify *v, int rc, const char *what)
{
    if (rc != LT_ECORRUPT)
        return rc;
    reportf(v, "%s: SQLite cannot read on from here: %s", what, sqlite3_errmsg(v->s->db));
    return 0;
}

static int check_sqlite(struct verify *v)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(v->s->db, "PRAGMA integrity_check(100)", -1, &st, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(st);
        const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
        if (text && !str_eq(text, "ok"))
            reportf(v, "SQLite: %s", text);
    }
    int out = rc == SQLITE_DONE ? 0 : db_error(v->s, rc, v->err);
    sqlite3_finalize(st);
    return finding(v, out, "integrity check");
}

/* ---- one check a table: rows_next has compared the checksum of every row it gives ---- */

static int check_word(struct verify *v, int64_t id, const char *owner, int64_t owner_id)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, v->s, STMT_WORD_GET, TABLE_WORD, v->err, VI(id));
    if (!rc)
        rc = rows_next(&r, v->err);
    if (rc == 0)
        reportf(v, "%s %lld names text %lld, which is not there", owner, (long long)owner_id, (long long)id); /* W1 */
    return rc < 0 ? rc : 0;
}

/* Raw chunks of a life are apart, in order, linked, and end where its row says (K5, K6, K7). */
static int check_links(struct verify *v, int64_t life, int64_t raw_end_ms)
{
    _cleanup_rows_ struct rows r = {0};
    int64_t end = MS_INVALID;
    int rc = rows_open(&r, v->s, STMT_CHUNK_LIFE, TABLE_CHUNK, v->err, VI(life), VI(0), VI(INT64_MIN), VI(INT64_MAX));
    while (!rc && (rc = rows_next(&r, v->err)) == 1) {
        int64_t from = rows_int(&r, 3), id = rows_int(&r, 0);
        rc = chunk_head(v->s, &r, v->err);
        bool bad = rc == LT_ECORRUPT;
        rc = bad ? 0 : rc;
        if (bad || rc)
            continue;
        int64_t gap = v->s->view->prev_gap;
        if (end != MS_INVALID && from <= end)
            reportf(v, "life %lld: chunk %lld begins before the one before it ends", (long long)life, (long long)id);
        else if (gap != (end == MS_INVALID ? 0 : from - end))
            reportf(v, "life %lld: samples before chunk %lld are missing", (long long)life, (long long)id);
        end = from + v->s->view->span_ms;
    }
    if (!rc && end != raw_end_ms)
        reportf(v, "life %lld: its last chunk is not where its row says", (long long)life);
    return finding(v, rc, "chunks of a life");
}

static int check_life(struct verify *v, const struct rows *r)
{
    struct life_full l;
    int rc = life_read(v->s, r, &l, v->err);
    if (rc)
        return rc == LT_ECORRUPT ? 0 : rc;
    if (l.end.cause < 0 || l.end.cause >= LIFE_END_N)
        reportf(v, "life %lld ended in a way this build does not know (%d)", (long long)l.id, l.end.cause); /* L3 */
    if (l.sum.samples && l.sum.first_ms > l.sum.last_ms)
        reportf(v, "life %lld ends before it begins", (long long)l.id); /* L4 */
    rc = check_word(v, rows_int(r, 2), "life", l.id);
    return rc ? rc : check_links(v, l.id, l.raw_end_ms);
}

/* Footers are what the values say (C5). */
static void check_footers(struct verify *v, int64_t id, const struct chunk *c)
{
    for (uint64_t left = c->mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        int64_t f[PART_N], sorted[COLUMN_MAX], first = METRIC_NA, last = METRIC_NA;
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++) {
            int64_t x = c->v[m][0][i];
            if (x == METRIC_NA)
                continue;
            first = n ? first : x;
            last = x;
            sorted[n++] = x;
        }
        column_sort(sorted, n);
        if (!n || !chunk_footer(v->s->view, m, f) || f[PART_FIRST] != first || f[PART_LAST] != last || f[PART_MIN] != sorted[0] ||
            f[PART_P10] != sorted[column_p10_index(n)] || f[PART_MAX] != sorted[n - 1])
            reportf(v, "chunk %lld: the footer of %s does not agree with its values", (long long)id, metrics[m].name);
    }
}

static void check_bins(struct verify *v, int64_t id, int64_t tier, const struct chunk *c)
{
    int64_t width = tier == 1 ? 300000 : 3600000;
    for (size_t i = 0; i < c->n; i++)
        if (c->ts[i] % width || c->count[i] < 1) { /* T1 */
            reportf(v, "chunk %lld: a bin does not begin where bins begin", (long long)id);
            return;
        }
    for (uint64_t left = c->mask; left; left &= left - 1) {
        const int64_t (*p)[COLUMN_MAX] = c->v[__builtin_ctzll(left)];
        for (size_t i = 0; i < c->n; i++)
            if (p[PART_MIN][i] > p[PART_P10][i] || p[PART_P10][i] > p[PART_MAX][i] || p[PART_MIN][i] > p[PART_FIRST][i] ||
                p[PART_FIRST][i] > p[PART_MAX][i] || p[PART_MIN][i] > p[PART_LAST][i] || p[PART_LAST][i] > p[PART_MAX][i]) { /* T2 */
                reportf(v, "chunk %lld: a bin's minimum is not its least value", (long long)id);
                return;
            }
    }
}

static int check_chunk(struct verify *v, const struct rows *r)
{
    int64_t id = rows_int(r, 0), tier = rows_int(r, 2);
    if (tier < 0 || tier > 2) {
        reportf(v, "chunk %lld is of tier %lld, which there is not", (long long)id, (long long)tier);
        return 0;
    }
    int rc = chunk_row(v->s, r, METRICS_ALL, v->c, v->err);
    if (rc)
        return rc == LT_ECORRUPT ? 0 : rc;
    if (tier)
        check_bins(v, id, tier, v->c);
    else
        check_footers(v, id, v->c);
    return 0;
}

static int check_series(struct verify *v, const struct rows *r)
{
    int rc = 0;
    for (int c = 2; c <= 4 && !rc; c++)
        rc = check_word(v, rows_int(r, c), "kind of requests", rows_int(r, 0));
    return rc;
}

struct hist_check { struct verify *v; int64_t id; };

static int check_key(void *ctx, int64_t key, int64_t count)
{
    const struct hist_check *h = ctx;
    _cleanup_rows_ struct rows r = {0};
    (void)count;
    int rc = rows_open(&r, h->v->s, STMT_KEY_GET, TABLE_KEY, h->v->err, VI(key));
    if (!rc)
        rc = rows_next(&r, h->v->err);
    if (rc == 0)
        reportf(h->v, "histogram %lld names key %lld, which is not there", (long long)h->id, (long long)key); /* W2 */
    return MIN(rc, 0);
}

static int check_hist(struct verify *v, const struct rows *r)
{
    struct hist_check h = {v, rows_int(r, 0)};
    size_t len;
    const uint8_t *p = rows_blob(r, 4, &len);
    int rc = check_word(v, rows_int(r, 3), "histogram", h.id);
    if (!rc && (rc = hist_parse(p, len, check_key, &h)) == LT_ECORRUPT) {
        reportf(v, "histogram %lld cannot be read to its end", (long long)h.id); /* Q2 */
        rc = 0;
    }
    return rc;
}

static int scan(struct verify *v, enum stmt_id id, enum table_id table, int (*check)(struct verify *v, const struct rows *r))
{
    _cleanup_rows_ struct rows r = {0};
    int64_t last = INT64_MIN;
    int rc = rows_open(&r, v->s, id, table, v->err, VI(INT64_MIN), VI(INT64_MAX));
    while (!rc && (rc = rows_next(&r, v->err)) == 1) {
        if (rows_int(&r, 0) <= last)
            reportf(v, "table %s: row %lld comes twice or out of order", tables[table].name, (long long)rows_int(&r, 0));
        last = rows_int(&r, 0);
        rc = check ? check(v, &r) : 0;
    }
    return finding(v, rc, tables[table].name);
}

static int check_tables(struct verify *v)
{
    static const struct { enum stmt_id id; enum table_id table; int (*check)(struct verify *v, const struct rows *r); } all[] = {
        {STMT_META_ALL, TABLE_META, NULL}, {STMT_WORD_ALL, TABLE_WORD, NULL}, {STMT_TARGET_ALL, TABLE_TARGET, NULL},
        {STMT_LIFE_ALL, TABLE_LIFE, check_life}, {STMT_SWEEP_ALL, TABLE_SWEEP, NULL}, {STMT_CHUNK_ALL, TABLE_CHUNK, check_chunk},
        {STMT_EVENT_ALL, TABLE_EVENT, NULL}, {STMT_GAP_ALL, TABLE_GAP, NULL}, {STMT_RSERIES_ALL, TABLE_RSERIES, check_series},
        {STMT_REQUEST_SPAN, TABLE_REQUEST, NULL}, {STMT_HIST_ALL, TABLE_HIST, check_hist},
        {STMT_KEY_ALL, TABLE_KEY, NULL},
    };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_SIZE(all) && !rc; i++)
        rc = scan(v, all[i].id, all[i].table, all[i].check);
    return rc;
}

/* ---- across rows ---- */

/* The log can be read from its first key to its end (S3). */
static int check_log(struct verify *v)
{
    bool was_watch = v->s->mode == STORE_WATCH;
    return was_watch ? 0 : finding(v, lives_refresh(v->s, v->err), "sweeps");
}

static int check_all(struct verify *v)
{
    int rc = check_sqlite(v);
    if (!rc)
        rc = check_tables(v);
    return rc ? rc : check_log(v);
}

int store_verify(struct store *s, store_verify_fn fn, void *ctx, struct err *err)
{
    struct verify v = {.s = s, .fn = fn, .ctx = ctx, .err = err};
    if (store_damage(s)) /* found at open */
        report(&v, store_damage(s));
    v.c = mem_alloc(sizeof *v.c);
    if (!v.c)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    s->lost_fn = report;
    s->lost_ctx = &v;
    int rc = db_begin(s, false, err);
    if (!rc) {
        rc = check_all(&v);
        db_end(s, true, NULL);
    }
    s->lost_fn = NULL;
    mem_free(v.c);
    if (rc || !v.found)
        return rc;
    return err_set(err, LT_ECORRUPT, "store %s: %llu findings; what can be read still is", s->path, (unsigned long long)v.found);
}
