/* Unsealed sweeps. Each is coded against the one before, back to a key row; after a row that is lost or damaged, the rows
 * up to the next key cannot be read either. */
#include "store/parts.h"

struct walk { const struct log_visit *visit; int64_t seq, ts_ms; };

static int64_t *walk_slot(void *ctx, int64_t id)
{
    struct walk *w = ctx;
    return w->visit->slot(w->visit->ctx, id);
}

static int walk_row(void *ctx, int64_t id, const int64_t *v)
{
    struct walk *w = ctx;
    if (w->seq <= w->visit->after_seq)
        return 0;
    return w->visit->row(w->visit->ctx, w->seq, w->ts_ms, id, v);
}

int log_read(struct store *s, const struct log_visit *visit, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    struct walk w = {.visit = visit};
    struct sweep_reader reader = {.ctx = &w, .slot = visit->slot ? walk_slot : NULL, .row = walk_row, .lo = visit->lo, .hi = visit->hi};
    bool synced = false;
    uint64_t lost = s->lost_rows;
    int rc = rows_open(&r, s, STMT_SWEEP_ALL, TABLE_SWEEP, err, VI(0), VI(visit->upto_seq));
    while (!rc && (rc = rows_next(&r, err)) == 1) {
        size_t len;
        const uint8_t *p = rows_blob(&r, 2, &len);
        int64_t seq = rows_int(&r, 0);
        int kind = sweep_kind_of(p, len);
        /* Invariant S2: numbers follow one another. When a row is neither there nor known to be damaged, SQLite's pages are. */
        bool hidden = w.seq && seq != w.seq + 1 && lost == s->lost_rows;
        if (hidden && s->mode == STORE_READ && !s->salvaged)
            return err_set(err, LT_ECORRUPT, "store %s: sweeps are missing; see 'lowtide store verify'", s->path);
        if (hidden)
            store_lost(s, "sweeps before %lld are missing", (long long)seq);
        if (kind == SWEEP_KEY) {
            visit->blank(visit->ctx);
            synced = true;
        } else if (seq != w.seq + 1) {
            synced = false;
        }
        w.seq = seq;
        w.ts_ms = rows_int(&r, 1);
        rc = 0;
        if (synced)
            rc = sweep_read(&reader, p, len);
        else
            store_lost(s, "sweep %lld cannot be read without the one before it", (long long)seq);
        if (rc == LT_ECORRUPT) {
            store_lost(s, "sweep %lld cannot be decoded", (long long)seq);
            synced = false;
            rc = 0;
        }
        lost = s->lost_rows;
    }
    return rc;
}
