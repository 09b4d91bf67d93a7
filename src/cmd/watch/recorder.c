/* What the sampler tells, into the store and onto the screen. */
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/watch/watching.h"

#define LIVES_MAX 65536

void recorder_init(struct recorder *r, struct store *store, struct vec *targets)
{
    *r = (struct recorder){ .store = store, .targets = targets, .floor_ns = CLOCK_INVALID };
    map_init(&r->lives, LIVES_MAX);
}

void recorder_release(struct recorder *r)
{
    map_release(&r->lives);
}

/* Says a failure once, and once when it is over (now == 0). */
static void say(struct recorder *r, int now, const struct err *err)
{
    char kept[UNITS_TEXT_MAX];
    if (now == r->failing)
        return;
    watching_clear_line();
    if (now == LT_EFULL)
        log_warn("%s; sampling goes on, the last hour is kept in memory (%s now) and written when there is room", err->text,
                 units_bytes((double)store_queued_bytes(r->store), kept));
    else if (now)
        log_warn("%s; sampling goes on, and what was not written is tried again with every sweep", err->text);
    else
        log_warn("the store is written again; nothing newer than an hour was lost");
    r->failing = now;
}

static size_t target_index(const struct recorder *r, int64_t target_id)
{
    size_t i = 0;
    VEC_EACH(struct watched, t, r->targets) {
        if (t->id == target_id)
            break;
        i++;
    }
    return i;
}

static int on_begin(void *ctx, const struct life_info *info, int64_t *ret_life_id)
{
    struct recorder *r = ctx;
    struct err err = { 0 };
    int e = store_life_begin(r->store, info, ret_life_id, &err);
    if (e)
        return e;
    size_t i = target_index(r, info->target_id);
    uint64_t known;
    if (i < r->targets->n && !map_get(&r->lives, (uint64_t)*ret_life_id, &known)) {
        struct watched *t = vec_at(r->targets, i);
        if (map_put(&r->lives, (uint64_t)*ret_life_id, i))
            return LT_ELIMIT;
        t->lives++;
        t->begun += info->key.pid != 0;
        r->begun += info->key.pid != 0;
    }
    return 0;
}

static void on_end(void *ctx, int64_t life_id, const struct life_end *end, const int64_t last[METRIC_N])
{
    struct recorder *r = ctx;
    struct life_end e = *end;
    struct err err = { 0 };
    uint64_t i;
    if (r->floor_ns != CLOCK_INVALID && e.wall_ns < r->floor_ns)
        e.wall_ns = r->floor_ns; /* the clock was set back */
    int failed = store_life_end(r->store, life_id, &e, last, &err);
    if (failed)
        r->unwritten++;
    if (failed && !r->failing) /* while the store fails that was said, and thousands may end */
        say(r, failed, &err);
    if (map_get(&r->lives, (uint64_t)life_id, &i)) {
        map_remove(&r->lives, (uint64_t)life_id);
        ((struct watched *)vec_at(r->targets, i))->lives--;
        r->ended++;
    }
}

static void on_note(void *ctx, const char *target, const char *kind, const char *text)
{
    (void)ctx;
    watching_clear_line();
    bool news = str_eq(kind, "found") || str_eq(kind, "gone") || str_eq(kind, "waiting");
    const char *sep = target && *target ? ": " : "";
    if (news)
        log_info("%s%s%s: %s", target ? target : "", sep, kind, text);
    else
        log_warn("%s%s%s: %s", target ? target : "", sep, kind, text);
}

static void on_histogram(void *ctx, int64_t life_id, const char *what, const char *key, int64_t count)
{
    struct recorder *r = ctx;
    struct err err = { 0 };
    if (store_put_histogram(r->store, life_id, r->sweep_ns, what, key, count, &err))
        r->unwritten++;
}

struct watch_sink recorder_sink(struct recorder *r)
{
    return (struct watch_sink){ .ctx = r, .begin = on_begin, .end = on_end, .note = on_note, .histogram = on_histogram };
}

void recorder_put(struct recorder *r, const struct sweep *sweep, const struct sweep_gap *gap)
{
    struct err err = { 0 };
    int e = 0;
    if (gap->any)
        e = store_put_gap(r->store, gap->from_ns, gap->to_ns, gap->why, &err);
    if (!e && sweep->n)
        e = store_put_sweep(r->store, sweep, &err);
    if (e)
        r->unwritten++;
    r->floor_ns = sweep->wall_ns;
    int c = store_commit(r->store, e ? NULL : &err);
    say(r, c ? c : e, &err);
}

void recorder_failed(struct recorder *r, int code, const struct err *err)
{
    struct err why = { 0 };
    int c = store_commit(r->store, &why);
    say(r, c ? c : code, c ? &why : err);
}

void recorder_end_stale(struct recorder *r)
{
    struct life_key self;
    struct err err = { 0 };
    int e = life_of_pid("/proc", (int32_t)getpid(), &self, &err);
    VEC_EACH(const struct watched, t, r->targets)
        if (!e)
            e = store_end_stale(r->store, t->id, self.boot_id, &err);
    if (e)
        log_warn("processes of an earlier watch are still marked as running: %s", err.text);
}
