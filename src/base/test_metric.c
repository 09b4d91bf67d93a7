#include <string.h>

#include "base/life.h"
#include "base/metric.h"
#include "lib/harness.h"

static void test_table(void **state)
{
    (void)state;
    for (int i = 0; i < METRIC_N; i++) {
        const struct metric *m = &metrics[i];

        assert_true(m->name[0] && m->title[0]);
        assert_int_equal(metric_by_name(m->name, strlen(m->name)), i);
        for (const char *c = m->name; *c; c++) /* also the name of a Prometheus series and of a CSV column */
            assert_true((*c >= 'a' && *c <= 'z') || *c == '_');
        if (m->kind == METRIC_KIND_TOTAL)
            assert_int_equal(m->judge, METRIC_JUDGE_NONE);
        if (m->judge == METRIC_JUDGE_MEMORY)
            assert_int_equal(m->unit, METRIC_UNIT_BYTES);
        if (m->judge == METRIC_JUDGE_COUNT)
            assert_int_equal(m->unit, METRIC_UNIT_COUNT);
    }
}

/* Numbers are stored: whoever renumbers must break this. */
static void test_numbers_stay(void **state)
{
    (void)state;
    assert_int_equal(METRIC_RSS_ANON, 0);
    assert_int_equal(METRIC_FDS, 5);
    assert_int_equal(METRIC_THREADS, 19);
    assert_int_equal(METRIC_ORPHANS, 25);
    assert_int_equal(METRIC_SUSPENDED, 37);
    assert_int_equal(LIFE_RUNNING, 0);
    assert_int_equal(LIFE_OOM, 3);
    assert_int_equal(LIFE_IMPORTED, 7);
}

static void test_by_name_is_exact(void **state)
{
    (void)state;
    assert_int_equal(metric_by_name("rss,fds", 3), METRIC_RSS);
    assert_int_equal(metric_by_name("rss_", 4), -1);
    assert_int_equal(metric_by_name("RSS", 3), -1);
    assert_int_equal(metric_by_name("", 0), -1);
    assert_int_equal(metric_by_name("rss", 300), -1);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(metric_unit_name(METRIC_UNIT_BYTES), "bytes");
    assert_string_equal(metric_unit_name(METRIC_UNIT_COUNT), "count");
    assert_string_equal(metric_unit_name(METRIC_UNIT_NS), "ns");
    assert_string_equal(life_end_name(LIFE_RUNNING), "running");
    assert_string_equal(life_end_name(LIFE_EXITED), "exit");
    assert_string_equal(life_end_name(LIFE_END_N), "?");
    assert_string_equal(life_end_name((enum life_end_cause)-1), "?");
}

static void test_life_key(void **state)
{
    struct life_key a = { .pid = 1, .start = 2 }, b = a;

    (void)state;
    assert_true(life_key_eq(&a, &b));
    b.start++;
    assert_false(life_key_eq(&a, &b));
    b = a;
    b.pid++;
    assert_false(life_key_eq(&a, &b));
    b = a;
    b.boot_id[15] = 1;
    assert_false(life_key_eq(&a, &b));
}

HARNESS_MAIN(CASE(test_table), CASE(test_numbers_stay), CASE(test_by_name_is_exact), CASE(test_names),
             CASE(test_life_key))
