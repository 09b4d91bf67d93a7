/* Keys that no histogram names any more are dropped, as a part of the hourly pass (retain.c): first all histograms are walked
 * and their keys marked, then the keys, a bounded number of rows a commit. What comes in between is safe: a key that is given
 * out is marked, and keys made since the part began are not looked at. */
#include "store/parts.h"

#define ROWS_A_STEP 1000

void keys_used(struct store *s, int64_t id)
{
    if (s->w.pass.keys_upto && id < s->w.pass.keys_upto && map_put(&s->w.keys_named, (uint64_t)id, 1))
        s->w.pass.keys_upto = 1; /* no memory: no key is made before the first, so this part drops none */
}

static int mark(void *ctx, int64_t key, int64_t count)
{
    (void)count;
    keys_used(ctx, key);
    return 0;
}

/* The newest key stays, so that no number is given out twice: an old row that damage brings back must not mean another text. */
static int begin(struct store *s, struct err *err)
{
    int64_t last;
    int rc = db_number(s, STMT_KEY_LAST, &last, err);
    map_clear(&s->w.keys_named);
    if (!rc)
        s->w.pass.keys_upto = MAX(last, INT64_C(1));
    return rc;
}

/* *ret_all: no histogram is left. */
static int mark_some(struct store *s, bool *ret_all, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int n = 0;
    int rc = rows_open(&r, s, STMT_HIST_ALL, TABLE_HIST, err, VI(s->w.pass.key_hist));
    while (!rc && n < ROWS_A_STEP && (rc = rows_next(&r, err)) == 1) {
        size_t len;
        const uint8_t *p = rows_blob(&r, 4, &len);
        hist_parse(p, len, mark, s); /* a row that cannot be read on names no more keys */
        s->w.pass.key_hist = rows_int(&r, 0);
        n++;
        rc = 0;
    }
    *ret_all = n < ROWS_A_STEP;
    return rc;
}

static int next_key(struct store *s, int64_t *ret_id, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_KEY_ALL, TABLE_KEY, err, VI(s->w.pass.key));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1)
        *ret_id = rows_int(&r, 0);
    return rc;
}

static int drop_some(struct store *s, bool *ret_all, struct err *err)
{
    for (int n = 0; n < ROWS_A_STEP; n++) {
        int64_t id = 0;
        uint64_t named;
        int rc = next_key(s, &id, err);
        if (rc < 0)
            return rc;
        if (rc == 0 || id >= s->w.pass.keys_upto) {
            *ret_all = true;
            return 0;
        }
        s->w.pass.key = id;
        if (map_get(&s->w.keys_named, (uint64_t)id, &named))
            continue;
        rc = db_run(s, STMT_KEY_DROP, err, VI(id));
        if (rc)
            return rc;
        s->w.nkeys = -1;
    }
    return 0;
}

int keys_age(struct store *s, int64_t now_ms, bool *ret_done, struct err *err)
{
    (void)now_ms;
    bool marked = s->w.pass.key > 0, all = false;
    int rc = s->w.pass.keys_upto ? 0 : begin(s, err);
    if (!rc && !marked) {
        rc = mark_some(s, &marked, err);
        if (rc || !marked)
            return rc;
    }
    if (!rc)
        rc = drop_some(s, &all, err);
    *ret_done = all;
    if (!rc && all) {
        s->w.pass.keys_upto = 0;
        map_release(&s->w.keys_named);
    }
    return rc;
}
