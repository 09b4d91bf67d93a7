#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

bool str_eq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

size_t str_copy(char *dst, size_t size, const char *src)
{
    size_t len = strlen(src);

    if (size) {
        size_t n = MIN(len, size - 1);

        memcpy(dst, src, n);
        dst[n] = '\0';
    }
    return len;
}

size_t str_fmt(char *dst, size_t size, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (!size)
        return 0;
    va_start(ap, fmt);
    n = vsnprintf(dst, size, fmt, ap);
    va_end(ap);
    if (n < 0) {
        dst[0] = '\0';
        return 0;
    }
    return MIN((size_t)n, size - 1);
}

bool slice_eq(struct slice a, const char *b)
{
    return strlen(b) == a.len && (!a.len || memcmp(a.p, b, a.len) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct slice slice_trim(struct slice s)
{
    while (s.len && is_space(s.p[0])) {
        s.p++;
        s.len--;
    }
    while (s.len && is_space(s.p[s.len - 1]))
        s.len--;
    return s;
}

bool slice_next(struct slice *rest, char sep, struct slice *ret_part)
{
    const char *at;

    if (!rest->p)
        return false;
    at = rest->len ? memchr(rest->p, sep, rest->len) : NULL;
    if (!at) {
        *ret_part = *rest;
        *rest = (struct slice){ NULL, 0 };
        return true;
    }
    *ret_part = (struct slice){ rest->p, (size_t)(at - rest->p) };
    rest->len -= ret_part->len + 1;
    rest->p = at + 1;
    return true;
}

size_t str_fold_digits(const char *s, size_t len, char *out, size_t size)
{
    size_t n = 0;
    bool in_run = false;

    if (!size)
        return 0;
    for (size_t i = 0; i < len && n < size - 1; i++) {
        bool digit = s[i] >= '0' && s[i] <= '9';

        if (!digit)
            out[n++] = s[i];
        else if (!in_run)
            out[n++] = '#';
        in_run = digit;
    }
    out[n] = '\0';
    return n;
}

/* One code point at s: its bytes 1..4, or 0 when what stands there is not UTF-8 (overlong, surrogate, cut short). */
static size_t utf8_decode(const unsigned char *s, uint32_t *ret)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = s[0] < 0x80 ? 1 : (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : (s[0] & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fU >> n);

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (!n || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return n;
}

/* What would steer the terminal, or turn the order of what follows. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

void str_printable(char *s)
{
    unsigned char *p = (unsigned char *)s;

    while (*p) {
        uint32_t c;
        size_t n = utf8_decode(p, &c);

        if (n && !is_control(c)) {
            p += n;
            continue;
        }
        for (n = n ? n : 1; n; n--)
            *p++ = '?';
    }
}

struct range {
    uint32_t first, last;
};

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n && r[i].first <= c; i++)
        if (c <= r[i].last)
            return true;
    return false;
}

/* East Asian Width W and F (Unicode 15, blocks merged where nothing narrow lies between), and marks of no width. */
static const struct range wide[] = {
    { 0x1100, 0x115f },   { 0x231a, 0x231b },   { 0x2329, 0x232a },   { 0x23e9, 0x23ec },   { 0x2614, 0x2615 },
    { 0x2648, 0x2653 },   { 0x26a1, 0x26a1 },   { 0x2705, 0x2705 },   { 0x2728, 0x2728 },   { 0x274c, 0x274c },
    { 0x2753, 0x2755 },   { 0x2795, 0x2797 },   { 0x2e80, 0x303e },   { 0x3041, 0x33ff },   { 0x3400, 0x4dbf },
    { 0x4e00, 0xa4cf },   { 0xa960, 0xa97c },   { 0xac00, 0xd7a3 },   { 0xf900, 0xfaff },   { 0xfe10, 0xfe19 },
    { 0xfe30, 0xfe6b },   { 0xff01, 0xff60 },   { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
    { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
};

static const struct range zero[] = {
    { 0x0300, 0x036f }, { 0x0483, 0x0489 }, { 0x0591, 0x05bd }, { 0x0610, 0x061a }, { 0x064b, 0x065f },
    { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x200b, 0x200f }, { 0x20d0, 0x20ff }, { 0x302a, 0x302d },
    { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f }, { 0xfeff, 0xfeff },
};

size_t str_width(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    size_t cells = 0;

    while (*p) {
        uint32_t c;
        size_t n = utf8_decode(p, &c);

        if (!n) { /* a terminal shows one replacement sign for a bad byte */
            cells++;
            p++;
            continue;
        }
        p += n;
        if (is_control(c) || in_ranges(zero, ARRAY_SIZE(zero), c))
            continue;
        cells += in_ranges(wide, ARRAY_SIZE(wide), c) ? 2 : 1;
    }
    return cells;
}
