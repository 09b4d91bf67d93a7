/* Imported curves: lives with negative ids whose samples go straight into chunks. */
#include <string.h>

#include "store/parts.h"

int store_import_life(struct store *s, const struct life_info *info, int64_t *ret_id, struct err *err)
{
    struct life_full full;
    int64_t id = 0;
    int rc = write_begin(s, err);
    if (rc)
        return rc;
    rc = life_find(s, info, -1, &full, NULL);
    if (!rc) {
        id = full.id;
    } else if (rc == LT_ENOENT) {
        rc = db_number(s, STMT_LIFE_FIRST, &id, err);
        life_init(&full, --id);
        full.info = *info;
        full.end = (struct life_end){.cause = LIFE_IMPORTED, .wall_ns = info->start_wall_ns};
        if (!rc)
            rc = life_write(s, &full, err);
    } else {
        err_set(err, rc, "store %s: cannot look for a life: %s", s->path, err_sentence(rc));
    }
    rc = write_end(s, rc, err);
    if (!rc)
        *ret_id = id;
    return rc;
}

/* ---- samples ---- */

struct import_order { int64_t ts_ms; size_t at; };

/* By time; of samples with one time the last given stays. */
static size_t sort_samples(struct import_order *o, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (size_t i = gap; i < n; i++) {
            struct import_order x = o[i];
            size_t j = i;
            for (; j >= gap && (o[j - gap].ts_ms > x.ts_ms || (o[j - gap].ts_ms == x.ts_ms && o[j - gap].at > x.at)); j -= gap)
                o[j] = o[j - gap];
            o[j] = x;
        }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept && o[kept - 1].ts_ms == o[i].ts_ms)
            kept--;
        o[kept++] = o[i];
    }
    return kept;
}

static void fill_chunk(struct chunk *c, const struct import_order *o, size_t n, const struct sample *rows)
{
    c->form = CHUNK_RAW;
    c->n = n;
    c->mask = 0;
    for (size_t i = 0; i < n; i++) {
        c->ts[i] = o[i].ts_ms;
        c->count[i] = 1;
        for (int m = 0; m < METRIC_N; m++) {
            int64_t v = rows[o[i].at].v[m];
            c->v[m][0][i] = v < 0 ? METRIC_NA : v;
            if (v >= 0)
                c->mask |= UINT64_C(1) << m;
        }
    }
}

/* The summary grows when all samples are newer than what it holds; else it is made anew before the commit. */
static int account(struct store *s, struct life_full *l, const struct import_order *o, size_t n, const struct sample *rows)
{
    if (l->sum.samples && o[0].ts_ms <= l->sum.last_ms)
        return map_put(&s->dirty, (uint64_t)l->id, 1);
    for (size_t i = 0; i < n; i++)
        summary_add(&l->sum, o[i].ts_ms, rows[o[i].at].v);
    l->end.wall_ns = ns_of(l->sum.last_ms);
    return 0;
}

static int import_all(struct store *s, int64_t life_id, const int64_t *ts_ns, const struct sample *rows, size_t n, struct err *err)
{
    _cleanup_mem_ struct import_order *o = mem_zalloc(n, sizeof *o);
    _cleanup_mem_ struct chunk *c = mem_alloc(sizeof *c);
    if (!o || !c)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    for (size_t i = 0; i < n; i++)
        o[i] = (struct import_order){ms_of(ts_ns[i]), i};
    n = sort_samples(o, n);
    struct life_full full;
    int rc = life_get(s, life_id, &full, err);
    if (!rc && account(s, &full, o, n, rows))
        rc = err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    for (size_t at = 0; at < n && !rc; at += COLUMN_MAX) {
        fill_chunk(c, o + at, MIN(n - at, (size_t)COLUMN_MAX), rows);
        rc = chunk_merge(s, life_id, c, &full.raw_end_ms, err);
    }
    return rc ? rc : life_write(s, &full, err);
}

int store_import_samples(struct store *s, int64_t life_id, const int64_t *ts_ns, const struct sample *rows, size_t n, struct err *err)
{
    if (life_id >= 0)
        return err_set(err, LT_EUSAGE, "store %s: samples are imported into imported lives only", s->path);
    if (!n)
        return 0;
    int rc = write_begin(s, err);
    return rc ? rc : write_end(s, import_all(s, life_id, ts_ns, rows, n, err), err);
}

/* ---- settling ---- */

static void add_footers(const struct chunk_view *v, int64_t from_ms, struct summary *sum)
{
    if (!sum->samples)
        sum->first_ms = from_ms;
    sum->last_ms = from_ms + v->span_ms;
    sum->samples += v->n;
    for (int m = 0; m < METRIC_N; m++) {
        int64_t f[PART_N];
        if (!chunk_footer(v, m, f))
            continue;
        if (sum->first[m] == METRIC_NA)
            sum->first[m] = f[PART_FIRST];
        sum->last[m] = f[PART_LAST];
    }
}

static int resum(struct store *s, int64_t life_id, struct summary *sum, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    summary_init(sum);
    int rc = rows_open(&r, s, STMT_CHUNK_LIFE, TABLE_CHUNK, err, VI(life_id), VI(0), VI(INT64_MIN), VI(INT64_MAX));
    while (!rc && (rc = rows_next(&r, err)) == 1) {
        rc = chunk_head(s, &r, err);
        if (!rc)
            add_footers(s->view, rows_int(&r, 3), sum);
        rc = rc == LT_ECORRUPT ? 0 : rc;
    }
    return rc;
}

int import_settle(struct store *s, struct err *err)
{
    size_t pos = 0;
    int rc = 0;
    for (struct map_entry *e; !rc && (e = map_next(&s->dirty, &pos));) {
        struct life_full full;
        rc = life_get(s, (int64_t)e->key, &full, err);
        if (!rc)
            rc = resum(s, full.id, &full.sum, err);
        full.end.wall_ns = ns_of(full.sum.last_ms);
        if (!rc)
            rc = life_write(s, &full, err);
    }
    map_clear(&s->dirty);
    return rc;
}
