/* Rows of a CSV into the store, a chunk at a time.
 *
 * A curve without pid and start_time is one life; its key is {PID_UNKNOWN, start 0}. Values that belong to a target as a whole
 * (temp files, shared memory ...) go to the target's own row, pid 0.
 *
 * Requests: lines of one key are summed here and the sum replaces what the store has, so importing a file again gives the
 * same sums. Sums are kept by the key's hash, KEYS_MAX at a time: they are exact as long as equal keys stand no further
 * apart in the file than so many distinct ones. Endpoints behind the first ENDPOINTS_MAX share "(other)", as in the store.
 */
#include "cmd/import.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/store.h"

#define CHUNK_ROWS 16384
#define KEYS_MAX (1u << 19)
#define ENDPOINTS_MAX 500 /* fewer than the store tells apart: it would merge them one by one */

struct import_curve {
    int32_t pid;
    int64_t start_ns, ts_ns;
    uint64_t line;
    int64_t v[METRIC_N];
};

static int open_target(struct importer *im)
{
    const char *name = im->args->pos[0];
    int r = cmd_open_store_to_write(im->args, &im->store, &im->err);
    if (r)
        return r;
    r = store_find_target(im->store, name, &im->target_id, &im->err);
    if (r != LT_ENOENT)
        return r;
    im->err = (struct err){ 0 };
    return store_target(im->store, name, "import", &im->target_id, &im->err);
}

static int begin(struct importer *im)
{
    int r = im->in_transaction ? 0 : store_begin(im->store, &im->err);
    im->in_transaction = !r;
    return r;
}

static int commit(struct importer *im)
{
    int r = im->in_transaction ? store_end(im->store, true, &im->err) : 0;
    im->in_transaction = false;
    if (r)
        return r;
    im->written += im->chunk;
    im->chunk = 0;
    return 0;
}

/* ---- curves --------------------------------------------------------------------------------------------------- */

static int by_life_and_time(const void *a, const void *b)
{
    const struct import_curve *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static bool any_value(const struct sample *s)
{
    for (int m = 0; m < METRIC_N; m++)
        if (s->v[m] != METRIC_NA)
            return true;
    return false;
}

/* The samples of rows[0..n), one life's, that are of `scope`; duplicates of a moment: the later line is the one kept. */
static size_t samples_of(const struct import_curve *rows, size_t n, enum metric_scope scope, struct sample *out, int64_t *ts)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && rows[i + 1].ts_ns == rows[i].ts_ns)
            continue;
        sample_blank(&out[k]);
        for (int m = 0; m < METRIC_N; m++)
            if (metrics[m].scope == scope)
                out[k].v[m] = rows[i].v[m];
        ts[k] = rows[i].ts_ns;
        k += any_value(&out[k]);
    }
    return k;
}

static int put_life(struct importer *im, const struct life_info *info, const int64_t *ts, struct sample *rows, size_t n)
{
    int64_t id;
    int r = store_import_life(im->store, info, &id, &im->err);
    for (size_t i = 0; i < n; i++)
        rows[i].life_id = id;
    return r ? r : store_import_samples(im->store, id, ts, rows, n, &im->err);
}

static int put_rows(struct importer *im, const struct import_curve *rows, size_t n, struct sample *samples, int64_t *ts)
{
    struct life_info info = { .target_id = im->target_id };
    size_t k = samples_of(rows, n, METRIC_SCOPE_P, samples, ts);
    int r = 0;
    info.key.pid = rows->pid ? rows->pid : PID_UNKNOWN;
    info.key.start = rows->start_ns == CLOCK_INVALID ? 0 : (uint64_t)rows->start_ns;
    info.start_wall_ns = rows->start_ns == CLOCK_INVALID ? rows->ts_ns : rows->start_ns;
    if (k)
        r = put_life(im, &info, ts, samples, k);
    k = r ? 0 : samples_of(rows, n, METRIC_SCOPE_T, samples, ts);
    info.key.pid = 0;
    info.key.start = 0;
    return k ? put_life(im, &info, ts, samples, k) : r;
}

static int flush_curve(struct importer *im)
{
    struct import_curve *rows = im->rows.items;
    size_t n = im->rows.n;
    if (!n)
        return 0;
    _cleanup_mem_ struct sample *samples = mem_zalloc(n, sizeof *samples);
    _cleanup_mem_ int64_t *ts = mem_zalloc(n, sizeof *ts);
    if (!samples || !ts)
        return err_set(&im->err, LT_ENOMEM, "the import: no memory for %zu rows; free some and run it again", n);
    qsort(rows, n, sizeof *rows, by_life_and_time);
    int r = begin(im);
    for (size_t from = 0, to; from < n && !r; from = to) {
        for (to = from + 1; to < n && rows[to].pid == rows[from].pid && rows[to].start_ns == rows[from].start_ns; to++)
            ;
        r = put_rows(im, rows + from, to - from, samples, ts);
    }
    vec_clear(&im->rows);
    return r ? r : commit(im);
}

static int take_curve(struct importer *im, uint64_t line, const struct csv_curve *c)
{
    struct import_curve *row = vec_push(&im->rows);
    if (!row)
        return err_set(&im->err, LT_ENOMEM, "the import: no memory for a chunk of rows; free some and run it again");
    *row = (struct import_curve){ .pid = c->pid, .start_ns = c->start_ns, .ts_ns = c->ts_ns, .line = line };
    memcpy(row->v, c->v, sizeof row->v);
    return 0;
}

/* ---- requests and events -------------------------------------------------------------------------------------- */

/* FNV-1a, 64 bits. */
static uint64_t hash(uint64_t h, const void *data, size_t len)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static uint64_t hash_text(uint64_t h, const char *s)
{
    return hash(h, s, strlen(s) + 1);
}

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* The sum of all n of this key in the file so far. */
static int add_up(struct importer *im, uint64_t key, int64_t n, int64_t *ret_sum)
{
    uint64_t sum = 0;
    map_get(&im->sums, key, &sum);
    if (__builtin_add_overflow((int64_t)sum, n, ret_sum))
        *ret_sum = INT64_MAX;
    int r = map_put(&im->sums, key, (uint64_t)*ret_sum);
    if (r == LT_ELIMIT) {
        map_clear(&im->sums);
        r = map_put(&im->sums, key, (uint64_t)*ret_sum);
    }
    return r ? err_set(&im->err, r, "the import: no memory to add up rows; free some and run it again") : 0;
}

static int endpoint_name(struct importer *im, const char *name, const char **ret)
{
    uint32_t id;
    int r = strset_id(im->endpoints, name, strlen(name), &id);
    *ret = r ? "(other)" : name;
    return r == LT_ELIMIT ? 0 : r ? err_set(&im->err, r, "the import: no memory for endpoints; free some and run it again") : 0;
}

static int take_request(struct importer *im, const struct csv_request *q)
{
    struct request_row row = { q->ts_ns, NULL, q->version, q->outcome, q->stream, q->pid, 0 };
    int64_t ms = q->ts_ns / NS_PER_MS; /* as the store counts */
    int r = endpoint_name(im, q->endpoint, &row.endpoint);
    if (r)
        return r;
    uint64_t h = hash_text(hash(HASH_START, &ms, sizeof ms), row.endpoint);
    h = hash_text(hash_text(h, q->version), q->outcome);
    h = hash(hash(h, &q->stream, sizeof q->stream), &q->pid, sizeof q->pid);
    r = add_up(im, h, q->n, &row.n);
    if (!r)
        r = begin(im);
    return r ? r : store_put_request(im->store, im->target_id, &row, true, &im->err);
}

/* The same event twice is one: the store sees to it. */
static int take_event(struct importer *im, const struct csv_event *e)
{
    int r = begin(im);
    return r ? r : store_put_event(im->store, im->target_id, e->ts_ns, e->kind, e->text, &im->err);
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

void importer_init(struct importer *im, enum csv_kind kind, const struct args *args)
{
    *im = (struct importer){ .kind = kind, .args = args, .from_ns = CLOCK_INVALID, .to_ns = CLOCK_INVALID };
    vec_init(&im->rows, sizeof(struct import_curve), CHUNK_ROWS);
    map_init(&im->sums, KEYS_MAX);
}

static int first_row(struct importer *im)
{
    int r = open_target(im);
    if (!r && im->kind == CSV_REQUESTS && strset_new(&im->endpoints, ENDPOINTS_MAX, ENDPOINTS_MAX * CSV_LINE_MAX))
        r = err_set(&im->err, LT_ENOMEM, "the import: no memory for endpoints; free some and run it again");
    return r;
}

static int64_t row_time(const struct importer *im, const struct csv_row *row)
{
    return im->kind == CSV_CURVE ? row->curve.ts_ns : im->kind == CSV_REQUESTS ? row->request.ts_ns : row->event.ts_ns;
}

int importer_row(struct importer *im, const struct csv_row *row)
{
    int64_t ts = row_time(im, row);
    int r = im->store ? 0 : first_row(im);
    if (!r)
        r = im->kind == CSV_CURVE      ? take_curve(im, row->line, &row->curve)
            : im->kind == CSV_REQUESTS ? take_request(im, &row->request)
                                       : take_event(im, &row->event);
    if (r)
        return r;
    im->from_ns = im->from_ns == CLOCK_INVALID ? ts : MIN(im->from_ns, ts);
    im->to_ns = MAX(im->to_ns, ts);
    return ++im->chunk == CHUNK_ROWS ? importer_flush(im) : 0;
}

int importer_flush(struct importer *im)
{
    return im->kind == CSV_CURVE ? flush_curve(im) : commit(im);
}

int importer_release(struct importer *im, struct err *err)
{
    if (im->in_transaction)
        store_end(im->store, false, NULL);
    int r = im->store ? store_close(im->store, err) : 0;
    im->store = NULL;
    vec_release(&im->rows);
    map_release(&im->sums);
    strset_free(im->endpoints);
    return r;
}
