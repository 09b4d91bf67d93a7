/* Thinning: raw samples of whole hours become 5 min and 1 h bins, computed from the samples themselves, so that first, last,
 * min, p10 and max are exact. Tier 1 chunks begin at multiples of 10 h, tier 2 chunks at multiples of 5 d: 120 bins each. */
#include <string.h>

#include "store/parts.h"

#define HOUR_SAMPLES_MAX 16384 /* more in an hour are binned in parts (invariant T3) */
#define HOUR_MS INT64_C(3600000)

static const int64_t bin_ms[] = {0, 300000, HOUR_MS};
static const int64_t window_ms[] = {0, 120 * INT64_C(300000), 120 * HOUR_MS};

struct hour_sample { int64_t ts_ms; int64_t v[METRIC_N]; };

/* A chunk of bins that is being filled, and the stored one it continues. */
struct tier { int tier; int64_t window, old_id; struct chunk c; };

struct thin {
    struct store *s;
    int64_t life, hour;          /* the hour that is being collected */
    struct vec samples;          /* struct hour_sample of it */
    struct tier tier[3];         /* 1 and 2 */
    struct chunk raw, rest;
    int64_t sorted[HOUR_SAMPLES_MAX];
    struct err *err;
};

/* ---- chunks of bins ---- */

static int tier_write(struct thin *t, struct tier *k)
{
    int rc = 0;
    if (!k->c.n)
        return 0;
    if (k->old_id)
        rc = db_run(t->s, STMT_CHUNK_DROP, t->err, VI(k->old_id));
    k->c.form = CHUNK_BINS;
    k->c.prev_ms = CHUNK_NO_PREV;
    if (!rc)
        rc = chunk_put(t->s, t->life, k->tier, &k->c, t->err);
    k->c.n = 0;
    k->c.mask = 0;
    k->old_id = 0;
    return rc;
}

/* Begins a window: with what an earlier thinning left there. */
static int tier_open(struct thin *t, struct tier *k, int64_t window)
{
    int rc = tier_write(t, k);
    if (rc)
        return rc;
    k->window = window;
    _cleanup_rows_ struct rows r = {0};
    rc = rows_open(&r, t->s, STMT_CHUNK_LIFE, TABLE_CHUNK, t->err, VI(t->life), VI(k->tier), VI(window), VI(window + window_ms[k->tier] - 1));
    while (!rc && (rc = rows_next(&r, t->err)) == 1) {
        rc = 0;
        if (rows_int(&r, 3) < window)
            continue;
        rc = chunk_row(t->s, &r, METRICS_ALL, &k->c, t->err);
        if (!rc)
            k->old_id = rows_int(&r, 0);
        else
            k->c.n = 0;
        rc = rc == LT_ECORRUPT ? 0 : rc;
    }
    return rc;
}

struct bin { int64_t ts, n; uint64_t mask; int64_t v[METRIC_N][PART_N]; };

/* Two parts of one bin: exact but for p10, which is that of the larger part. */
static void bin_join(struct chunk *c, size_t at, const struct bin *b)
{
    bool larger = b->n > c->count[at];
    c->count[at] += b->n;
    for (uint64_t left = b->mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        const int64_t *v = b->v[m];
        int64_t (*o)[COLUMN_MAX] = c->v[m];
        bool blank = o[PART_MIN][at] == METRIC_NA;
        if (blank)
            o[PART_FIRST][at] = v[PART_FIRST];
        o[PART_LAST][at] = v[PART_LAST];
        o[PART_MIN][at] = blank ? v[PART_MIN] : MIN(o[PART_MIN][at], v[PART_MIN]);
        o[PART_MAX][at] = blank ? v[PART_MAX] : MAX(o[PART_MAX][at], v[PART_MAX]);
        if (blank || larger)
            o[PART_P10][at] = v[PART_P10];
    }
}

static void widen(struct chunk *c, uint64_t mask)
{
    for (uint64_t fresh = mask & ~c->mask; fresh; fresh &= fresh - 1)
        for (int k = 0; k < PART_N; k++)
            for (size_t i = 0; i < c->n; i++)
                c->v[__builtin_ctzll(fresh)][k][i] = METRIC_NA;
    c->mask |= mask;
}

/* Makes room at `at` for one bin more. */
static void open_slot(struct chunk *c, size_t at, int64_t ts)
{
    size_t behind = (c->n - at) * sizeof(int64_t);
    memmove(&c->ts[at + 1], &c->ts[at], behind);
    memmove(&c->count[at + 1], &c->count[at], behind);
    for (uint64_t left = c->mask; left; left &= left - 1)
        for (int k = 0; k < PART_N; k++) {
            int64_t *col = c->v[__builtin_ctzll(left)][k];
            memmove(&col[at + 1], &col[at], behind);
            col[at] = METRIC_NA;
        }
    c->ts[at] = ts;
    c->count[at] = 0;
    c->n++;
}

static int tier_add(struct thin *t, int tier, const struct bin *b)
{
    struct tier *k = &t->tier[tier];
    int64_t window = floor_to(b->ts, window_ms[tier]);
    int rc = k->window == window ? 0 : tier_open(t, k, window);
    if (rc)
        return rc;
    widen(&k->c, b->mask);
    size_t at = k->c.n;
    while (at > 0 && k->c.ts[at - 1] > b->ts)
        at--;
    if (at > 0 && k->c.ts[at - 1] == b->ts)
        at--;
    else
        open_slot(&k->c, at, b->ts);
    bin_join(&k->c, at, b);
    return 0;
}

/* ---- an hour ---- */

static void fill_bin(struct thin *t, size_t from, size_t to, struct bin *b)
{
    const struct hour_sample *h = t->samples.items;
    b->n = (int64_t)(to - from);
    b->mask = 0;
    for (int m = 0; m < METRIC_N; m++) {
        size_t n = 0;
        int64_t first = METRIC_NA, last = METRIC_NA;
        for (size_t i = from; i < to; i++) {
            int64_t x = h[i].v[m];
            if (x == METRIC_NA)
                continue;
            first = n ? first : x;
            last = x;
            t->sorted[n++] = x;
        }
        if (!n)
            continue;
        column_sort(t->sorted, n);
        b->mask |= UINT64_C(1) << m;
        int64_t *v = b->v[m];
        v[PART_FIRST] = first;
        v[PART_LAST] = last;
        v[PART_MIN] = t->sorted[0];
        v[PART_P10] = t->sorted[column_p10_index(n)];
        v[PART_MAX] = t->sorted[n - 1];
    }
}

static int flush_hour(struct thin *t)
{
    const struct hour_sample *h = t->samples.items;
    struct bin b;
    int rc = 0;
    for (int tier = 1; tier <= 2; tier++)
        for (size_t from = 0, to; from < t->samples.n && !rc; from = to) {
            b.ts = floor_to(h[from].ts_ms, bin_ms[tier]);
            for (to = from; to < t->samples.n && h[to].ts_ms < b.ts + bin_ms[tier]; to++)
                ;
            fill_bin(t, from, to, &b);
            rc = tier_add(t, tier, &b);
        }
    vec_clear(&t->samples);
    return rc;
}

static int take_sample(struct thin *t, const struct chunk *c, size_t i)
{
    int64_t hour = floor_to(c->ts[i], HOUR_MS);
    int rc = t->samples.n && (hour != t->hour || t->samples.n == HOUR_SAMPLES_MAX) ? flush_hour(t) : 0;
    if (rc)
        return rc;
    t->hour = hour;
    struct hour_sample *h = vec_push(&t->samples);
    if (!h)
        return err_set(t->err, LT_ENOMEM, "store %s: out of memory", t->s->path);
    h->ts_ms = c->ts[i];
    for (int m = 0; m < METRIC_N; m++)
        h->v[m] = c->mask >> m & 1 ? c->v[m][0][i] : METRIC_NA;
    return 0;
}

/* ---- a life ---- */

/* What of a chunk is not yet thinned stays raw. */
static int keep_rest(struct thin *t, size_t from)
{
    struct chunk *c = &t->rest;
    c->form = CHUNK_RAW;
    c->n = t->raw.n - from;
    c->mask = 0;
    c->prev_ms = CHUNK_NO_PREV;
    memcpy(c->ts, t->raw.ts + from, c->n * sizeof *c->ts);
    for (uint64_t left = t->raw.mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        int64_t any = METRIC_NA;
        memcpy(c->v[m][0], t->raw.v[m][0] + from, c->n * sizeof *c->ts);
        for (size_t i = 0; i < c->n; i++)
            any &= c->v[m][0][i];
        if (any != METRIC_NA)
            c->mask |= UINT64_C(1) << m;
    }
    return chunk_put(t->s, t->life, 0, c, t->err);
}

/* The first raw chunk of the life: 1 when it begins before upto. One that cannot be read goes: its samples are lost, and
 * it would stand in the way for ever. */
static int first_raw(struct thin *t, int64_t upto_ms, int64_t *ret_id)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, t->s, STMT_CHUNK_FIRST, TABLE_NONE, t->err, VI(t->life), VI(upto_ms));
    if (!rc)
        rc = rows_next(&r, t->err);
    if (rc != 1)
        return rc;
    *ret_id = rows_int(&r, 0);
    rc = rows_sound(&r, TABLE_CHUNK) ? chunk_row(t->s, &r, METRICS_ALL, &t->raw, t->err) : LT_ECORRUPT;
    if (rc == LT_ECORRUPT)
        t->raw.n = 0;
    return rc == LT_ECORRUPT || !rc ? 1 : rc;
}

/* The first raw chunk says of none before it, and the life's row says when none is left (K6, K7): what was thinned is not
 * missing. */
static int relink(struct thin *t)
{
    struct life_full full;
    int64_t id = 0;
    int rc = first_raw(t, INT64_MAX, &id);
    if (rc == 1 && t->raw.n && t->raw.prev_ms != CHUNK_NO_PREV) {
        t->raw.prev_ms = CHUNK_NO_PREV;
        rc = db_run(t->s, STMT_CHUNK_DROP, t->err, VI(id));
        return rc ? rc : chunk_put(t->s, t->life, 0, &t->raw, t->err);
    }
    if (rc)
        return MIN(rc, 0);
    rc = life_lookup(t->s, t->life, &full, t->err);
    if (rc <= 0)
        return rc;
    full.raw_end_ms = MS_INVALID;
    return life_write(t->s, &full, t->err);
}

static int thin_chunks(struct thin *t, int64_t upto_ms)
{
    int64_t id;
    int rc;
    while ((rc = first_raw(t, upto_ms, &id)) == 1) {
        size_t i = 0;
        rc = db_run(t->s, STMT_CHUNK_DROP, t->err, VI(id));
        for (; i < t->raw.n && t->raw.ts[i] < upto_ms && !rc; i++)
            rc = take_sample(t, &t->raw, i);
        if (!rc && i < t->raw.n)
            rc = keep_rest(t, i);
        if (rc)
            return rc;
    }
    if (!rc)
        rc = flush_hour(t);
    if (!rc)
        rc = relink(t);
    for (int tier = 1; tier <= 2 && !rc; tier++)
        rc = tier_write(t, &t->tier[tier]);
    return rc;
}

int thin_life(struct store *s, int64_t life, int64_t upto_ms, struct err *err)
{
    _cleanup_mem_ struct thin *t = mem_zalloc(1, sizeof *t);
    if (!t)
        return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
    t->s = s;
    t->life = life;
    t->err = err;
    vec_init(&t->samples, sizeof(struct hour_sample), HOUR_SAMPLES_MAX);
    for (int tier = 1; tier <= 2; tier++) {
        t->tier[tier].tier = tier;
        t->tier[tier].window = MS_INVALID;
    }
    int rc = thin_chunks(t, floor_to(upto_ms, HOUR_MS));
    vec_release(&t->samples);
    return rc;
}
