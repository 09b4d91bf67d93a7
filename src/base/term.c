#include "base/term.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

bool term_colored(int fd)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return !(no_color && no_color[0]) && term && term[0] && !str_eq(term, "dumb") && isatty(fd);
}

int term_width(int fd)
{
    struct winsize w;

    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 100;
}

int term_height(int fd)
{
    struct winsize w;

    return ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_row ? w.ws_row : 24;
}

const char *term_on(enum term_color c, bool colored)
{
    static const char *const on[] = {
        [TERM_PLAIN] = "",          [TERM_BOLD] = "\033[1m",    [TERM_DIM] = "\033[2m",   [TERM_RED] = "\033[31m",
        [TERM_GREEN] = "\033[32m",  [TERM_YELLOW] = "\033[33m", [TERM_CYAN] = "\033[36m",
    };

    return colored && (size_t)c < ARRAY_SIZE(on) ? on[c] : "";
}

const char *term_off(bool colored)
{
    return colored ? "\033[0m" : "";
}

/* The character set of the environment's locale, by its name: it counts even where that locale is not installed. */
static bool locale_is_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const char *v = getenv(names[i]);

        if (v && v[0])
            return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
    }
    return false;
}

void term_sparkline(const double *v, size_t n, size_t cells, char *out)
{
    bool utf8 = locale_is_utf8();
    double lo = INFINITY, hi = -INFINITY;
    size_t at = 0;

    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) {
            lo = MIN(lo, v[i]);
            hi = MAX(hi, v[i]);
        }
    for (size_t i = 0; i < cells; i++) {
        double value = n ? v[((i + 1) * n + cells - 1) / cells - 1] : NAN;
        double share = hi > lo ? (value / 2 - lo / 2) / (hi / 2 - lo / 2) : 0; /* halves: the span may be over a double */
        int level = isfinite(value) ? (int)MIN(share * 8, 7.0) : -1;

        if (level < 0) {
            out[at++] = ' ';
        } else if (utf8) {
            out[at++] = (char)0xe2;
            out[at++] = (char)0x96;
            out[at++] = (char)(0x81 + level);
        } else {
            out[at++] = "_.,-=+*#"[level];
        }
    }
    out[at] = '\0';
}
