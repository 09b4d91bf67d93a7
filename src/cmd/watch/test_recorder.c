/* What the recorder does when the store cannot take more. */
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cmd/watch/watching.h"
#include "lib/harness.h"

struct kit { struct store *store; struct vec targets; struct recorder r; struct watch_sink sink; };

static void kit_open(struct kit *k, int64_t queue_bytes)
{
    const struct store_config config = { .queue_max_bytes = queue_bytes };
    struct watched t = { .name = "api", .selector = "pid:1" };
    struct err err = { 0 };
    char path[600];
    str_fmt(path, sizeof path, "%s/s.db", harness_tmpdir());
    assert_int_equal(store_open(&k->store, path, STORE_WATCH, &config, &err), 0);
    assert_int_equal(store_target(k->store, t.name, t.selector, &t.id, &err), 0);
    vec_init(&k->targets, sizeof t, 1);
    assert_int_equal(vec_append(&k->targets, &t), 0);
    recorder_init(&k->r, k->store, &k->targets);
    k->sink = recorder_sink(&k->r);
}

static void kit_close(struct kit *k)
{
    recorder_release(&k->r);
    vec_release(&k->targets);
    assert_int_equal(store_close(k->store, NULL), 0);
}

static int begin_life(struct kit *k, int32_t pid, int64_t *ret_id)
{
    const struct watched *t = vec_at(&k->targets, 0);
    struct life_info info = { .key = { .pid = pid, .start = 5 }, .target_id = t->id, .start_wall_ns = NS_PER_S };
    return k->sink.begin(k->sink.ctx, &info, ret_id);
}

/* Lives that begin are never dropped from the queue, so it can be full of them: then no sweep is taken. Unless what is queued
 * is written all the same, none ever would be again. */
static void test_a_full_queue_is_written_after_a_failed_sweep(void **state)
{
    struct kit k;
    struct err err;
    int64_t id;
    int32_t pid = 1;
    (void)state;
    kit_open(&k, 8192);
    while (begin_life(&k, pid, &id) == 0 && pid < 10000)
        pid++;
    assert_in_range(pid, 2, 9999); /* it was full */
    recorder_failed(&k.r, err_set(&err, LT_ELIMIT, "sampler: a life could not be begun"), &err);
    assert_int_equal(begin_life(&k, pid, &id), 0);
    assert_int_equal(k.r.begun, pid);
    kit_close(&k);
}

/* Ends that cannot be kept are counted, not told one by one: the line of the first is the only one. */
static void test_lost_ends_are_said_once(void **state)
{
    const struct life_end end = { .wall_ns = 2 * NS_PER_S, .cause = LIFE_EXITED };
    int64_t ids[512], last[METRIC_N], id;
    size_t n = 0;
    struct kit k;
    (void)state;
    for (int m = 0; m < METRIC_N; m++)
        last[m] = INT64_MAX / 2; /* the longest record there is */
    kit_open(&k, 8192);
    for (int32_t pid = 1; n < sizeof ids / sizeof *ids; pid++) { /* lives the store knows: their ends are never dropped from the queue */
        assert_int_equal(begin_life(&k, pid, &id), 0);
        ids[n++] = id;
        assert_int_equal(store_commit(k.store, NULL), 0);
    }
    for (size_t i = 0; i < n; i++)
        k.sink.end(k.sink.ctx, ids[i], &end, last);
    assert_true(k.r.unwritten > 1);
    assert_int_equal(k.r.failing, LT_ELIMIT); /* said at the first: log lines come from a change of this alone */
    kit_close(&k);
}

HARNESS_MAIN(CASE(test_a_full_queue_is_written_after_a_failed_sweep), CASE(test_lost_ends_are_said_once))
