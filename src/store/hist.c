/* Histograms: one row per life, moment and kind ("path", "peer"), its keys by number (words.c). A row that says what the
 * last one of the same kind said is written at most once an hour. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define HIST_KEYS_MAX 512
#define HIST_BYTES_MAX (HIST_KEYS_MAX * 20)
#define HIST_REPEAT_MS (3600 * 1000)

struct hist_key { int64_t key, count; };

enum key_again { KEEP, REPLACE, ADD };

static int64_t add_counts(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int key_set(struct hist_batch *b, int64_t key, int64_t count, enum key_again again)
{
    VEC_EACH(struct hist_key, k, &b->keys)
        if (k->key == key) {
            k->count = again == KEEP ? k->count : again == REPLACE ? count : add_counts(k->count, count);
            return 0;
        }
    struct hist_key new = {key, count};
    return vec_append(&b->keys, &new);
}

int hist_parse(const uint8_t *p, size_t len, int (*fn)(void *ctx, int64_t key, int64_t count), void *ctx)
{
    for (size_t pos = 0; pos < len;) {
        uint64_t key, count;
        if (varint_get(p, len, &pos, &key) || varint_get(p, len, &pos, &count))
            return LT_ECORRUPT;
        int rc = fn(ctx, (int64_t)key, unzigzag(count));
        if (rc)
            return rc;
    }
    return 0;
}

static int keep_older(void *ctx, int64_t key, int64_t count)
{
    struct hist_batch *b = ctx;
    keys_used(b->s, key);
    return key_set(b, key, count, KEEP);
}

/* The row already there for this life, moment and kind: its keys are kept unless they came again. */
static int take_same(struct hist_batch *b, int64_t *ret_id, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, b->s, STMT_HIST_SAME, TABLE_HIST, err, VI(b->life_id), VI(b->ts_ms), VI(b->what));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc != 1)
        return rc;
    size_t len;
    const uint8_t *p = rows_blob(&r, 4, &len);
    *ret_id = rows_int(&r, 0);
    rc = hist_parse(p, len, keep_older, b);
    return rc == LT_ENOMEM ? rc : 0; /* too many keys: the newer ones stay */
}

/* Whether the newest row of this life and kind is recent and says the same. */
static int says_same(struct hist_batch *b, const struct buf *data, bool *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    *ret = false;
    int rc = rows_open(&r, b->s, STMT_HIST_BEFORE, TABLE_HIST, err, VI(b->life_id), VI(b->what), VI(b->ts_ms));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc != 1)
        return rc;
    size_t len;
    const uint8_t *p = rows_blob(&r, 4, &len);
    *ret = len == data->len && !memcmp(p, data->p, len) && b->ts_ms - rows_int(&r, 2) < HIST_REPEAT_MS;
    return 0;
}

/* By number, so that equal histograms are equal bytes. */
static void sort_keys(struct vec *keys)
{
    struct hist_key *k = keys->items;
    for (size_t i = 1; i < keys->n; i++) {
        struct hist_key x = k[i];
        size_t j = i;
        for (; j > 0 && k[j - 1].key > x.key; j--)
            k[j] = k[j - 1];
        k[j] = x;
    }
}

int hist_flush(struct hist_batch *b, struct err *err)
{
    _cleanup_buf_ struct buf data;
    int64_t id = 0;
    bool same = false;
    buf_init(&data, HIST_BYTES_MAX);
    if (!b->keys.n)
        return 0;
    int rc = take_same(b, &id, err);
    sort_keys(&b->keys);
    VEC_EACH(struct hist_key, k, &b->keys) {
        if (rc)
            break;
        rc = buf_put_varint(&data, (uint64_t)k->key);
        if (!rc)
            rc = buf_put_varint(&data, zigzag(k->count));
        if (rc)
            rc = err_set(err, rc, "store %s: histogram: %s", b->s->path, err_sentence(rc));
    }
    if (!rc && !id)
        rc = says_same(b, &data, &same, err);
    if (!rc && !id && !same) {
        rc = db_number(b->s, STMT_HIST_LAST, &id, err);
        id++;
    }
    if (!rc && !same)
        rc = db_put(b->s, STMT_HIST_PUT, TABLE_HIST, err, VI(id), VI(b->life_id), VI(b->ts_ms), VI(b->what), VB(data.p, data.len));
    vec_clear(&b->keys);
    return rc;
}

int hist_add(struct hist_batch *b, const struct hist_record *r, const char *what, const char *key, struct err *err)
{
    int64_t kind, id;
    if (!b->keys.item_size)
        vec_init(&b->keys, sizeof(struct hist_key), HIST_KEYS_MAX);
    int rc = word_id(b->s, WORD_LIFE, what, &kind, err);
    if (!rc && b->keys.n && (b->life_id != r->life_id || b->ts_ms != r->ts_ms || b->what != kind))
        rc = hist_flush(b, err);
    if (!rc)
        rc = key_id(b->s, key, &id, err);
    if (rc < 0)
        return rc;
    b->life_id = r->life_id;
    b->ts_ms = r->ts_ms;
    b->what = kind;
    rc = key_set(b, id, r->count, rc == 1 ? ADD : REPLACE); /* what shares a name adds up */
    if (rc == LT_ELIMIT) /* the source sends the most frequent first: what is left out is the tail */
        return 0;
    return rc ? err_set(err, rc, "store %s: histogram: %s", b->s->path, err_sentence(rc)) : 0;
}

/* ---- reading ---- */

struct reading {
    struct store *s;
    store_histogram_fn fn;
    void *ctx;
    int64_t life_id, ts_ms, done_id; /* of the row that is given out */
    char what[WORD_MAX + 1];
    bool stopped;
    struct err *err;
};

static int read_key(void *ctx, int64_t id, int64_t count)
{
    struct reading *rd = ctx;
    char key[WORD_MAX + 1];
    int rc = key_text(rd->s, id, key, rd->err);
    return rc ? rc : rd->fn(rd->ctx, rd->life_id, ns_of(rd->ts_ms), rd->what, key, count);
}

static int walk_hist(struct reading *rd, int64_t from_ms, int64_t to_ms)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, rd->s, STMT_HIST_LIFE, TABLE_HIST, rd->err, VI(rd->life_id), VI(from_ms), VI(to_ms));
    while (!rc && (rc = rows_next(&r, rd->err)) == 1) {
        size_t len;
        const uint8_t *p = rows_blob(&r, 4, &len);
        int64_t ts = rows_int(&r, 2), id = rows_int(&r, 0);
        rc = 0;
        if (ts < rd->ts_ms || (ts == rd->ts_ms && id <= rd->done_id)) /* given out before the damage was met */
            continue;
        rc = word_text(rd->s, rows_int(&r, 3), rd->what, rd->err);
        if (rc)
            break;
        rd->ts_ms = ts;
        rd->done_id = id;
        rc = hist_parse(p, len, read_key, rd);
        rd->stopped = rc != 0;
    }
    return rc;
}

int store_each_histogram(struct store *s, int64_t life_id, int64_t from_ns, int64_t to_ns, store_histogram_fn fn, void *ctx,
                         struct err *err)
{
    struct reading rd = {.s = s, .fn = fn, .ctx = ctx, .life_id = life_id, .ts_ms = MS_INVALID, .err = err};
    int rc;
    do {
        rc = db_begin(s, false, err);
        if (rc)
            break;
        rc = walk_hist(&rd, ms_of(from_ns), ms_of(to_ns));
        db_end(s, true, NULL);
    } while (salvage_after(s, &rc, rd.stopped, err));
    return rc;
}
