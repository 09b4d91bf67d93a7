#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/tally.h"

struct seen {
    char keys[8][TALLY_KEY_MAX];
    int64_t counts[8];
    size_t n;
};

static int note(void *ctx, const char *key, int64_t count)
{
    struct seen *s = ctx;

    assert_true(s->n < 8);
    str_copy(s->keys[s->n], sizeof s->keys[0], key);
    s->counts[s->n++] = count;
    return 0;
}

static void test_highest_first_then_other(void **state)
{
    struct tally *t;
    struct seen s = { 0 };

    (void)state;
    assert_int_equal(tally_new(&t), 0);
    tally_add(t, "b", 1, 2);
    tally_add(t, "abc", 1, 5);
    tally_add(t, "c", 1, 2);
    tally_add(t, "b", 1, 1);
    assert_int_equal(tally_each(t, 2, note, &s), 0);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.keys[0], "a");
    assert_int_equal(s.counts[0], 5);
    assert_string_equal(s.keys[1], "b");
    assert_int_equal(s.counts[1], 3);
    assert_string_equal(s.keys[2], "other");
    assert_int_equal(s.counts[2], 2);
    tally_free(t);
}

static int stop(void *ctx, const char *key, int64_t count)
{
    (void)key;
    (void)count;
    ++*(int *)ctx;
    return 7;
}

static void test_bounded(void **state)
{
    struct tally *t;
    struct seen s = { 0 };
    int calls = 0;

    (void)state;
    assert_int_equal(tally_new(&t), 0);
    for (int i = 0; i < TALLY_KEYS * 3; i++) {
        char key[16];
        tally_add(t, key, str_fmt(key, sizeof key, "k%d", i), 1);
    }
    assert_int_equal(tally_total(t), TALLY_KEYS * 3);
    assert_int_equal(tally_each(t, 1, note, &s), 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.counts[1], TALLY_KEYS * 3 - 1);
    assert_int_equal(tally_each(t, 5, stop, &calls), 7);
    assert_int_equal(calls, 1);
    tally_clear(t);
    assert_int_equal(tally_total(t), 0);
    tally_free(t);
}

static void test_long_and_unprintable_names(void **state)
{
    struct tally *t;
    struct seen s = { 0 };
    char key[300];

    (void)state;
    memset(key, 'x', sizeof key);
    assert_int_equal(tally_new(&t), 0);
    tally_add(t, key, sizeof key, 3);
    tally_add(t, "a\nb\x1b", 4, 2);
    tally_add(t, "", 0, 1);
    assert_int_equal(tally_each(t, 5, note, &s), 0);
    assert_int_equal(s.n, 3);
    assert_int_equal(strlen(s.keys[0]), TALLY_KEY_MAX - 1);
    assert_string_equal(s.keys[1], "a?b?");
    assert_string_equal(s.keys[2], "");
    tally_free(t);
}

static void test_scale(void **state)
{
    struct tally *t;
    struct seen s = { 0 };

    (void)state;
    assert_int_equal(tally_new(&t), 0);
    tally_add(t, "a", 1, 10);
    tally_add(t, "b", 1, 1);
    tally_scale(t, 0.25);
    assert_int_equal(tally_each(t, 5, note, &s), 0);
    assert_int_equal(s.counts[0], 3); /* 2.5 */
    assert_int_equal(s.counts[1], 1); /* what was seen does not vanish */
    tally_free(t);
}

static int make(void *ctx)
{
    struct tally *t;
    int r = tally_new(&t);

    (void)ctx;
    if (r == 0)
        tally_free(t);
    return r;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(make, NULL);
}

HARNESS_MAIN(CASE(test_highest_first_then_other), CASE(test_bounded), CASE(test_long_and_unprintable_names), CASE(test_scale),
             CASE(test_out_of_memory))
