#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "lib/harness.h"

static void test_set_fills_and_returns(void **state)
{
    struct err e = { 0 };

    (void)state;
    assert_int_equal(err_set(&e, LT_EIO, "%s: %d", "what", 7), LT_EIO);
    assert_int_equal(e.code, LT_EIO);
    assert_string_equal(e.text, "what: 7");
    assert_int_equal(err_set(NULL, LT_EUSAGE, "nobody listens"), LT_EUSAGE);
}

static void test_long_text_is_cut(void **state)
{
    struct err e;
    char text[2000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err_set(&e, LT_EIO, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
    err_errno(&e, LT_EIO, EIO, "%s", text);
    assert_int_equal(strlen(e.text), sizeof e.text - 1);
}

static void test_errno_has_reason(void **state)
{
    struct err e;

    (void)state;
    assert_int_equal(err_errno(&e, LT_EIO, ENOENT, "%s", "/x"), LT_EIO);
    assert_string_equal(e.text, "/x: No such file or directory");
    assert_int_equal(err_errno(NULL, LT_EIO, ENOSPC, "x"), LT_EFULL);
}

static void test_errno_maps(void **state)
{
    static const struct { int errnum, code; } rows[] = {
        { ENOSPC, LT_EFULL }, { EDQUOT, LT_EFULL },  { EACCES, LT_EPERM },   { EPERM, LT_EPERM },
        { ESRCH, LT_GONE },   { ENOMEM, LT_ENOMEM }, { EIO, LT_ENODATA },    { 0, LT_ENODATA },
    };
    struct err e;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(err_errno(&e, LT_ENODATA, rows[i].errnum, "x"), rows[i].code);
        assert_int_equal(e.code, rows[i].code);
    }
}

static void test_table(void **state)
{
    static const int codes[] = {
#define X(code, name, text, exit_status) code,
        LT_ERRORS(X)
#undef X
    };

    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        int exit_status = err_exit_status(codes[i]);

        assert_true(exit_status == 2 || exit_status == 3);
        assert_true(strncmp(err_name(codes[i]), "LT_", 3) == 0);
        assert_true(err_sentence(codes[i])[0]);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(codes[i], codes[j]);
    }
    assert_string_equal(err_name(LT_EIO), "LT_EIO");
    assert_int_equal(err_exit_status(LT_EUSAGE), 2);
    assert_int_equal(err_exit_status(LT_ENODATA), 3);
    assert_int_equal(err_exit_status(LT_OK), 0);
    assert_string_equal(err_name(LT_OK), "LT_OK");
}

static void test_unknown_codes_still_fail(void **state)
{
    (void)state;
    assert_int_equal(err_exit_status(-999), 3);
    assert_int_equal(err_exit_status(1), 3);
    assert_non_null(err_name(-999));
    assert_non_null(err_sentence(-999));
}

HARNESS_MAIN(CASE(test_set_fills_and_returns), CASE(test_long_text_is_cut), CASE(test_errno_has_reason),
             CASE(test_errno_maps), CASE(test_table), CASE(test_unknown_codes_still_fail))
