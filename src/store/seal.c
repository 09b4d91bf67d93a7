/* Sealing: a block of sweeps becomes one chunk per life, and the sweeps go. The sweeps are read again for every SEAL_LIVES
 * lives, the others stepped over, so that memory does not grow with the number of lives. With many lives the work is
 * spread over commits, or a tick would be missed. In between, samples stand in chunks and sweeps alike, which readers take for one; after a
 * crash the same points are merged into the same chunks again. */
#include <string.h>

#include "store/parts.h"

#define SEAL_LIVES 64
#define SEAL_COMMITS 60 /* a block is sealed within so many commits, before the next is full */

struct seal_life {
    int64_t id;
    size_t n;
    int64_t slot[METRIC_N];
    int64_t ts[COLUMN_MAX];
    int64_t v[METRIC_N][COLUMN_MAX];
};

struct seal {
    struct store *s;
    struct map seen;             /* lives of the block that is being sealed */
    struct vec ids;              /* the same, ascending */
    int64_t upto_seq;            /* end of the block, 0: no block is being sealed */
    int64_t newest_ms;
    size_t done;                 /* lives of the block that are sealed and committed */
    size_t next;                 /* those that are sealed */
    size_t n;                    /* lives of this pass */
    struct seal_life lives[SEAL_LIVES];
    struct chunk chunk;
};

void seal_free(struct seal *seal)
{
    if (!seal)
        return;
    map_release(&seal->seen);
    vec_release(&seal->ids);
    mem_free(seal);
}

static int make_scratch(struct store *s, struct err *err)
{
    if (!s->w.seal) {
        s->w.seal = mem_zalloc(1, sizeof *s->w.seal);
        if (!s->w.seal)
            return err_set(err, LT_ENOMEM, "store %s: out of memory", s->path);
        map_init(&s->w.seal->seen, LIVES_MAX);
        vec_init(&s->w.seal->ids, sizeof(int64_t), LIVES_MAX);
        s->w.seal->s = s;
    }
    map_clear(&s->w.seal->seen);
    vec_clear(&s->w.seal->ids);
    s->w.seal->newest_ms = MS_INVALID;
    return 0;
}

/* ---- which lives ---- */

static void collect_blank(void *ctx) { (void)ctx; }

static int collect_row(void *ctx, int64_t seq, int64_t ts_ms, int64_t id, const int64_t *v)
{
    struct seal *seal = ctx;
    (void)seq, (void)v;
    seal->newest_ms = MAX(seal->newest_ms, ts_ms);
    uint64_t seen;
    if (map_get(&seal->seen, (uint64_t)id, &seen))
        return 0;
    int rc = map_put(&seal->seen, (uint64_t)id, 1);
    return rc ? rc : vec_append(&seal->ids, &id);
}

/* ---- their values ---- */

static struct seal_life *pass_life(struct seal *seal, int64_t id)
{
    size_t lo = 0, hi = seal->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (seal->lives[mid].id == id)
            return &seal->lives[mid];
        *(seal->lives[mid].id < id ? &lo : &hi) = seal->lives[mid].id < id ? mid + 1 : mid;
    }
    return NULL;
}

static int64_t *pass_slot(void *ctx, int64_t id)
{
    struct seal_life *l = pass_life(ctx, id);
    return l ? l->slot : NULL;
}

static void pass_blank(void *ctx)
{
    struct seal *seal = ctx;
    for (size_t i = 0; i < seal->n; i++)
        for (int m = 0; m < METRIC_N; m++)
            seal->lives[i].slot[m] = METRIC_NA;
}

/* Where a sample of this time goes; makes room there unless one of the same time is replaced. */
static size_t place(struct seal_life *l, int64_t ts_ms)
{
    size_t at = l->n;
    while (at > 0 && l->ts[at - 1] > ts_ms)
        at--;
    if (at > 0 && l->ts[at - 1] == ts_ms)
        return at - 1;
    memmove(&l->ts[at + 1], &l->ts[at], (l->n - at) * sizeof *l->ts);
    for (int m = 0; m < METRIC_N && at < l->n; m++)
        memmove(&l->v[m][at + 1], &l->v[m][at], (l->n - at) * sizeof l->v[m][0]);
    l->n++;
    return at;
}

static int pass_row(void *ctx, int64_t seq, int64_t ts_ms, int64_t id, const int64_t *v)
{
    struct seal_life *l = pass_life(ctx, id);
    (void)seq;
    if (!l || l->n == COLUMN_MAX)
        return 0;
    size_t at = place(l, ts_ms);
    l->ts[at] = ts_ms;
    for (int m = 0; m < METRIC_N; m++)
        l->v[m][at] = v[m];
    return 0;
}

static void to_chunk(const struct seal_life *l, struct chunk *c)
{
    c->form = CHUNK_RAW;
    c->n = l->n;
    c->mask = 0;
    memcpy(c->ts, l->ts, l->n * sizeof *c->ts);
    for (int m = 0; m < METRIC_N; m++) {
        int64_t any = METRIC_NA;
        for (size_t i = 0; i < l->n; i++)
            any &= l->v[m][i]; /* all bits stay set only while every value is METRIC_NA */
        if (any == METRIC_NA)
            continue;
        c->mask |= UINT64_C(1) << m;
        memcpy(c->v[m][0], l->v[m], l->n * sizeof l->v[m][0]);
    }
}

/* One life's samples into its chunks. Its row then says how far its summary goes, for the sweeps are gone; a life that has
 * ended has its summary already. */
static int seal_life(struct store *s, struct seal_life *l, struct chunk *c, struct err *err)
{
    struct life_full full;
    const struct live *live = live_find(s, l->id);
    int rc = life_lookup(s, l->id, &full, err); /* when its row was lost to damage, its samples are not */
    bool has_row = rc == 1;
    if (rc < 0)
        return rc;
    to_chunk(l, c);
    rc = chunk_merge(s, l->id, c, &full.raw_end_ms, err);
    if (live) {
        full.sum = live->sum;
        full.upto_seq = s->w.next_seq - 1;
    }
    return rc || !has_row ? rc : life_write(s, &full, err);
}

static int seal_pass(struct seal *seal, int64_t upto_seq, struct err *err)
{
    struct log_visit visit = {.ctx = seal, .lo = seal->lives[0].id, .hi = seal->lives[seal->n - 1].id, .upto_seq = upto_seq,
                              .slot = pass_slot, .blank = pass_blank, .row = pass_row};
    int rc = log_read(seal->s, &visit, err);
    for (size_t i = 0; i < seal->n && !rc; i++)
        if (seal->lives[i].n)
            rc = seal_life(seal->s, &seal->lives[i], &seal->chunk, err);
    return rc;
}

/* ---- the block ---- */

/* The sweeps to seal: all when they fit one block, else up to the last key row that does. */
static int find_block(struct store *s, int64_t *ret_upto, bool *ret_all, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    size_t n = 0, len;
    int64_t before_key = 0, last = 0;
    int rc = rows_open(&r, s, STMT_SWEEP_ALL, TABLE_SWEEP, err, VI(0), VI(INT64_MAX));
    while (!rc && n <= BLOCK_SWEEPS && (rc = rows_next(&r, err)) == 1) {
        const uint8_t *p = rows_blob(&r, 2, &len);
        rc = 0;
        if (n && sweep_kind_of(p, len) == SWEEP_KEY)
            before_key = last;
        last = rows_int(&r, 0);
        n++;
    }
    *ret_all = n <= BLOCK_SWEEPS;
    *ret_upto = *ret_all || !before_key ? last : before_key;
    return rc;
}

static int collect(struct store *s, int64_t upto, struct err *err)
{
    struct seal *seal = s->w.seal;
    struct log_visit visit = {.ctx = seal, .lo = 1, .hi = INT64_MAX, .upto_seq = upto,
                              .blank = collect_blank, .row = collect_row};
    int rc = log_read(s, &visit, err);
    if (rc == LT_ENOMEM || rc == LT_ELIMIT)
        return err_set(err, rc, "store %s: sealing: %s", s->path, err_sentence(rc));
    column_sort(seal->ids.items, seal->ids.n);
    return rc;
}

bool seal_active(const struct store *s) { return s->w.seal && s->w.seal->upto_seq; }

int seal_begin(struct store *s, struct err *err)
{
    int64_t upto;
    bool all;
    int rc = make_scratch(s, err);
    if (!rc)
        rc = find_block(s, &upto, &all, err);
    if (!rc)
        rc = collect(s, upto, err);
    if (rc)
        return rc;
    s->w.seal->upto_seq = upto;
    s->w.seal->done = s->w.seal->next = 0;
    if (all)
        s->w.since_key = SWEEP_KEY_EVERY; /* the next sweep will have nothing before it to be coded against */
    return 0;
}

static int drop_block(struct store *s, struct err *err)
{
    struct seal *seal = s->w.seal;
    int rc = db_run(s, STMT_SWEEP_DROP, err, VI(seal->upto_seq));
    if (!rc && seal->newest_ms != MS_INVALID)
        rc = meta_put(s, META_SEALED_MS, seal->newest_ms, err);
    return rc;
}

int seal_some(struct store *s, bool whole, struct err *err)
{
    struct seal *seal = s->w.seal;
    size_t end = seal->done + MAX((size_t)SEAL_LIVES, seal->ids.n / SEAL_COMMITS);
    int rc = 0;
    for (seal->next = seal->done; seal->next < seal->ids.n && (whole || seal->next < end) && !rc; seal->next += seal->n) {
        seal->n = MIN(seal->ids.n - seal->next, (size_t)SEAL_LIVES);
        for (size_t i = 0; i < seal->n; i++) {
            seal->lives[i].id = *(int64_t *)vec_at(&seal->ids, seal->next + i);
            seal->lives[i].n = 0;
        }
        pass_blank(seal);
        rc = seal_pass(seal, seal->upto_seq, err);
    }
    return rc || seal->next < seal->ids.n ? rc : drop_block(s, err);
}

void seal_committed(struct store *s)
{
    struct seal *seal = s->w.seal;
    seal->done = seal->next;
    if (seal->done >= seal->ids.n)
        seal->upto_seq = 0;
}
