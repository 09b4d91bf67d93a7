/* The watcher's table of lives: running summaries and the values the next sweep is coded against. */
#include <string.h>

#include "store/parts.h"

struct live *live_find(struct store *s, int64_t id)
{
    uint64_t at;
    return map_get(&s->w.index, (uint64_t)id, &at) ? vec_at(&s->w.lives, at) : NULL;
}

struct live *live_add(struct store *s, int64_t id)
{
    size_t at = s->w.lives.n;
    struct live *l = vec_push(&s->w.lives);
    if (!l)
        return NULL;
    if (map_put(&s->w.index, (uint64_t)id, at)) {
        vec_remove_unordered(&s->w.lives, at);
        return NULL;
    }
    l->id = id;
    summary_init(&l->sum);
    return l;
}

void live_remove(struct store *s, int64_t id)
{
    uint64_t at;
    if (!map_get(&s->w.index, (uint64_t)id, &at))
        return;
    map_remove(&s->w.index, (uint64_t)id);
    vec_remove_unordered(&s->w.lives, at);
    if (at < s->w.lives.n) /* the last one took its place; the key is there already, so this cannot fail */
        map_put(&s->w.index, (uint64_t)((struct live *)vec_at(&s->w.lives, at))->id, at);
}

/* ---- at open ---- */

struct load { struct store *s; struct err *err; int rc; };

static int64_t *load_slot(void *ctx, int64_t id)
{
    struct load *load = ctx;
    struct live *l = live_find(load->s, id);
    if (l || load->rc)
        return l ? l->prev : NULL;
    struct life_full full;
    int rc = life_lookup(load->s, id, &full, load->err); /* when its row is lost, its samples are not */
    if (rc < 0)
        load->rc = rc;
    l = load->rc ? NULL : live_add(load->s, id);
    if (!l) {
        load->rc = load->rc ? load->rc : LT_ENOMEM;
        return NULL;
    }
    l->sum = full.sum;
    l->upto_seq = full.upto_seq;
    for (int i = 0; i < METRIC_N; i++)
        l->prev[i] = METRIC_NA;
    return l->prev;
}

static void load_blank(void *ctx)
{
    struct load *load = ctx;
    VEC_EACH(struct live, l, &load->s->w.lives)
        for (int i = 0; i < METRIC_N; i++)
            l->prev[i] = METRIC_NA;
}

static int load_row(void *ctx, int64_t seq, int64_t ts_ms, int64_t id, const int64_t *v)
{
    struct load *load = ctx;
    struct live *l = live_find(load->s, id);
    if (l && seq > l->upto_seq)
        summary_add(&l->sum, ts_ms, v);
    return load->rc;
}

int lives_load(struct store *s, struct err *err)
{
    struct load load = {s, err, 0};
    struct log_visit visit = {.ctx = &load, .lo = 1, .hi = INT64_MAX, .upto_seq = INT64_MAX,
                              .slot = load_slot, .blank = load_blank, .row = load_row};
    int rc = log_read(s, &visit, err);
    return load.rc ? load.rc : rc;
}

int lives_refresh(struct store *s, struct err *err)
{
    struct watcher *w = &s->w;
    if (s->mode == STORE_WATCH)
        return 0;
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open_n(&r, s, STMT_SWEEP_RANGE, TABLE_NONE, NULL, 0, err);
    if (!rc)
        rc = rows_next(&r, err);
    if (rc < 0)
        return rc;
    int64_t first = rows_int(&r, 0), last = rows_int(&r, 1);
    if (first == s->log_first && last == s->log_last)
        return 0;
    vec_release(&w->lives);
    map_release(&w->index);
    vec_init(&w->lives, sizeof(struct live), LIVES_MAX);
    map_init(&w->index, LIVES_MAX);
    rc = lives_load(s, err);
    s->log_first = rc ? 0 : first;
    s->log_last = rc ? 0 : last;
    return rc;
}
