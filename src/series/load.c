/* The store's rows into a series: lives, then the grid from the roots' moments, then all points, roots first. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "series/parts.h"

struct loading {
    struct series *s;
    size_t life;
};

static int on_life(void *ctx, const struct life_row *row)
{
    return series_life(ctx, row);
}

static int on_event(void *ctx, const struct event_row *row)
{
    return series_event(ctx, row);
}

static int on_gap(void *ctx, const struct gap_row *row)
{
    return series_gap(ctx, row);
}

static int on_request(void *ctx, const struct request_row *row)
{
    return series_request(ctx, row->ts_ns, row->n);
}

static int on_time(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    (void)v;
    return series_time(ctx, p->ts_ns);
}

static int on_point(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    struct loading *l = ctx;

    return series_point(l->s, l->life, p, v);
}

/* The moments: of the target's own row when it has one (it is in every sweep), else of every life. */
static int load_times(struct series *s, struct store *store, struct err *err)
{
    bool whole = false;
    int r = 0;

    VEC_EACH(struct series_life, l, &s->lives)
        whole |= l->whole;
    VEC_EACH(struct series_life, l, &s->lives) {
        if (whole && !l->whole)
            continue;
        r = store_each_point(store, l->id, s->from_ns, s->to_ns, UINT64_C(1) << METRIC_RSS_ANON, on_time, s, err);
        if (r)
            return r;
    }
    return 0;
}

static int load_points(struct series *s, struct store *store, bool roots, struct err *err)
{
    struct loading ctx = { s, 0 };

    for (; ctx.life < s->lives.n; ctx.life++) {
        const struct series_life *l = series_life_at(s, ctx.life);
        int r;

        if (l->root != roots)
            continue;
        r = store_each_point(store, l->id, s->from_ns, s->to_ns, 0, on_point, &ctx, err);
        if (r)
            return r;
    }
    return 0;
}

static int load_rows(struct series *s, struct store *store, int64_t id, struct err *err)
{
    int r = store_each_life(store, id, s->from_ns, s->to_ns, on_life, s, err);

    if (!r)
        r = store_each_event(store, id, s->from_ns, s->to_ns, on_event, s, err);
    if (!r)
        r = store_each_gap(store, s->from_ns, s->to_ns, on_gap, s, err);
    if (!r)
        r = store_each_request(store, id, s->from_ns, s->to_ns, on_request, s, err);
    return r ? r : load_times(s, store, err);
}

static int say(int r, const struct series *s, struct err *err)
{
    if (r == LT_ENODATA)
        err_set(err, r, "%s: no sample in this window; choose another with --since, or watch it first", s->target);
    else if (r == LT_ENOMEM)
        err_set(err, r, "%s: out of memory; choose a shorter window with --since", s->target);
    else if (r == LT_ELIMIT)
        err_set(err, r, "%s: more processes than can be looked at in one window; choose a shorter one with --since", s->target);
    return r;
}

int series_load(struct series **ret, struct store *store, const char *target, int64_t from_ns, int64_t to_ns,
                struct err *err)
{
    _cleanup_series_ struct series *s = NULL;
    int64_t id;
    int r = store_find_target(store, target, &id, err);

    if (r)
        return r;
    r = series_new(&s, target, from_ns, to_ns);
    if (r)
        return err_set(err, r, "%s: out of memory; close something", target);
    r = load_rows(s, store, id, err);
    if (r == LT_ELIMIT)
        say(r, s, err);
    if (!r)
        r = say(series_plan(s), s, err);
    if (!r)
        r = load_points(s, store, true, err);
    if (!r)
        r = load_points(s, store, false, err);
    if (!r)
        r = say(series_finish(s), s, err);
    if (r)
        return r;
    *ret = TAKE_PTR(s);
    return 0;
}
