/* top of the store: what a watcher wrote, read anew at every refresh. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/top/top.h"
#include "store/store.h"

#define TARGETS_MAX 4096

struct named { int64_t id; char name[64]; };

struct stored {
    struct store *store;
    int64_t target_id;       /* 0: all */
    int64_t window_ns;
    struct vec targets;      /* struct named */
    struct vec lives;        /* int64_t: those to read the points of */
    struct top_rows *rows;   /* the three: during a refresh */
    const struct named *cur;
    struct top_row *row;
    int64_t since_ns;
};

static int on_target(void *ctx, const struct target_row *t)
{
    struct stored *s = ctx;
    if (s->target_id && t->id != s->target_id)
        return 0;
    struct named *n = vec_push(&s->targets);
    if (!n)
        return LT_ELIMIT;
    n->id = t->id;
    str_copy(n->name, sizeof n->name, t->name);
    return 0;
}

static int on_life(void *ctx, const struct life_row *l)
{
    struct stored *s = ctx;
    if (l->end.cause != LIFE_RUNNING || l->last_ns == CLOCK_INVALID || l->last_ns < s->since_ns)
        return 0;
    if (!top_rows_add(s->rows, l->id, &l->info, s->cur->name))
        return 0; /* the page is full long before */
    return vec_append(&s->lives, &l->id);
}

static int on_point(void *ctx, const struct point *p, const struct point_values v[METRIC_N])
{
    struct stored *s = ctx;
    int64_t last[METRIC_N];
    for (int m = 0; m < METRIC_N; m++)
        last[m] = v[m].last;
    top_row_sample(s->row, p->ts_ns, last);
    return 0;
}

static int read_lives(struct stored *s, struct err *err)
{
    int r = 0;
    VEC_EACH(const struct named, n, &s->targets) {
        s->cur = n;
        r = r ? r : store_each_life(s->store, n->id, s->since_ns, INT64_MAX, on_life, s, err);
    }
    for (size_t i = 0; i < s->lives.n && !r; i++) {
        int64_t id = *(int64_t *)vec_at(&s->lives, i);
        s->row = top_rows_find(s->rows, id);
        r = store_each_point(s->store, id, s->since_ns, INT64_MAX, 0, on_point, s, err);
    }
    return r;
}

static int refresh(void *state, struct top_rows *rows, struct err *err)
{
    struct stored *s = state;
    top_rows_clear(rows);
    vec_clear(&s->targets);
    vec_clear(&s->lives);
    s->rows = rows;
    s->since_ns = clock_wall_ns() - s->window_ns;
    int r = store_each_target(s->store, on_target, s, err);
    return r ? r : read_lives(s, err);
}

static void close_stored(void *state)
{
    struct stored *s = state;
    store_close(s->store, NULL);
    vec_release(&s->targets);
    vec_release(&s->lives);
    mem_free(s);
}

int top_stored_open(const struct args *args, const char *target, int64_t window_ns, struct top_source *ret, struct err *err)
{
    struct stored *s = mem_zalloc(1, sizeof *s);
    if (!s)
        return err_set(err, LT_ENOMEM, "the view: no memory for it; free some and try again");
    s->window_ns = window_ns;
    vec_init(&s->targets, sizeof(struct named), TARGETS_MAX);
    vec_init(&s->lives, sizeof(int64_t), TOP_ROWS_MAX);
    int r = cmd_open_store(args, &s->store, err);
    if (!r && target) {
        r = store_find_target(s->store, target, &s->target_id, err);
        if (r)
            store_close(s->store, NULL);
    }
    if (r) {
        mem_free(s);
        return r;
    }
    *ret = (struct top_source){ .state = s, .refresh = refresh, .close = close_stored };
    return 0;
}
