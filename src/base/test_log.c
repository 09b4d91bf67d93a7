#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "lib/harness.h"

/* What fn writes to stderr. */
static const char *stderr_of(void (*fn)(void))
{
    static char text[4096];
    int ends[2], kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    ssize_t n;

    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    fn();
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    n = read(ends[0], text, sizeof text - 1);
    text[n < 0 ? 0 : n] = '\0';
    fd_close(ends[0]);
    fd_close(ends[1]);
    fd_close(kept);
    return text;
}

static void say_all(void)
{
    log_warn("w %d", 1);
    log_info("i %d", 2);
    log_debug("d %d", 3);
}

static void test_levels(void **state)
{
    (void)state;
    log_setup("watch", LOG_QUIET);
    assert_string_equal(stderr_of(say_all), "");
    log_setup("watch", LOG_WARN);
    assert_string_equal(stderr_of(say_all), "lowtide watch: w 1\n");
    log_setup("watch", LOG_INFO);
    assert_string_equal(stderr_of(say_all), "lowtide watch: w 1\nlowtide watch: i 2\n");
    log_setup(NULL, LOG_DEBUG);
    assert_string_equal(stderr_of(say_all), "lowtide: w 1\nlowtide: i 2\nlowtide: d 3\n");
}

static void say_control(void)
{
    log_warn("%s", "a\033[2Jb\nc");
}

static void say_long(void)
{
    char text[3000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_warn("%s", text);
}

static void test_one_safe_line(void **state)
{
    const char *text;

    (void)state;
    log_setup("status", LOG_WARN);
    assert_string_equal(stderr_of(say_control), "lowtide status: a?[2Jb?c\n");
    text = stderr_of(say_long);
    assert_true(strlen(text) > 500 && strlen(text) <= 1024);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

HARNESS_MAIN(CASE(test_levels), CASE(test_one_safe_line))
