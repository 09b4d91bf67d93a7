/* Chunks as rows. The raw chunks of a life are in order and apart (invariant K5), and each says how long before it the
 * one before ended (K6), so that a chunk that cannot be found is noticed. */
#include <string.h>

#include "store/parts.h"

int chunk_make_scratch(struct store *s, struct err *err)
{
    if (!s->scratch)
        s->scratch = mem_zalloc(1, sizeof *s->scratch);
    if (!s->view)
        s->view = mem_alloc(sizeof *s->view);
    for (int i = 0; i < 2; i++)
        if (!s->chunk[i])
            s->chunk[i] = mem_alloc(sizeof *s->chunk[i]);
    return s->scratch && s->view && s->chunk[0] && s->chunk[1] ? 0 : err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
}

int chunk_put(struct store *s, int64_t life, int tier, const struct chunk *c, struct err *err)
{
    size_t len;
    int64_t last;
    int rc = chunk_make_scratch(s, err);
    if (rc)
        return rc;
    rc = chunk_encode(c, s->scratch, &len);
    if (rc)
        return err_set(err, rc, "store %s: a chunk is too large", s->path);
    rc = db_number(s, STMT_CHUNK_LAST, &last, err);
    if (!rc)
        rc = db_put(s, STMT_CHUNK_PUT, TABLE_CHUNK, err, VI(last + 1), VI(life), VI(tier), VI(c->ts[0]), VB(s->scratch->out, len));
    return rc;
}

int chunk_head(struct store *s, const struct rows *r, struct err *err)
{
    size_t len;
    const uint8_t *p = rows_blob(r, 4, &len);
    int rc = chunk_make_scratch(s, err);
    if (rc)
        return rc;
    bool raw = rows_int(r, 2) == 0;
    if (chunk_parse(s->view, p, len) || (s->view->form == CHUNK_RAW) != raw ||
        rows_int(r, 3) > INT64_MAX - s->view->span_ms) {
        store_lost(s, "chunk %lld cannot be decoded", (long long)rows_int(r, 0));
        return LT_ECORRUPT;
    }
    return 0;
}

int chunk_row(struct store *s, const struct rows *r, uint64_t wanted, struct chunk *c, struct err *err)
{
    int rc = chunk_head(s, r, err);
    if (!rc && chunk_decode(s->view, rows_int(r, 3), wanted, c)) {
        store_lost(s, "chunk %lld cannot be decoded", (long long)rows_int(r, 0));
        rc = LT_ECORRUPT;
    }
    return rc;
}

/* ---- merging new points into what is there ---- */

static void blank_column(struct chunk *c, int m)
{
    for (size_t i = 0; i < c->n; i++)
        c->v[m][0][i] = METRIC_NA;
}

/* Appends point i of `from` to `to`; columns that only one of them has are NA in the other's points. */
static void copy_point(struct chunk *to, const struct chunk *from, size_t i)
{
    uint64_t fresh = from->mask & ~to->mask;
    for (; fresh; fresh &= fresh - 1)
        blank_column(to, __builtin_ctzll(fresh));
    to->mask |= from->mask;
    for (uint64_t left = to->mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        to->v[m][0][to->n] = from->mask >> m & 1 ? from->v[m][0][i] : METRIC_NA;
    }
    to->ts[to->n] = from->ts[i];
    to->count[to->n] = 1;
    to->n++;
}

/* Where merged points go: a chunk that is written when it is full. */
struct sink { struct store *s; int64_t life, prev_ms; struct chunk *c; struct err *err; };

/* Columns that turned out to hold nothing in this chunk do not belong in it. */
static void drop_empty_columns(struct chunk *c)
{
    for (uint64_t left = c->mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        size_t i = 0;
        while (i < c->n && c->v[m][0][i] == METRIC_NA)
            i++;
        if (i == c->n)
            c->mask &= ~(UINT64_C(1) << m);
    }
}

static int sink_flush(struct sink *k)
{
    if (!k->c->n)
        return 0;
    drop_empty_columns(k->c);
    k->c->form = CHUNK_RAW;
    k->c->prev_ms = k->prev_ms;
    int rc = chunk_put(k->s, k->life, 0, k->c, k->err);
    k->prev_ms = k->c->ts[k->c->n - 1];
    k->c->n = 0;
    k->c->mask = 0;
    return rc;
}

static int sink_point(struct sink *k, const struct chunk *from, size_t i)
{
    int rc = k->c->n == COLUMN_MAX ? sink_flush(k) : 0;
    if (!rc)
        copy_point(k->c, from, i);
    return rc;
}

/* The chunks that new points of [from, to] fall into or beside: the last that begins before, all within, the first after. */
static int touched(struct store *s, int64_t life, int64_t from, int64_t to, struct vec *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_CHUNK_LIFE, TABLE_CHUNK, err, VI(life), VI(0), VI(from), VI(INT64_MAX));
    while (!rc && (rc = rows_next(&r, err)) == 1) {
        rc = chunk_head(s, &r, err);
        if (rc == LT_ECORRUPT) {
            rc = 0;
            continue;
        }
        struct old_chunk old = {rows_int(&r, 0), rows_int(&r, 3), rows_int(&r, 3) + s->view->span_ms, s->view->n};
        if (!rc && vec_append(ret, &old))
            rc = err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
        if (old.ts > to)
            break;
    }
    return rc;
}

static int read_old(struct store *s, int64_t id, struct chunk *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_CHUNK_GET, TABLE_CHUNK, err, VI(id));
    if (!rc)
        rc = rows_next(&r, err);
    return rc == 1 ? chunk_row(s, &r, METRICS_ALL, ret, err) : rc ? rc : err_set(err, LT_ECORRUPT, "store %s: a chunk is gone", s->path);
}

/* Replaces an old chunk by itself and those points of c that come before its end; *pos is the next new point. What is
 * written ends where the old chunk ended, so its successor's link still holds. */
static int merge_one(struct sink *k, const struct chunk *c, size_t *pos, int64_t old_id)
{
    struct chunk *o = k->s->chunk[1];
    int rc = read_old(k->s, old_id, o, k->err);
    if (rc)
        return rc;
    if (k->prev_ms == CHUNK_NO_PREV && !k->c->n && !(*pos < c->n && c->ts[*pos] < o->ts[0]))
        k->prev_ms = o->prev_ms;
    rc = db_run(k->s, STMT_CHUNK_DROP, k->err, VI(old_id));
    for (size_t i = 0; i < o->n && !rc; i++) {
        while (*pos < c->n && c->ts[*pos] < o->ts[i] && !rc)
            rc = sink_point(k, c, (*pos)++);
        if (!rc && !(*pos < c->n && c->ts[*pos] == o->ts[i])) /* on equal times the new one stands */
            rc = sink_point(k, o, i);
        else if (!rc)
            rc = sink_point(k, c, (*pos)++);
    }
    return rc;
}

static int merge_all(struct sink *k, const struct chunk *c, const struct vec *olds)
{
    size_t pos = 0;
    int rc = 0;
    for (size_t i = 0; i < olds->n && !rc; i++) {
        const struct old_chunk *old = vec_at(olds, i);
        bool fills_up = i + 1 == olds->n && pos < c->n && c->ts[pos] > old->last && old->n + c->n - pos <= COLUMN_MAX;
        while (pos < c->n && c->ts[pos] < old->ts && !rc)
            rc = sink_point(k, c, pos++);
        if (rc)
            break;
        if (!fills_up && !k->c->n && !(pos < c->n && c->ts[pos] <= old->last)) {
            k->prev_ms = old->last;
            continue;
        }
        rc = merge_one(k, c, &pos, old->id);
        if (!rc && !fills_up)
            rc = sink_flush(k);
    }
    while (pos < c->n && !rc)
        rc = sink_point(k, c, pos++);
    return rc ? rc : sink_flush(k);
}

int chunk_merge(struct store *s, int64_t life, const struct chunk *c, int64_t *raw_end_ms, struct err *err)
{
    int rc = chunk_make_scratch(s, err);
    if (rc)
        return rc;
    struct sink k = {s, life, CHUNK_NO_PREV, s->chunk[0], err};
    k.c->n = 0;
    k.c->mask = 0;
    vec_clear(&s->olds);
    rc = touched(s, life, c->ts[0], c->ts[c->n - 1], &s->olds, err);
    *raw_end_ms = MAX(*raw_end_ms, c->ts[c->n - 1]);
    return rc ? rc : merge_all(&k, c, &s->olds);
}
