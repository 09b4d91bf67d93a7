#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/term.h"
#include "lib/harness.h"

static void test_color_needs_a_terminal(void **state)
{
    int tty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    _cleanup_fd_ int null = fd_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

    (void)state;
    assert_true(tty >= 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    assert_true(term_colored(tty));
    assert_false(term_colored(null));
    setenv("NO_COLOR", "", 1);
    assert_true(term_colored(tty));
    setenv("NO_COLOR", "1", 1);
    assert_false(term_colored(tty));
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    assert_false(term_colored(tty));
    unsetenv("TERM");
    assert_false(term_colored(tty));
    fd_close(tty);
}

static void test_size(void **state)
{
    int tty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    struct winsize w = { .ws_row = 50, .ws_col = 132 };

    (void)state;
    assert_int_equal(ioctl(tty, TIOCSWINSZ, &w), 0);
    assert_int_equal(term_width(tty), 132);
    assert_int_equal(term_height(tty), 50);
    w = (struct winsize){ 0 };
    assert_int_equal(ioctl(tty, TIOCSWINSZ, &w), 0);
    assert_int_equal(term_width(tty), 100);
    assert_int_equal(term_width(-1), 100);
    assert_int_equal(term_height(-1), 24);
    fd_close(tty);
}

static void test_sequences(void **state)
{
    (void)state;
    assert_string_equal(term_on(TERM_RED, false), "");
    assert_string_equal(term_on(TERM_PLAIN, true), "");
    assert_string_equal(term_on(TERM_RED, true), "\033[31m");
    assert_string_equal(term_on((enum term_color)99, true), "");
    assert_string_equal(term_off(true), "\033[0m");
    assert_string_equal(term_off(false), "");
}

static void test_sparkline(void **state)
{
    static const double rising[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, constant[] = { 5, 5 }, gap[] = { 0, NAN, 1 };
    static const double wild[] = { -1e308, 1e308, INFINITY, 0 };
    char out[3 * 16 + 1];

    (void)state;
    setenv("LC_ALL", "C.UTF-8", 1);
    term_sparkline(rising, 8, 8, out);
    assert_string_equal(out, "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588");
    term_sparkline(rising, 8, 4, out); /* the last of each pair */
    assert_string_equal(out, "\u2582\u2584\u2586\u2588");
    term_sparkline(constant, 2, 2, out);
    assert_string_equal(out, "\u2581\u2581");
    term_sparkline(constant, 2, 4, out); /* stretched */
    assert_string_equal(out, "\u2581\u2581\u2581\u2581");
    term_sparkline(gap, 3, 3, out);
    assert_string_equal(out, "\u2581 \u2588");
    term_sparkline(gap, 0, 3, out);
    assert_string_equal(out, "   ");
    term_sparkline(rising, 8, 0, out);
    assert_string_equal(out, "");
    term_sparkline(wild, 4, 4, out); /* the span overflows a double */
    assert_string_equal(out, "\u2581\u2588 \u2585");
    setenv("LC_ALL", "C", 1);
    term_sparkline(rising, 8, 8, out);
    assert_string_equal(out, "_.,-=+*#");
    unsetenv("LC_ALL");
    unsetenv("LC_CTYPE");
    setenv("LANG", "en_US.utf8", 1);
    term_sparkline(constant, 1, 1, out);
    assert_string_equal(out, "\u2581");
    unsetenv("LANG");
    term_sparkline(constant, 1, 1, out);
    assert_string_equal(out, "_");
}

HARNESS_MAIN(CASE(test_color_needs_a_terminal), CASE(test_size), CASE(test_sequences), CASE(test_sparkline))
