/* What time sweeps are stamped with, whatever the clocks do. */
#include <string.h>

#include "cmd/watch/watching.h"
#include "lib/harness.h"

#define S NS_PER_S
#define T0 (INT64_C(1800000000) * S)

/* A machine whose clocks the test moves. */
static struct clock_reading now;
static struct sweep_clock sc;
static struct sweep_gap gap;

static void start(int64_t last_stamp)
{
    now = (struct clock_reading){ T0, 1000 * S, 900 * S };
    sweep_clock_init(&sc, 30 * S, last_stamp);
}

static int64_t after(int64_t awake_s, int64_t asleep_s, int64_t set_s)
{
    now.mono_ns += awake_s * S;
    now.boot_ns += (awake_s + asleep_s) * S;
    now.wall_ns += (awake_s + asleep_s + set_s) * S;
    return sweep_clock_next(&sc, &now, &gap);
}

static void test_steady(void **state)
{
    (void)state;
    start(CLOCK_INVALID);
    assert_int_equal(after(0, 0, 0), T0);
    assert_false(gap.any);
    for (int i = 1; i < 100; i++) {
        assert_int_equal(after(30, 0, 0), T0 + i * 30 * S);
        assert_false(gap.any);
    }
}

static void test_behind_an_earlier_watch(void **state)
{
    (void)state;
    start(T0 - 3600 * S);
    assert_int_equal(after(0, 0, 0), T0);
    assert_false(gap.any); /* the store knows of the pause */
    start(T0 - 1);
    assert_int_equal(after(0, 0, 0), T0 - 1 + NS_PER_MS);
    assert_false(gap.any || sc.behind);
}

static void test_sleep_hole_and_forward(void **state)
{
    (void)state;
    start(CLOCK_INVALID);
    after(0, 0, 0);
    after(10, 3600, 0);
    assert_string_equal(gap.why, "the machine slept for 1h 00m");
    after(600, 0, 0);
    assert_string_equal(gap.why, "the watcher was held up for 10m 00s");
    after(30, 0, 7200);
    assert_string_equal(gap.why, "the clock was set forward by 2h 00m");
    after(60, 0, 0); /* one sweep late: sparser, not wrong */
    assert_false(gap.any);
}

static void test_small_step_back(void **state)
{
    (void)state;
    start(CLOCK_INVALID);
    after(0, 0, 0);
    assert_int_equal(after(30, 0, -20), T0 + 10 * S);
    assert_string_equal(gap.why, "the clock was set back by 20s");
    after(30, 0, 0);
    assert_false(gap.any);
}

/* Set back by an hour: stamps go on rising, at half speed, and meet the clock after two hours. */
static void test_set_back(void **state)
{
    int64_t last, stamp = 0;
    int n = 0;
    (void)state;
    start(CLOCK_INVALID);
    last = after(0, 0, 0);
    stamp = after(30, 0, -3600);
    assert_int_equal(stamp, last + 15 * S);
    assert_true(sc.behind);
    for (; sc.behind; n++) {
        assert_true(gap.any);
        assert_int_equal(gap.from_ns, last);
        assert_int_equal(gap.to_ns, stamp);
        assert_true(stamp > last);
        assert_in_range(n, 0, 300);
        last = stamp;
        stamp = after(30, 0, 0);
    }
    assert_int_equal(stamp, now.wall_ns);
    assert_in_range(n, 235, 242);
    after(30, 0, 0);
    assert_false(gap.any);
}

static void test_store_from_the_future(void **state)
{
    (void)state;
    start(T0 + 100 * S);
    assert_int_equal(after(0, 0, 0), T0 + 100 * S + NS_PER_MS);
    assert_true(gap.any && sc.behind);
    assert_int_equal(after(30, 0, 0), T0 + 115 * S + NS_PER_MS);
}

static void test_clocks_that_stand_still(void **state)
{
    int64_t last;
    (void)state;
    start(CLOCK_INVALID);
    last = after(0, 0, 0);
    for (int i = 0; i < 10; i++) {
        int64_t stamp = after(0, 0, 0);
        assert_true(stamp >= last + NS_PER_MS);
        last = stamp;
    }
}

HARNESS_MAIN(CASE(test_steady), CASE(test_behind_an_earlier_watch), CASE(test_sleep_hole_and_forward),
             CASE(test_small_step_back), CASE(test_set_back), CASE(test_store_from_the_future), CASE(test_clocks_that_stand_still))
