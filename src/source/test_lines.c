#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/lines.h"

struct seen {
    char text[512];
    int left; /* lines wanted */
};

static bool note(void *ctx, const char *line, size_t len)
{
    struct seen *s = ctx;
    size_t at = strlen(s->text);

    str_fmt(s->text + at, sizeof s->text - at, "[%.*s]", (int)len, line);
    return --s->left != 0;
}

static void check(const char *text, size_t buffer_size, int wanted, const char *expect)
{
    struct seen s = { "", wanted };
    char buffer[64], path[300];

    str_fmt(path, sizeof path, "%s/text", harness_tmpdir());
    assert_int_equal(fd_write_file(path, text, strlen(text)), 0);
    int fd = fd_open(AT_FDCWD, path, O_RDONLY, 0);
    assert_int_equal(lines_each(fd, buffer, buffer_size, note, &s), 0);
    close(fd);
    assert_string_equal(s.text, expect);
}

static void test_lines(void **state)
{
    (void)state;
    check("", 8, -1, "");
    check("a\nbc\n\nd", 8, -1, "[a][bc][][d]");
    check("a\nbc\n\nd", 8, 2, "[a][bc]");
    check("1234567\nx\n", 8, -1, "[1234567][x]");
    check("12345678\nx\n", 8, -1, "[x]");           /* with its end it does not fit */
    check("1234567812345678123\nx\n", 8, -1, "[x]");
    check("a\n123456789", 8, -1, "[a]");             /* a long last line */
    check("a\nbcdefg\nhijkl\nmn", 8, -1, "[a][bcdefg][hijkl][mn]");
}

static void test_read_error(void **state)
{
    struct seen s = { "", -1 };
    char buffer[64];
    int fd = fd_open(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);

    (void)state;
    assert_true(lines_each(fd, buffer, sizeof buffer, note, &s) < 0);
    close(fd);
}

HARNESS_MAIN(CASE(test_lines), CASE(test_read_error))
