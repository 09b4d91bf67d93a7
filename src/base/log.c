#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

static struct {
    char verb[32];
    enum log_level level;
} setup = { .level = LOG_WARN };

void log_setup(const char *verb, enum log_level level)
{
    str_copy(setup.verb, sizeof setup.verb, verb ? verb : "");
    setup.level = level;
}

/* One write, so that lines of several threads or processes do not mix; control bytes of foreign names are defused. */
__attribute__((format(printf, 2, 0))) static void line(enum log_level level, const char *fmt, va_list ap)
{
    char text[1024];
    size_t n;
    int w;

    if (level > setup.level)
        return;
    n = str_fmt(text, sizeof text, "lowtide%s%s: ", setup.verb[0] ? " " : "", setup.verb);
    w = vsnprintf(text + n, sizeof text - n - 1, fmt, ap);
    if (w < 0)
        return;
    str_printable(text);
    n += (size_t)w < sizeof text - n - 1 ? (size_t)w : sizeof text - n - 2;
    text[n] = '\n';
    fd_write_all(STDERR_FILENO, text, n + 1);
}

void log_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    line(LOG_WARN, fmt, ap);
    va_end(ap);
}

void log_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    line(LOG_INFO, fmt, ap);
    va_end(ap);
}

void log_debug(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    line(LOG_DEBUG, fmt, ap);
    va_end(ap);
}
