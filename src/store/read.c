/* Reading targets, lives, events and gaps. Each walk goes on after damage: SQLite's own pages may be broken in the middle of
 * it, then the rest is read from what could be salvaged (salvage.c). */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

/* ---- lives ---- */

struct life_order { int64_t start_ns, id; };

struct life_walk {
    struct store *s;
    int64_t target_id, from_ns, to_ns;
    store_life_fn fn;
    void *ctx;
    struct err *err;
    struct vec order;
    struct life_order done;   /* the last that was given out */
    bool any_done, stopped;
};

static bool before(const struct life_order *a, const struct life_order *b)
{
    return a->start_ns != b->start_ns ? a->start_ns < b->start_ns : a->id < b->id;
}

static void sort_lives(struct vec *v)
{
    struct life_order *o = v->items;
    for (size_t gap = v->n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (size_t i = gap; i < v->n; i++) {
            struct life_order x = o[i];
            size_t j = i;
            for (; j >= gap && before(&x, &o[j - gap]); j -= gap)
                o[j] = o[j - gap];
            o[j] = x;
        }
}

/* The life's running summary: of its row, and of the sweeps since. */
static void add_log(struct store *s, struct life_full *l)
{
    const struct live *live = l->end.cause == LIFE_RUNNING ? live_find(s, l->id) : NULL;
    if (live)
        l->sum = live->sum;
}

static bool overlaps(const struct life_full *l, int64_t from_ns, int64_t to_ns)
{
    int64_t begin = l->info.start_wall_ns, end = l->end.wall_ns;
    if (l->sum.first_ms != MS_INVALID) {
        begin = MIN(begin, ns_of(l->sum.first_ms));
        end = MAX(end, ns_of(l->sum.last_ms));
    }
    return begin <= to_ns && (l->end.cause == LIFE_RUNNING || end >= from_ns);
}

static int collect_lives(struct life_walk *w)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, w->s, STMT_LIFE_TARGET, TABLE_LIFE, w->err, VI(w->target_id));
    while (!rc && (rc = rows_next(&r, w->err)) == 1) {
        struct life_full l;
        rc = life_read(w->s, &r, &l, w->err);
        if (rc == LT_ECORRUPT) {
            rc = 0;
            continue;
        }
        if (rc)
            break;
        add_log(w->s, &l);
        struct life_order o = {l.info.start_wall_ns, l.id};
        if (overlaps(&l, w->from_ns, w->to_ns) && !(w->any_done && !before(&w->done, &o)) && vec_append(&w->order, &o))
            rc = err_set(w->err, LT_ENOMEM, "store %s: out of memory", w->s->path);
    }
    sort_lives(&w->order);
    return rc;
}

static int give_life(struct life_walk *w, const struct life_order *o)
{
    struct life_full l;
    int rc = life_lookup(w->s, o->id, &l, w->err);
    if (rc <= 0) /* found by an index, which holds what its damaged row does not */
        return rc;
    add_log(w->s, &l);
    struct life_row row = {.id = l.id, .target_id = l.info.target_id, .info = l.info, .end = l.end, .samples = l.sum.samples,
                           .first_ns = l.sum.first_ms == MS_INVALID ? CLOCK_INVALID : ns_of(l.sum.first_ms),
                           .last_ns = l.sum.last_ms == MS_INVALID ? CLOCK_INVALID : ns_of(l.sum.last_ms)};
    memcpy(row.first, l.sum.first, sizeof row.first);
    memcpy(row.last, l.sum.last, sizeof row.last);
    w->done = *o;
    w->any_done = true;
    rc = w->fn(w->ctx, &row);
    w->stopped = rc != 0;
    return rc;
}

static int walk_lives(struct life_walk *w)
{
    vec_init(&w->order, sizeof(struct life_order), 1 << 26);
    int rc = lives_refresh(w->s, w->err);
    if (!rc)
        rc = collect_lives(w);
    for (size_t i = 0; i < w->order.n && !rc; i++)
        rc = give_life(w, vec_at(&w->order, i));
    vec_release(&w->order);
    return rc;
}

int store_each_life(struct store *s, int64_t target_id, int64_t from_ns, int64_t to_ns, store_life_fn fn, void *ctx, struct err *err)
{
    struct life_walk w = {.s = s, .target_id = target_id, .from_ns = from_ns, .to_ns = to_ns, .fn = fn, .ctx = ctx, .err = err};
    int rc;
    do {
        rc = db_begin(s, false, err);
        if (rc)
            break;
        rc = walk_lives(&w);
        db_end(s, true, NULL);
    } while (salvage_after(s, &rc, w.stopped, err));
    return rc;
}

/* ---- targets ---- */

struct target_walk { struct store *s; store_target_fn fn; void *ctx; struct err *err; int64_t done; bool stopped; };

static int add_lives(struct store *s, struct target_row *t, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_LIFE_TARGET, TABLE_LIFE, err, VI(t->id));
    while (!rc && (rc = rows_next(&r, err)) == 1) {
        struct life_full l;
        rc = life_read(s, &r, &l, err);
        if (rc && rc != LT_ECORRUPT)
            return rc;
        bool readable = !rc;
        rc = 0;
        if (!readable)
            continue;
        add_log(s, &l);
        if (l.sum.first_ms == MS_INVALID)
            continue;
        t->samples += l.sum.samples;
        t->first_ns = t->first_ns == CLOCK_INVALID ? ns_of(l.sum.first_ms) : MIN(t->first_ns, ns_of(l.sum.first_ms));
        t->last_ns = MAX(t->last_ns, ns_of(l.sum.last_ms));
    }
    return rc;
}

static int walk_targets(struct target_walk *w)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = lives_refresh(w->s, w->err);
    if (!rc)
        rc = rows_open(&r, w->s, STMT_TARGET_ALL, TABLE_TARGET, w->err, VI(w->done));
    while (!rc && (rc = rows_next(&r, w->err)) == 1) {
        struct target_row t = {.id = rows_int(&r, 0), .name = rows_text(&r, 1), .selector = rows_text(&r, 2),
                               .first_ns = CLOCK_INVALID, .last_ns = CLOCK_INVALID};
        rc = add_lives(w->s, &t, w->err);
        if (rc)
            break;
        w->done = t.id;
        rc = w->fn(w->ctx, &t);
        w->stopped = rc != 0;
    }
    return rc;
}

int store_each_target(struct store *s, store_target_fn fn, void *ctx, struct err *err)
{
    struct target_walk w = {.s = s, .fn = fn, .ctx = ctx, .err = err};
    int rc;
    do {
        rc = db_begin(s, false, err);
        if (rc)
            break;
        rc = walk_targets(&w);
        db_end(s, true, NULL);
    } while (salvage_after(s, &rc, w.stopped, err));
    return rc;
}

/* The names of the targets there are, for the one who asked for another. */
static void list_targets(struct store *s, char *out, size_t size)
{
    _cleanup_rows_ struct rows r = {0};
    size_t at = str_copy(out, size, "");
    int rc = rows_open(&r, s, STMT_TARGET_ALL, TABLE_TARGET, NULL, VI(0));
    while (!rc && rows_next(&r, NULL) == 1 && at < size)
        at += str_fmt(out + at, size - at, "%s%s", at ? ", " : "", rows_text(&r, 1));
}

static int find_target(struct store *s, const char *name, int64_t *ret_id, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_TARGET_FIND, TABLE_TARGET, err, VT(name));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1)
        *ret_id = rows_int(&r, 0);
    return rc;
}

int store_find_target(struct store *s, const char *name, int64_t *ret_id, struct err *err)
{
    char names[300];
    int rc;
    do
        rc = find_target(s, name, ret_id, err);
    while (salvage_after(s, &rc, false, err));
    if (rc)
        return rc < 0 ? rc : 0;
    list_targets(s, names, sizeof names);
    if (!names[0])
        return err_set(err, LT_ENOENT, "target '%s': the store %s holds no target; start with 'lowtide watch'", name, s->path);
    return err_set(err, LT_ENOENT, "target '%s': not in the store %s; it holds %s", name, s->path, names);
}

/* ---- events and gaps ---- */

/* By time and id; `done` is the last that was given out. */
struct span_walk {
    struct store *s;
    int64_t from_ms, to_ms, target_id;
    int64_t done_ts, done_id;
    bool stopped;
    struct err *err;
};

static bool is_done(const struct span_walk *w, int64_t ts, int64_t id)
{
    return ts != w->done_ts ? ts < w->done_ts : id <= w->done_id;
}

static int walk_events(struct span_walk *w, store_event_fn fn, void *ctx)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, w->s, STMT_EVENT_TARGET, TABLE_EVENT, w->err, VI(w->target_id), VI(w->from_ms), VI(w->to_ms));
    while (!rc && (rc = rows_next(&r, w->err)) == 1) {
        struct event_row row = {rows_int(&r, 1), ns_of(rows_int(&r, 2)), rows_text(&r, 3), rows_text(&r, 4)};
        rc = 0;
        if (is_done(w, rows_int(&r, 2), rows_int(&r, 0)))
            continue;
        w->done_ts = rows_int(&r, 2);
        w->done_id = rows_int(&r, 0);
        rc = fn(ctx, &row);
        w->stopped = rc != 0;
    }
    return rc;
}

int store_each_event(struct store *s, int64_t target_id, int64_t from_ns, int64_t to_ns, store_event_fn fn, void *ctx, struct err *err)
{
    struct span_walk w = {.s = s, .from_ms = ms_of(from_ns), .to_ms = ms_of(to_ns), .target_id = target_id,
                          .done_ts = INT64_MIN, .err = err};
    int rc;
    do
        rc = walk_events(&w, fn, ctx);
    while (salvage_after(s, &rc, w.stopped, err));
    return rc;
}

static int walk_gaps(struct span_walk *w, store_gap_fn fn, void *ctx)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, w->s, STMT_GAP_SPAN, TABLE_GAP, w->err, VI(w->from_ms), VI(w->to_ms));
    while (!rc && (rc = rows_next(&r, w->err)) == 1) {
        struct gap_row row = {ns_of(rows_int(&r, 1)), ns_of(rows_int(&r, 2)), rows_text(&r, 3)};
        rc = 0;
        if (is_done(w, rows_int(&r, 1), rows_int(&r, 0)))
            continue;
        w->done_ts = rows_int(&r, 1);
        w->done_id = rows_int(&r, 0);
        rc = fn(ctx, &row);
        w->stopped = rc != 0;
    }
    return rc;
}

int store_each_gap(struct store *s, int64_t from_ns, int64_t to_ns, store_gap_fn fn, void *ctx, struct err *err)
{
    struct span_walk w = {.s = s, .from_ms = ms_of(from_ns), .to_ms = ms_of(to_ns), .done_ts = INT64_MIN, .err = err};
    int rc;
    do
        rc = walk_gaps(&w, fn, ctx);
    while (salvage_after(s, &rc, w.stopped, err));
    return rc;
}
