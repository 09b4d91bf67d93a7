/* top of a selector: a sampler of its own, nothing is stored. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/top/top.h"
#include "source/source.h"

struct live {
    struct watch *watch;
    struct top_rows *rows;   /* during a refresh */
    int64_t last_id;
    const char *selector;
    bool added;
};

static int on_begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    struct live *l = ctx;
    *ret_life_id = ++l->last_id;
    return l->rows && !top_rows_add(l->rows, l->last_id, info, l->selector) ? LT_ELIMIT : 0;
}

static void on_end(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N])
{
    struct live *l = ctx;
    (void)end;
    (void)last;
    if (l->rows)
        top_rows_remove(l->rows, life_id);
}

static void on_note(void *ctx, const char *target, const char *kind, const char *text)
{
    struct live *l = ctx;
    (void)target;
    bool news = str_eq(kind, "found") || str_eq(kind, "gone") || str_eq(kind, "waiting");
    if (l->rows && !news) /* those three are seen from the rows */
        str_fmt(l->rows->note, sizeof l->rows->note, "%s", text);
}

static void on_histogram(void *ctx, int64_t life_id, const char *what, const char *key, int64_t count)
{
    (void)ctx, (void)life_id, (void)what, (void)key, (void)count;
}

static int refresh(void *state, struct top_rows *rows, struct err *err)
{
    struct live *l = state;
    struct sweep sweep;
    l->rows = rows;
    int r = l->added ? watch_events(l->watch, err) : watch_add(l->watch, "top", l->selector, 1, err);
    l->added = true;
    if (!r)
        r = watch_sweep(l->watch, clock_wall_ns(), &sweep, err);
    for (size_t i = 0; !r && i < sweep.n; i++) {
        struct top_row *row = top_rows_find(rows, sweep.rows[i].life_id);
        if (row)
            top_row_sample(row, sweep.wall_ns, sweep.rows[i].v);
    }
    return r;
}

static void close_live(void *state)
{
    struct live *l = state;
    l->rows = NULL;
    watch_close(l->watch);
    mem_free(l);
}

int top_live_open(const char *selector, struct top_source *ret, struct err *err)
{
    const struct watch_config config = { .proc_root = "/proc", .cgroup_root = "/sys/fs/cgroup" };
    _cleanup_mem_ struct live *l = mem_zalloc(1, sizeof *l);
    if (!l)
        return err_set(err, LT_ENOMEM, "%s: no memory to read it; free some and try again", selector);
    const struct watch_sink sink = { .ctx = l, .begin = on_begin, .end = on_end, .note = on_note, .histogram = on_histogram };
    l->selector = selector;
    int r = watch_open(&l->watch, &config, &sink, err);
    if (r)
        return r;
    *ret = (struct top_source){ .state = TAKE_PTR(l), .refresh = refresh, .close = close_live, .needs_two = true };
    return 0;
}
