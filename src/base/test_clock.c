#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/random.h"

static void test_clocks_run(void **state)
{
    int64_t mono = clock_mono_ns(), boot = clock_boot_ns(), cpu = clock_cpu_ns(), wall = clock_wall_ns();

    (void)state;
    assert_true(mono > 0 && boot >= mono - NS_PER_S && cpu >= 0 && wall > INT64_C(1600000000) * NS_PER_S);
    assert_true(clock_mono_ns() >= mono && clock_boot_ns() >= boot && clock_cpu_ns() >= cpu);
}

static void test_text(void **state)
{
    static const struct { int64_t ns; const char *text; } rows[] = {
        { 0, "1970-01-01T00:00:00Z" },
        { INT64_C(1796070637) * NS_PER_S, "2026-11-30T20:30:37Z" },
        { INT64_C(1796070637) * NS_PER_S + 5 * NS_PER_MS, "2026-11-30T20:30:37.005Z" },
        { 1, "1970-01-01T00:00:00.000Z" },
        { -1, "1969-12-31T23:59:59.999Z" },
        { INT64_C(951782400) * NS_PER_S, "2000-02-29T00:00:00Z" },
        { INT64_MAX, "2262-04-11T23:47:16.854Z" },
        { INT64_MIN + 1, "1677-09-21T00:12:43.145Z" },
        { CLOCK_INVALID, "-" },
    };
    char out[CLOCK_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(clock_rfc3339(rows[i].ns, out), rows[i].text);
}

static void test_parse(void **state)
{
    static const struct { const char *text; int64_t s, ns; } rows[] = {
        { "2026-11-30T20:30:37Z", 1796070637, 0 },
        { "2026-11-30t20:30:37z", 1796070637, 0 },
        { "2026-11-30 20:30:37Z", 1796070637, 0 },
        { "2026-11-30T20:30:37.5Z", 1796070637, 500000000 },
        { "2026-11-30T20:30:37.123456789Z", 1796070637, 123456789 },
        { "2026-11-30T20:30:37.1234567899Z", 1796070637, 123456789 },
        { "2026-12-01T04:30:37+08:00", 1796070637, 0 },
        { "2026-11-30T15:00:37-05:30", 1796070637, 0 },
        { "2026-11-30T20:30:37-00:00", 1796070637, 0 },
        { "2024-02-29T00:00:00Z", 1709164800, 0 },
        { "2000-02-29T00:00:00Z", 951782400, 0 },
        { "2016-12-31T23:59:60Z", 1483228800, 0 },
        { "2017-01-01T08:59:60+09:00", 1483228800, 0 },
        { "1969-12-31T23:59:59Z", -1, 0 },
        { "0", 0, 0 },
        { "1796070637", 1796070637, 0 },
        { "1796070637.25", 1796070637, 250000000 },
        { "1.000000001", 1, 1 },
        { "-1.5", -1, -500000000 },
        { "2026", 2026, 0 },
        { "-9223372036.854775807", -9223372036, -854775807 },
        { "1677-09-21T00:12:43.145224193Z", -9223372036, -854775807 },
        { "2262-04-11T23:47:16.854775807Z", 9223372036, 854775807 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t t = 7;

        if (clock_parse(rows[i].text, strlen(rows[i].text), &t) != 0 || t != rows[i].s * NS_PER_S + rows[i].ns)
            fail_msg("%s: %lld", rows[i].text, (long long)t);
    }
}

static void test_parse_refuses(void **state)
{
    static const char *const rows[] = {
        "", " ", "-", ".", "x", "1x", " 1", "1 ", "1.", ".5", "+1", "1e9", "nan", "inf", "0x10", "1,5",
        "9223372037", "99999999999999999999", "-9223372037", "-9223372036.854775808",
        "2026-11-30", "2026-11-30T20:30:37", "2026-11-30T20:30Z", "2026-11-30T20:30:37 Z", "2026-11-30T20:30:37Zx",
        "2026-11-30T20:30:37.Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z", "2026-04-31T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
        "2026-11-30T24:00:00Z", "2026-11-30T20:60:00Z", "2026-11-30T20:30:61Z", "2026-11-30T20:30:60Z",
        "2026-11-30T20:30:37+24:00", "2026-11-30T20:30:37+08:60", "2026-11-30T20:30:37+0800",
        "2026-11-30T20:30:37+08", "2026-11-30T20:30:37+08:0", "2026-1-30T20:30:37Z", "2026-11-3T20:30:37Z",
        "202-11-30T20:30:37Z", "20266-11-30T20:30:37Z", "2026/11/30T20:30:37Z", "2026-11-30X20:30:37Z",
        "9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2262-04-11T23:47:17Z", "1677-09-21T00:12:43.145224192Z", "-026-11-30T20:30:37Z",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t t = 7;

        if (clock_parse(rows[i], strlen(rows[i]), &t) != LT_EPARSE || t != 7)
            fail_msg("took %s as %lld", rows[i], (long long)t);
    }
}

/* Only s[0..len) is read, and a NUL inside is a bad byte like any other. */
static void test_parse_takes_a_slice(void **state)
{
    int64_t t;

    (void)state;
    assert_int_equal(clock_parse("12345,67", 5, &t), 0);
    assert_true(t == 12345 * NS_PER_S);
    assert_int_equal(clock_parse("1\0", 2, &t), LT_EPARSE);
    assert_int_equal(clock_parse("2026-11-30T20:30:37Z", 19, &t), LT_EPARSE);
}

/* Text to time and back, and against the C library's calendar. */
static void test_roundtrip(void **state)
{
    struct random rnd = { 6 };

    (void)state;
    for (int i = 0; i < 20000; i++) {
        int64_t ns = (int64_t)random_u64(&rnd) / NS_PER_MS * NS_PER_MS, back = 0;
        char out[CLOCK_TEXT_MAX], want[CLOCK_TEXT_MAX];
        time_t s = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
        struct tm tm;

        clock_rfc3339(ns, out);
        assert_int_equal(clock_parse(out, strlen(out), &back), 0);
        assert_true(back == ns);
        assert_non_null(gmtime_r(&s, &tm));
        strftime(want, sizeof want, "%Y-%m-%dT%H:%M:%S", &tm);
        assert_int_equal(strncmp(out, want, strlen(want)), 0);
    }
}

HARNESS_MAIN(CASE(test_clocks_run), CASE(test_text), CASE(test_parse), CASE(test_parse_refuses),
             CASE(test_parse_takes_a_slice), CASE(test_roundtrip))
