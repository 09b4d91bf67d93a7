#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "lib/harness.h"
#include "lib/random.h"

static void test_compare(void **state)
{
    (void)state;
    assert_true(str_eq("a", "a"));
    assert_false(str_eq("a", "ab"));
    assert_true(str_starts("abc", "ab"));
    assert_true(str_starts("abc", ""));
    assert_false(str_starts("a", "ab"));
    assert_true(slice_eq((struct slice){ "abc", 2 }, "ab"));
    assert_false(slice_eq((struct slice){ "abc", 2 }, "abc"));
    assert_true(slice_eq((struct slice){ NULL, 0 }, ""));
}

static void test_copy_and_fmt(void **state)
{
    char out[4] = "zzz";

    (void)state;
    assert_int_equal(str_copy(out, sizeof out, "ab"), 2);
    assert_string_equal(out, "ab");
    assert_int_equal(str_copy(out, sizeof out, "abcdef"), 6);
    assert_string_equal(out, "abc");
    assert_int_equal(str_copy(out, 0, "x"), 1);
    assert_string_equal(out, "abc");
    assert_int_equal(str_fmt(out, sizeof out, "%d", 12345), 3);
    assert_string_equal(out, "123");
    assert_int_equal(str_fmt(out, sizeof out, "%d", 7), 1);
    assert_int_equal(str_fmt(out, 0, "%d", 9), 0);
    assert_string_equal(out, "7");
    assert_int_equal(str_fmt(out, 1, "%d", 9), 0);
    assert_string_equal(out, "");
}

static void test_trim(void **state)
{
    (void)state;
    assert_true(slice_eq(slice_trim((struct slice){ " \t a b\r\n", 8 }), "a b"));
    assert_true(slice_eq(slice_trim((struct slice){ "   ", 3 }), ""));
    assert_true(slice_eq(slice_trim((struct slice){ "", 0 }), ""));
    assert_true(slice_eq(slice_trim((struct slice){ "x", 1 }), "x"));
}

static void test_next(void **state)
{
    struct slice rest = { "a,,bc,", 6 }, part;

    (void)state;
    assert_true(slice_next(&rest, ',', &part) && slice_eq(part, "a"));
    assert_true(slice_next(&rest, ',', &part) && slice_eq(part, ""));
    assert_true(slice_next(&rest, ',', &part) && slice_eq(part, "bc"));
    assert_true(slice_next(&rest, ',', &part) && slice_eq(part, ""));
    assert_false(slice_next(&rest, ',', &part));
    rest = (struct slice){ "", 0 };
    assert_true(slice_next(&rest, ',', &part) && slice_eq(part, ""));
    assert_false(slice_next(&rest, ',', &part));
    rest = (struct slice){ NULL, 0 };
    assert_false(slice_next(&rest, ',', &part));
}

static void test_fold_digits(void **state)
{
    char out[64];
    const char *s = "/tmp/job-123/x7.wav";

    (void)state;
    assert_int_equal(str_fold_digits(s, strlen(s), out, sizeof out), 17);
    assert_string_equal(out, "/tmp/job-#/x#.wav");
    assert_int_equal(str_fold_digits("12345", 5, out, sizeof out), 1);
    assert_int_equal(str_fold_digits("abc", 3, out, 3), 2);
    assert_string_equal(out, "ab");
    assert_int_equal(str_fold_digits("", 0, out, 1), 0);
    assert_int_equal(str_fold_digits("a", 1, out, 0), 0);
}

static void test_printable(void **state)
{
    static const struct { const char *in, *out; } rows[] = {
        { "plain", "plain" },
        { "", "" },
        { "a\033[31mb\n\t\x7f", "a?[31mb???" },
        { "h\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80", "h\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80" },
        { "\xff\xfe", "??" },
        { "\xc3", "?" },                      /* cut short */
        { "\xc0\xaf", "??" },                 /* overlong slash */
        { "\xed\xa0\x80", "???" },            /* surrogate */
        { "\xf4\x90\x80\x80", "????" },       /* above U+10FFFF */
        { "\xc2\x9b" "31m", "??31m" },        /* C1 control sequence introducer */
        { "a\xe2\x80\xae" "b", "a???b" },     /* right-to-left override */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[64];

        str_copy(text, sizeof text, rows[i].in);
        str_printable(text);
        assert_string_equal(text, rows[i].out);
    }
}

/* Random bytes: no control byte is left, the length stays, and a second pass changes nothing. */
static void test_printable_of_anything(void **state)
{
    struct random rnd = { 9 };

    (void)state;
    for (int round = 0; round < 5000; round++) {
        char text[33], again[33];
        size_t len = random_below(&rnd, sizeof text);

        for (size_t i = 0; i < len; i++)
            text[i] = (char)(1 + random_below(&rnd, 255));
        text[len] = '\0';
        str_printable(text);
        assert_int_equal(strlen(text), len);
        for (size_t i = 0; i < len; i++)
            assert_true((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
        str_copy(again, sizeof again, text);
        str_printable(again);
        assert_string_equal(again, text);
    }
}

static void test_width(void **state)
{
    static const struct { const char *text; size_t cells; } rows[] = {
        { "", 0 }, { "abc", 3 }, { "h\xc3\xa9", 2 }, { "\xe4\xb8\xad\xe6\x96\x87", 4 }, { "\xe2\x96\x81\xe2\x96\x88", 2 },
        { "e\xcc\x81", 1 }, { "\xf0\x9f\x98\x80", 2 }, { "\xef\xbc\xa1", 2 }, { "a\nb", 2 }, { "\xff", 1 }, { "\xed\x95\x9c", 2 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        assert_int_equal(str_width(rows[i].text), rows[i].cells);
}

HARNESS_MAIN(CASE(test_compare), CASE(test_copy_and_fmt), CASE(test_trim), CASE(test_next), CASE(test_fold_digits),
             CASE(test_printable), CASE(test_printable_of_anything), CASE(test_width))
