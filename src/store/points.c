/* Points of one life: its 1 h bins, 5 min bins, raw chunks and unsealed sweeps, merged by time. Hours that finer bins still
 * hold are left to them. */
#include <string.h>

#include "store/parts.h"

#define HOUR_MS INT64_C(3600000)

static const int64_t bin_ms[] = {0, 300000, HOUR_MS};

/* The chunks of one tier, one in memory. */
struct stream {
    struct rows rows;
    struct chunk *c;
    size_t pos;                  /* next point in c; c->n: none left */
    int tier;
    int64_t last_ms;             /* end of the chunk before, MS_INVALID: none read yet */
    uint64_t lost;               /* store->lost_rows when it was read */
};

struct log_point { int64_t ts_ms; int64_t v[METRIC_N]; };

struct reading {
    struct store *s;
    int64_t life_id, from_ms, to_ms;
    uint64_t wanted;
    store_point_fn fn;
    void *ctx;
    struct err *err;
    struct stream tier[3];
    int64_t raw_end_ms;          /* what the life's row says of its last raw chunk */
    int64_t fine_ms;             /* 1 h bins from here on are told by 5 min bins */
    struct vec log;              /* struct log_point */
    size_t log_pos;
    int64_t slot[METRIC_N];      /* the life's values while the log is read */
    struct point_values v[METRIC_N];
    uint64_t filled;             /* which of v are not METRIC_NA */
    bool stopped;                /* by fn */
};

/* ---- the log ---- */

static int64_t *log_slot(void *ctx, int64_t id)
{
    struct reading *rd = ctx;
    return id == rd->life_id ? rd->slot : NULL;
}

static void log_blank(void *ctx)
{
    struct reading *rd = ctx;
    for (int i = 0; i < METRIC_N; i++)
        rd->slot[i] = METRIC_NA;
}

static int log_row(void *ctx, int64_t seq, int64_t ts_ms, int64_t id, const int64_t *v)
{
    struct reading *rd = ctx;
    (void)seq, (void)id;
    if (ts_ms < rd->from_ms || ts_ms > rd->to_ms)
        return 0;
    struct log_point *p = vec_push(&rd->log);
    if (!p)
        return err_set(rd->err, LT_ENOMEM, "store %s: out of memory", rd->s->path);
    /* By time; of equal times the later row stands. Only a clock that went back makes this loop turn. */
    struct log_point *all = rd->log.items;
    size_t at = rd->log.n - 1;
    for (; at > 0 && all[at - 1].ts_ms > ts_ms; at--)
        all[at] = all[at - 1];
    if (at > 0 && all[at - 1].ts_ms == ts_ms) {
        memmove(&all[at], &all[at + 1], (rd->log.n - 1 - at) * sizeof *all);
        rd->log.n--;
        at--;
    }
    all[at].ts_ms = ts_ms;
    memcpy(all[at].v, v, sizeof all[at].v);
    return 0;
}

static int read_log(struct reading *rd)
{
    struct log_visit visit = {.ctx = rd, .lo = rd->life_id, .hi = rd->life_id, .upto_seq = INT64_MAX,
                              .slot = log_slot, .blank = log_blank, .row = log_row};
    return rd->life_id > 0 ? log_read(rd->s, &visit, rd->err) : 0;
}

/* ---- chunks ---- */

/* Samples that should be there were not found, and nothing that is known to be damaged explains it: a chunk is hidden by
 * damage inside SQLite's own pages. */
static int missing(struct reading *rd, struct stream *st)
{
    if (rd->s->mode == STORE_READ && !rd->s->salvaged)
        return err_set(rd->err, LT_ECORRUPT, "store %s: samples are missing; see 'lowtide store verify'", rd->s->path);
    store_lost(rd->s, "samples of life %lld are missing", (long long)rd->life_id);
    st->lost = rd->s->lost_rows;
    return 0;
}

/* Invariant K6: this chunk says when the one before it ended. */
static int check_link(struct reading *rd, struct stream *st)
{
    int64_t prev = st->c->prev_ms;
    bool broken = st->last_ms == MS_INVALID ? prev != CHUNK_NO_PREV && prev >= rd->from_ms : prev != st->last_ms;
    bool explained = st->tier != 0 || st->lost != rd->s->lost_rows;
    st->last_ms = st->c->ts[st->c->n - 1];
    st->lost = rd->s->lost_rows;
    return broken && !explained ? missing(rd, st) : 0;
}

/* Invariant K7: the life's row says when its last raw chunk ends. */
static int check_end(struct reading *rd, struct stream *st)
{
    bool broken = rd->raw_end_ms > MAX(st->last_ms, rd->from_ms) && rd->raw_end_ms <= rd->to_ms;
    bool explained = st->tier != 0 || st->lost != rd->s->lost_rows;
    return broken && !explained ? missing(rd, st) : 0;
}

/* Steps to the next point in the window, reading chunks as needed; at the end c->n is 0. */
static int stream_next(struct reading *rd, struct stream *st)
{
    st->pos++;
    for (;;) {
        for (; st->pos < st->c->n; st->pos++)
            if (st->c->ts[st->pos] + MAX(bin_ms[st->tier] - 1, 0) >= rd->from_ms)
                break;
        if (st->pos < st->c->n && st->c->ts[st->pos] <= rd->to_ms)
            return 0;
        bool past = st->pos < st->c->n;
        st->pos = 0;
        st->c->n = 0;
        if (past || !st->rows.st)
            return 0;
        int rc = rows_next(&st->rows, rd->err);
        if (!rc) {
            rc = check_end(rd, st);
            rows_close(&st->rows);
        }
        if (rc != 1)
            return rc;
        rc = chunk_row(rd->s, &st->rows, rd->wanted, st->c, rd->err);
        if (rc == LT_ECORRUPT) {
            st->c->n = 0;
            continue;
        }
        if (!rc)
            rc = check_link(rd, st);
        if (rc)
            return rc;
    }
}

static int stream_open(struct reading *rd, int tier)
{
    struct stream *st = &rd->tier[tier];
    st->tier = tier;
    st->last_ms = MS_INVALID;
    st->lost = rd->s->lost_rows;
    st->c = mem_alloc(sizeof *st->c);
    if (!st->c)
        return err_set(rd->err, LT_ENOMEM, "store %s: out of memory", rd->s->path);
    st->c->n = 0;
    int64_t from = rd->from_ms > INT64_MIN + HOUR_MS ? rd->from_ms - HOUR_MS : rd->from_ms;
    int rc = rows_open(&st->rows, rd->s, STMT_CHUNK_LIFE, TABLE_CHUNK, rd->err, VI(rd->life_id), VI(tier), VI(from), VI(rd->to_ms));
    return rc ? rc : stream_next(rd, st);
}

/* ---- emitting ---- */

static void blank_rest(struct reading *rd, uint64_t mask)
{
    for (uint64_t left = rd->filled & ~mask; left; left &= left - 1)
        rd->v[__builtin_ctzll(left)] = (struct point_values){METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA};
    rd->filled = mask;
}

static int emit(struct reading *rd, const struct point *point)
{
    int rc = rd->fn(rd->ctx, point, rd->v);
    rd->stopped = rc != 0;
    return rc;
}

static int emit_log(struct reading *rd)
{
    const struct log_point *p = vec_at(&rd->log, rd->log_pos++);
    struct point point = {ns_of(p->ts_ms), 1, 0};
    blank_rest(rd, METRICS_ALL & rd->wanted);
    for (uint64_t left = rd->filled; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        rd->v[m] = (struct point_values){p->v[m], p->v[m], p->v[m], p->v[m], p->v[m]};
    }
    return emit(rd, &point);
}

static int emit_chunk(struct reading *rd, struct stream *st)
{
    const struct chunk *c = st->c;
    size_t i = st->pos;
    struct point point = {ns_of(c->ts[i]), (uint32_t)c->count[i], bin_ms[st->tier] * NS_PER_MS};
    blank_rest(rd, c->mask);
    for (uint64_t left = c->mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        if (st->tier == 0)
            rd->v[m] = (struct point_values){c->v[m][0][i], c->v[m][0][i], c->v[m][0][i], c->v[m][0][i], c->v[m][0][i]};
        else
            rd->v[m] = (struct point_values){c->v[m][PART_FIRST][i], c->v[m][PART_LAST][i], c->v[m][PART_MIN][i],
                                             c->v[m][PART_P10][i], c->v[m][PART_MAX][i]};
    }
    return emit(rd, &point);
}

static int64_t peek(const struct stream *st) { return st->pos < st->c->n ? st->c->ts[st->pos] : INT64_MAX; }

/* Emits the earliest point; *ret_any is false when there was none. */
static int emit_next(struct reading *rd, bool *ret_any)
{
    struct stream *st = NULL;
    int64_t best = rd->log_pos < rd->log.n ? ((struct log_point *)vec_at(&rd->log, rd->log_pos))->ts_ms : INT64_MAX;
    int rc = 0;
    for (int t = 0; t < 3; t++)
        if (peek(&rd->tier[t]) < best) {
            best = peek(&rd->tier[t]);
            st = &rd->tier[t];
        }
    *ret_any = best != INT64_MAX;
    if (!*ret_any)
        return 0;
    if (!st && peek(&rd->tier[0]) == best) /* a clock that went back can give two sweeps one time: the later stands */
        rc = stream_next(rd, &rd->tier[0]);
    if (rc)
        return rc;
    if (st != &rd->tier[2] || best < rd->fine_ms) {
        rc = st ? emit_chunk(rd, st) : emit_log(rd);
        rd->from_ms = best + 1; /* where to go on after damage */
    }
    return rc || !st ? rc : stream_next(rd, st);
}

static int open_all(struct reading *rd)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, rd->s, STMT_CHUNK_START, TABLE_NONE, rd->err, VI(rd->life_id), VI(1));
    if (!rc)
        rc = rows_next(&r, rd->err);
    if (rc < 0)
        return rc;
    int64_t start = rows_int(&r, 0);
    struct life_full full;
    rc = life_lookup(rd->s, rd->life_id, &full, rd->err);
    if (rc < 0)
        return rc;
    rd->raw_end_ms = full.raw_end_ms; /* a row that cannot be read tells nothing */
    rd->fine_ms = start == MS_INVALID ? INT64_MAX : floor_to(start, HOUR_MS);
    rc = read_log(rd);
    for (int t = 0; t < 3 && !rc; t++)
        rc = stream_open(rd, t);
    return rc;
}

static int read_points(struct reading *rd)
{
    bool any = true;
    vec_init(&rd->log, sizeof(struct log_point), 1 << 20);
    rd->filled = METRICS_ALL;
    blank_rest(rd, 0);
    int rc = open_all(rd);
    while (!rc && any)
        rc = emit_next(rd, &any);
    for (int t = 0; t < 3; t++) {
        rows_close(&rd->tier[t].rows);
        mem_free(rd->tier[t].c);
        rd->tier[t] = (struct stream){0};
    }
    vec_release(&rd->log);
    rd->log_pos = 0;
    return rc;
}

int store_each_point(struct store *s, int64_t life_id, int64_t from_ns, int64_t to_ns, uint64_t wanted, store_point_fn fn,
                     void *ctx, struct err *err)
{
    struct reading rd = {.s = s, .life_id = life_id, .from_ms = ms_of(from_ns), .to_ms = ms_of(to_ns),
                         .wanted = wanted ? wanted : METRICS_ALL, .fn = fn, .ctx = ctx, .err = err};
    int rc;
    do {
        rc = db_begin(s, false, err);
        if (rc)
            break;
        rc = read_points(&rd);
        db_end(s, true, NULL);
    } while (salvage_after(s, &rc, rd.stopped, err));
    return rc;
}
