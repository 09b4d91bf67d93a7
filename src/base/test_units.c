#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/units.h"
#include "lib/harness.h"
#include "lib/random.h"

static void test_int(void **state)
{
    static const struct { const char *text; int64_t v; } rows[] = {
        { "0", 0 }, { "-0", 0 }, { "+5", 5 }, { "007", 7 }, { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
    };
    static const char *const bad[] = { "", "-", "+", "--1", "1 ", " 1", "1.0", "1e3", "0x1", "9223372036854775808",
                                       "-9223372036854775809", "99999999999999999999999" };
    int64_t v = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        assert_int_equal(units_int(rows[i].text, strlen(rows[i].text), &v), 0);
        assert_true(v == rows[i].v);
    }
    v = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_int_equal(units_int(bad[i], strlen(bad[i]), &v), LT_EPARSE);
    assert_int_equal(v, 7);
}

static void test_double(void **state)
{
    static const struct { const char *text; double v; } rows[] = {
        { "0", 0 },         { "1", 1 },           { "-1.5", -1.5 },        { ".5", .5 },
        { "5.", 5 },        { "+2e3", 2000 },     { "1E-3", 0.001 },       { "0.1", 0.1 },
        { "1e22", 1e22 },   { "1e23", 1e23 },     { "1.7976931348623157e308", 1.7976931348623157e308 },
        { "1e-400", 0 },    { "0e999999999", 0 }, { "4.9e-324", 4.9e-324 }, { "123456789012345678901234567890", 123456789012345678901234567890.0 },
        { "9007199254740993", 9007199254740992 }, { "0000000000000000000000000001.5", 1.5 },
        { "0.00000000000000000000000000000000000000015", 1.5e-40 },
    };
    static const char *const bad[] = { "", "-", ".", "-.", "e5", "1e", "1e+", "nan", "inf", "-inf", "infinity", "0x1p3",
                                       "1,5", " 1", "1 ", "1.5.2", "1e400", "-1e400", "1e99999999999999999999" };
    double v = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (units_double(rows[i].text, strlen(rows[i].text), &v) != 0 || v != rows[i].v)
            fail_msg("%s: %.17g", rows[i].text, v);
    }
    assert_int_equal(units_double("-0", 2, &v), 0);
    assert_true(v == 0 && signbit(v));
    v = 7;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (units_double(bad[i], strlen(bad[i]), &v) != LT_EPARSE || v != 7)
            fail_msg("took %s as %g", bad[i], v);
    assert_int_equal(units_double("1.5,7", 3, &v), 0);
    assert_true(v == 1.5);
}

static void test_double_of_absurd_length(void **state)
{
    char digits[2000];
    double v;

    (void)state;
    memset(digits, '0', sizeof digits);
    assert_int_equal(units_double(digits, sizeof digits, &v), 0);
    assert_true(v == 0);
    memset(digits, '9', sizeof digits);
    assert_int_equal(units_double(digits, sizeof digits, &v), LT_EPARSE);
}

static int print_somehow(struct random *rnd, double v, char *out, size_t size)
{
    switch (random_below(rnd, 4)) {
    case 0:
        return snprintf(out, size, "%.17g", v);
    case 1:
        return snprintf(out, size, "%.*f", (int)random_below(rnd, 20), v);
    case 2:
        return snprintf(out, size, "%.*e", (int)random_below(rnd, 17), v);
    default:
        return snprintf(out, size, "%.*g", (int)random_below(rnd, 20), v);
    }
}

/* Every printed double comes back to the bit: the short way and the C library's agree. */
static void test_double_roundtrip(void **state)
{
    struct random rnd = { 7 };

    (void)state;
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = random_u64(&rnd);
        char text[400]; /* 309 digits, a dot and 19 places at most */
        double v, got;
        int n;

        memcpy(&v, &bits, sizeof v);
        if (i % 2) /* everyday sizes too: most of the bit patterns are astronomic */
            v = (double)(int64_t)random_below(&rnd, 1000000000) / (double)(1 + random_below(&rnd, 1000));
        if (!isfinite(v))
            continue;
        n = print_somehow(&rnd, v, text, sizeof text);
        if (!isfinite(strtod(text, NULL))) /* rounding up went over the largest double */
            continue;
        assert_int_equal(units_double(text, (size_t)n, &got), 0);
        if (got != strtod(text, NULL))
            fail_msg("%s: %.17g, not %.17g", text, got, strtod(text, NULL));
    }
}

static void test_locale_does_not_matter(void **state)
{
    char out[UNITS_TEXT_MAX];
    double v;

    (void)state;
    /* A locale with a decimal comma, where the machine has one; the assertions hold in any. */
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        setlocale(LC_ALL, "");
    assert_int_equal(units_double("1.25", 4, &v), 0);
    assert_true(v == 1.25);
    assert_int_equal(units_double("1.2345678901234567890e-3", 24, &v), 0);
    assert_true(v == 1.2345678901234567890e-3);
    assert_string_equal(units_count(0.25, out), "0.25");
    assert_string_equal(units_bytes(1536, out), "1.5 KB");
    setlocale(LC_ALL, "C");
}

static void test_duration(void **state)
{
    static const struct { const char *text; int64_t ns; } rows[] = {
        { "0.2s", 200 * NS_PER_MS }, { "200ms", 200 * NS_PER_MS }, { "5m", 300 * NS_PER_S }, { "5min", 300 * NS_PER_S },
        { "8h", 28800 * NS_PER_S },  { "7d", 604800 * NS_PER_S },  { "1w", 604800 * NS_PER_S }, { "30", 30 * NS_PER_S },
        { "1.5", 1500 * NS_PER_MS }, { "1us", 1000 },              { "3ns", 3 },             { "5 m", 300 * NS_PER_S },
        { "0.1s", 100 * NS_PER_MS }, { "1e3", 1000 * NS_PER_S },   { "100000d", INT64_C(8640000000) * NS_PER_S },
    };
    static const char *const bad[] = { "", "s", "0", "0s", "-5s", "5x", "5S", "5M", "5ss", "s5", "5  m", "m 5", "nan", "inf",
                                       "1e300d", "200000000d", "0.1ns", "5m ", " 5m", "-", "." };
    int64_t ns = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (units_duration(bad[i], &ns) != LT_EPARSE || ns != 7)
            fail_msg("took %s as %lld", bad[i], (long long)ns);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (units_duration(rows[i].text, &ns) != 0 || ns != rows[i].ns)
            fail_msg("%s: %lld", rows[i].text, (long long)ns);
}

static void test_size(void **state)
{
    static const struct { const char *text; int64_t bytes; } rows[] = {
        { "0", 0 },          { "512", 512 },         { "512B", 512 },       { "64k", 65536 },
        { "64K", 65536 },    { "64KiB", 65536 },     { "64kb", 65536 },     { "512MiB", INT64_C(512) << 20 },
        { "2GB", INT64_C(2) << 30 }, { "2g", INT64_C(2) << 30 }, { "1.5GiB", INT64_C(3) << 29 }, { "1T", INT64_C(1) << 40 },
        { "312 KB", 312 << 10 },     { "0.5k", 512 },
    };
    static const char *const bad[] = { "", "k", "-1", "-1k", "1x", "1kk", "1 kk", "1e30", "9000000T", "nan", "1k ", "1 000" };
    int64_t bytes = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (units_size(bad[i], &bytes) != LT_EPARSE || bytes != 7)
            fail_msg("took %s as %lld", bad[i], (long long)bytes);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (units_size(rows[i].text, &bytes) != 0 || bytes != rows[i].bytes)
            fail_msg("%s: %lld", rows[i].text, (long long)bytes);
}

static void test_bytes_text(void **state)
{
    static const struct { double v; const char *text; } rows[] = {
        { 0, "0 B" },           { 1, "1 B" },           { 0.25, "0.25 B" },        { 12.34, "12.3 B" },
        { 1023, "1023 B" },     { 1024, "1.0 KB" },     { 319488, "312 KB" },      { 1.4 * (1 << 30), "1.4 GB" },
        { -319488, "-312 KB" }, { 1023.6 * 1024, "1.0 MB" }, { 99.96 * 1024, "100 KB" }, { 0x1p60, "1.0 EB" },
        { -0.0, "0 B" },        { NAN, "n/a" },         { INFINITY, "huge" },      { -1e300, "-huge" },
    };
    char out[UNITS_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(units_bytes(rows[i].v, out), rows[i].text);
}

static void test_count_text(void **state)
{
    static const struct { double v; const char *text; } rows[] = {
        { 0, "0" },         { -0.0, "0" },       { 1, "1" },          { 999, "999" },      { 1204, "1,204" },
        { 1234567, "1,234,567" },                { -1204, "-1,204" }, { 0.25, "0.25" },    { 1.5, "1.5" },
        { 12.34, "12.3" },  { 99.96, "100" },    { 123.4, "123" },    { 0.0034, "0.0034" }, { 0.034, "0.034" },
        { 1e-9, "0" },      { -1e-9, "0" },      { 999999.7, "1,000,000" },                { 2e18, "2.00e18" },
        { -2.5e15, "-2.50e15" },                 { NAN, "n/a" },      { INFINITY, "huge" }, { -INFINITY, "-huge" },
        { 999999999999999, "999,999,999,999,999" },
    };
    char out[UNITS_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(units_count(rows[i].v, out), rows[i].text);
}

static void test_time_text(void **state)
{
    static const struct { int64_t ns; const char *text; } rows[] = {
        { 0, "0s" },
        { 5, "5ns" },
        { 1500, "1us" },
        { 45 * NS_PER_MS, "45ms" },
        { 800 * NS_PER_MS, "0.8s" },
        { 9900 * NS_PER_MS, "9.9s" },
        { 45 * NS_PER_S, "45s" },
        { 750 * NS_PER_S, "12m 30s" },
        { 3600 * NS_PER_S, "1h 00m" },
        { (3 * 86400 + 4 * 3600) * NS_PER_S, "3d 04h" },
        { -750 * NS_PER_S, "-12m 30s" },
        { INT64_MAX, "106751d 23h" },
        { INT64_MIN, "-106751d 23h" },
    };
    char out[UNITS_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_string_equal(units_time(rows[i].ns, out), rows[i].text);
}

/* Whatever the value: the texts fit, and sizes typed back are within the digits shown. */
static void test_texts_fit_and_read_back(void **state)
{
    struct random rnd = { 8 };

    (void)state;
    for (int i = 0; i < 50000; i++) {
        uint64_t bits = random_u64(&rnd);
        int64_t size = (int64_t)(bits >> 4 >> random_below(&rnd, 50)), back;
        char out[UNITS_TEXT_MAX];
        double v;

        memcpy(&v, &bits, sizeof v);
        assert_true(strlen(units_bytes(v, out)) < sizeof out - 1);
        assert_true(strlen(units_count(v, out)) < sizeof out - 1);
        assert_true(strlen(units_time((int64_t)bits, out)) < sizeof out - 1);
        size &= (INT64_C(1) << 49) - 1; /* typed sizes end at T */
        assert_int_equal(units_size(units_bytes((double)size, out), &back), 0);
        if (fabs((double)(back - size)) > 0.06 * (double)size)
            fail_msg("%lld is shown as %s and read as %lld", (long long)size, out, (long long)back);
    }
}

HARNESS_MAIN(CASE(test_int), CASE(test_double), CASE(test_double_of_absurd_length), CASE(test_double_roundtrip),
             CASE(test_locale_does_not_matter), CASE(test_duration), CASE(test_size), CASE(test_bytes_text),
             CASE(test_count_text), CASE(test_time_text), CASE(test_texts_fit_and_read_back))
