/* The requests table: a row is a count at a time of a series (target, endpoint, version, outcome, stream, pid). Its id holds
 * both, so that it needs no index: time in ms, then the number of the series. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define SERIES_BITS 21
#define SERIES_MASK ((INT64_C(1) << SERIES_BITS) - 1)
#define TS_MAX ((INT64_C(1) << 42) - 1)
#define ENDPOINTS_MAX 512        /* of one target: the rest is "(other)" */
#define SERIES_MAX 4096          /* of one target: then pids, then endpoints are no longer told apart */
#define CACHE_MAX 4096
static const char other[] = "(other)";

/* Series numbers by what names them, so that a long import does not ask SQLite for each row. */
struct rcache { struct strset *names; struct vec ids; };

void rcache_drop(struct store *s)
{
    if (!s->rcache)
        return;
    strset_free(s->rcache->names);
    vec_release(&s->rcache->ids);
    mem_free(s->rcache);
    s->rcache = NULL;
}

static int rcache_make(struct store *s)
{
    if (s->rcache && strset_count(s->rcache->names) >= CACHE_MAX)
        rcache_drop(s);
    if (s->rcache)
        return 0;
    s->rcache = mem_zalloc(1, sizeof *s->rcache);
    if (!s->rcache)
        return LT_ENOMEM;
    vec_init(&s->rcache->ids, sizeof(int64_t), CACHE_MAX);
    int rc = strset_new(&s->rcache->names, CACHE_MAX, CACHE_MAX * 1024);
    if (rc)
        rcache_drop(s);
    return rc;
}

struct series { int64_t target, endpoint, version, outcome, stream, pid, import; };

static int series_find(struct store *s, const struct series *q, int64_t *ret_id, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_RSERIES_FIND, TABLE_RSERIES, err, VI(q->target), VI(q->endpoint), VI(q->version), VI(q->outcome),
                       VI(q->stream), VI(q->pid), VI(q->import));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1)
        *ret_id = rows_int(&r, 0);
    return rc;
}

/* Too many endpoints or series: what tells them apart is given up, the most fickle first. */
static int series_bound(struct store *s, struct series *q, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_RSERIES_ENDPOINTS, TABLE_NONE, err, VI(q->target), VI(q->endpoint));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc < 0)
        return rc;
    int64_t endpoints = rows_int(&r, 0), known = rows_int(&r, 1), count = rows_int(&r, 2);
    if (count >= SERIES_MAX)
        q->pid = 0;
    if ((!known && endpoints >= ENDPOINTS_MAX) || count >= 2 * SERIES_MAX)
        return word_id(s, WORD_REQUEST, other, &q->endpoint, err);
    return 0;
}

static int series_make(struct store *s, struct series *q, int64_t *ret_id, struct err *err)
{
    int rc = series_bound(s, q, err);
    if (!rc)
        rc = series_find(s, q, ret_id, err);
    if (rc)
        return rc < 0 ? rc : 0;
    rc = db_number(s, STMT_RSERIES_LAST, ret_id, err);
    if (rc)
        return rc;
    if (++*ret_id > SERIES_MASK)
        return err_set(err, LT_ELIMIT, "store %s: too many kinds of requests; use a new store", s->path);
    return db_put(s, STMT_RSERIES_PUT, TABLE_RSERIES, err, VI(*ret_id), VI(q->target), VI(q->endpoint), VI(q->version),
                  VI(q->outcome), VI(q->stream), VI(q->pid), VI(q->import));
}

static int series_of(struct store *s, int64_t target, const struct request_row *row, bool import, int64_t *ret_id, struct err *err)
{
    struct series q = {.target = target, .stream = row->stream, .pid = row->pid, .import = import};
    int rc = word_id(s, WORD_REQUEST, row->endpoint, &q.endpoint, err);
    if (!rc)
        rc = word_id(s, WORD_REQUEST, row->version ? row->version : "", &q.version, err);
    if (!rc)
        rc = word_id(s, WORD_REQUEST, row->outcome ? row->outcome : "", &q.outcome, err);
    if (!rc)
        rc = series_find(s, &q, ret_id, err);
    if (rc)
        return rc < 0 ? rc : 0;
    return series_make(s, &q, ret_id, err);
}

/* As series_of, through the cache. */
static int series_cached(struct store *s, int64_t target, const struct request_row *row, bool import, int64_t *ret_id, struct err *err)
{
    char name[3 * WORD_MAX + 128];
    uint32_t at;
    int rc = rcache_make(s);
    if (rc)
        return err_set(err, rc, "store %s: out of memory", s->path);
    size_t len = str_fmt(name, sizeof name, "%lld %d %d %d %.*s\n%.*s\n%.*s", (long long)target, row->stream, row->pid, import,
                         WORD_MAX, row->endpoint, WORD_MAX, row->version ? row->version : "", WORD_MAX, row->outcome ? row->outcome : "");
    size_t known = strset_count(s->rcache->names);
    rc = strset_id(s->rcache->names, name, MIN(len, sizeof name - 1), &at);
    if (!rc && at < s->rcache->ids.n) {
        *ret_id = *(int64_t *)vec_at(&s->rcache->ids, at);
        return 0;
    }
    int rc2 = series_of(s, target, row, import, ret_id, err);
    /* A name without its number would be taken for known: then the cache is dropped. */
    if (rc || rc2 || at != known || vec_append(&s->rcache->ids, ret_id))
        rcache_drop(s);
    return rc2;
}

static int put_request(struct store *s, int64_t target_id, const struct request_row *row, bool replace, struct err *err)
{
    int64_t series = 0, ts = ms_of(row->ts_ns), n = row->n;
    if (ts < 0 || ts > TS_MAX)
        return err_set(err, LT_EUSAGE, "store %s: a request's time is before 1970 or after 2109", s->path);
    int rc = series_cached(s, target_id, row, replace, &series, err);
    if (rc)
        return rc;
    int64_t id = ts << SERIES_BITS | series;
    if (!replace) {
        _cleanup_rows_ struct rows r = {0};
        rc = rows_open(&r, s, STMT_REQUEST_GET, TABLE_REQUEST, err, VI(id));
        if (!rc)
            rc = rows_next(&r, err);
        if (rc < 0)
            return rc;
        if (rc == 1 && __builtin_add_overflow(n, rows_int(&r, 1), &n))
            n = INT64_MAX;
    }
    return db_put(s, STMT_REQUEST_PUT, TABLE_REQUEST, err, VI(id), VI(n));
}

int store_put_request(struct store *s, int64_t target_id, const struct request_row *row, bool replace, struct err *err)
{
    int rc = write_begin(s, err);
    return rc ? rc : write_end(s, put_request(s, target_id, row, replace, err), err);
}

/* ---- reading ---- */

struct named { int64_t id; uint32_t endpoint, version, outcome; int stream; int32_t pid; };

struct request_walk {
    struct store *s;
    struct strset *texts;
    struct vec series;           /* struct named of the target, by id */
    int64_t done_id;             /* of the last row that was given out, -1: none */
    bool stopped;
    struct err *err;
};

static int text_of(struct request_walk *w, int64_t word, uint32_t *ret)
{
    char text[WORD_MAX + 1];
    int rc = word_text(w->s, word, text, w->err);
    if (!rc && strset_id(w->texts, text, strlen(text), ret))
        rc = err_set(w->err, LT_ENOMEM, "store %s: out of memory", w->s->path);
    return rc;
}

static int load_series(struct request_walk *w, int64_t target_id)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, w->s, STMT_RSERIES_ALL, TABLE_RSERIES, w->err, VI(0));
    while (!rc && (rc = rows_next(&r, w->err)) == 1) {
        rc = 0;
        if (rows_int(&r, 1) != target_id)
            continue;
        struct named n = {.id = rows_int(&r, 0), .stream = (int)rows_int(&r, 5), .pid = (int32_t)rows_int(&r, 6)};
        rc = text_of(w, rows_int(&r, 2), &n.endpoint);
        if (!rc)
            rc = text_of(w, rows_int(&r, 3), &n.version);
        if (!rc)
            rc = text_of(w, rows_int(&r, 4), &n.outcome);
        if (!rc && vec_append(&w->series, &n))
            rc = err_set(w->err, LT_ENOMEM, "store %s: out of memory", w->s->path);
    }
    return rc;
}

static const struct named *series_by_id(const struct vec *series, int64_t id)
{
    size_t lo = 0, hi = series->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct named *n = vec_at(series, mid);
        if (n->id == id)
            return n;
        *(n->id < id ? &lo : &hi) = n->id < id ? mid + 1 : mid;
    }
    return NULL;
}

static int walk_requests(struct request_walk *w, int64_t from_ms, int64_t to_ms, store_request_fn fn, void *ctx)
{
    _cleanup_rows_ struct rows r = {0};
    int64_t lo = MAX(MIN(MAX(from_ms, 0), TS_MAX) << SERIES_BITS, w->done_id + 1);
    int64_t hi = to_ms < 0 ? -1 : MIN(to_ms, TS_MAX) << SERIES_BITS | SERIES_MASK;
    int rc = rows_open(&r, w->s, STMT_REQUEST_SPAN, TABLE_REQUEST, w->err, VI(lo), VI(hi));
    while (!rc && (rc = rows_next(&r, w->err)) == 1) {
        const struct named *n = series_by_id(&w->series, rows_int(&r, 0) & SERIES_MASK);
        rc = 0;
        if (!n)
            continue;
        struct request_row row = {.ts_ns = ns_of(rows_int(&r, 0) >> SERIES_BITS), .endpoint = strset_str(w->texts, n->endpoint),
                                  .version = strset_str(w->texts, n->version), .outcome = strset_str(w->texts, n->outcome),
                                  .stream = n->stream, .pid = n->pid, .n = rows_int(&r, 1)};
        w->done_id = rows_int(&r, 0);
        rc = fn(ctx, &row);
        w->stopped = rc != 0;
    }
    return rc;
}

static int read_requests(struct request_walk *w, int64_t target_id, int64_t from_ms, int64_t to_ms, store_request_fn fn, void *ctx)
{
    vec_init(&w->series, sizeof(struct named), 1 << SERIES_BITS);
    int rc = strset_new(&w->texts, 1 << 18, 64 << 20);
    if (rc)
        return err_set(w->err, rc, "store %s: out of memory", w->s->path);
    rc = db_begin(w->s, false, w->err);
    if (!rc) {
        rc = load_series(w, target_id);
        if (!rc)
            rc = walk_requests(w, from_ms, to_ms, fn, ctx);
        db_end(w->s, true, NULL);
    }
    strset_free(w->texts);
    vec_release(&w->series);
    return rc;
}

int store_each_request(struct store *s, int64_t target_id, int64_t from_ns, int64_t to_ns, store_request_fn fn, void *ctx, struct err *err)
{
    struct request_walk w = {.s = s, .done_id = -1, .err = err};
    int rc;
    do
        rc = read_requests(&w, target_id, ms_of(from_ns), ms_of(to_ns), fn, ctx);
    while (salvage_after(s, &rc, w.stopped, err));
    return rc;
}
