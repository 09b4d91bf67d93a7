#include "base/units.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define NUMBER_TEXT_MAX 400 /* longer numbers are refused: no tool prints them */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int units_int(const char *s, size_t len, int64_t *ret)
{
    bool negative = len && s[0] == '-';
    size_t i = len && (s[0] == '-' || s[0] == '+');
    int64_t v = 0;

    if (i == len)
        return LT_EPARSE;
    for (; i < len; i++) {
        int digit = s[i] - '0';

        if (!is_digit(s[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, negative ? -digit : digit, &v))
            return LT_EPARSE;
    }
    *ret = v;
    return 0;
}

/* A decimal taken apart: mantissa * 10^exponent, exact while digits <= 18. */
struct decimal {
    uint64_t mantissa;
    int exponent;
    int digits; /* significant ones, leading zeros left out */
    bool negative;
};

static size_t scan_digits(const char *s, size_t len, size_t i, struct decimal *d, int exponent_step)
{
    for (; i < len && is_digit(s[i]); i++) {
        if (d->digits < 18)
            d->mantissa = d->mantissa * 10 + (uint64_t)(s[i] - '0');
        d->digits += d->mantissa || d->digits;
        d->exponent += exponent_step;
    }
    return i;
}

/* "e-7" at s[i]: false when there is an e without digits. Huge exponents are clamped: they are 0 or too big anyway. */
static bool scan_exponent(const char *s, size_t len, size_t *at, struct decimal *d)
{
    size_t i = *at;
    bool negative;
    int e = 0;

    if (i == len || (s[i] != 'e' && s[i] != 'E'))
        return true;
    i++;
    negative = i < len && s[i] == '-';
    i += i < len && (s[i] == '-' || s[i] == '+');
    if (i == len || !is_digit(s[i]))
        return false;
    for (; i < len && is_digit(s[i]); i++)
        e = MIN(e * 10 + (s[i] - '0'), 100000);
    d->exponent += negative ? -e : e;
    *at = i;
    return true;
}

/* The longest number at the beginning of s: bytes of it, 0 when there is none. */
static size_t scan_decimal(const char *s, size_t len, struct decimal *ret)
{
    struct decimal d = { .negative = len && s[0] == '-' };
    size_t begin = len && (s[0] == '-' || s[0] == '+');
    size_t i = scan_digits(s, len, begin, &d, 0);
    size_t whole = i - begin;

    if (i < len && s[i] == '.') {
        size_t frac = i + 1;

        i = scan_digits(s, len, frac, &d, -1);
        if (!whole && i == frac)
            return 0;
    } else if (!whole) {
        return 0;
    }
    if (!scan_exponent(s, len, &i, &d))
        return 0;
    *ret = d;
    return i;
}

/* The value of scanned text. With at most 15 digits and a power of ten up to 22 both are exact doubles, and one
 * division or multiplication rounds once: right to the last bit. The rest is for the C library, in the "C" locale. */
static int decimal_value(const struct decimal *d, const char *s, size_t len, double *ret)
{
    static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[NUMBER_TEXT_MAX + 1];
    locale_t c_locale;
    double v;

    if (d->digits <= 15 && d->exponent >= -22 && d->exponent <= 22) {
        v = d->exponent < 0 ? (double)d->mantissa / tens[-d->exponent] : (double)d->mantissa * tens[d->exponent];
        *ret = d->negative ? -v : v;
        return 0;
    }
    if (len > NUMBER_TEXT_MAX)
        return LT_EPARSE;
    memcpy(text, s, len);
    text[len] = '\0';
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc's own object: no allocation, nothing to free */
    if (!c_locale)
        return LT_ENOMEM;
    v = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    if (!isfinite(v))
        return LT_EPARSE;
    *ret = v;
    return 0;
}

int units_double(const char *s, size_t len, double *ret)
{
    struct decimal d;

    if (!len || scan_decimal(s, len, &d) != len)
        return LT_EPARSE;
    return decimal_value(&d, s, len, ret);
}

struct unit {
    const char *name;
    double factor;
};

static const struct unit duration_units[] = {
    { "", 1e9 },      { "ns", 1 },     { "us", 1e3 },    { "ms", 1e6 },      { "s", 1e9 },
    { "m", 60e9 },    { "min", 60e9 }, { "h", 3600e9 },  { "d", 86400e9 },   { "w", 604800e9 },
};

#define KIB 1024.0
static const struct unit size_units[] = {
    { "", 1 },
    { "B", 1 },
    { "K", KIB },
    { "KB", KIB },
    { "KIB", KIB },
    { "M", KIB * KIB },
    { "MB", KIB * KIB },
    { "MIB", KIB * KIB },
    { "G", KIB * KIB * KIB },
    { "GB", KIB * KIB * KIB },
    { "GIB", KIB * KIB * KIB },
    { "T", KIB * KIB * KIB * KIB },
    { "TB", KIB * KIB * KIB * KIB },
    { "TIB", KIB * KIB * KIB * KIB },
};

/* Number and unit to whole steps of the smallest unit, 0 <= result < 2^63. */
static int parse_quantity(const char *s, const struct unit *units, size_t n, bool any_case, int64_t *ret)
{
    size_t len = strlen(s);
    struct decimal d;
    size_t used = scan_decimal(s, len, &d);
    const char *name = s + used;
    double v;
    int r;

    if (!used)
        return LT_EPARSE;
    r = decimal_value(&d, s, used, &v);
    if (r < 0)
        return r;
    if (*name == ' ')
        name++;
    for (size_t i = 0; i < n; i++) {
        if ((any_case ? strcasecmp(name, units[i].name) : strcmp(name, units[i].name)) != 0)
            continue;
        v = round(v * units[i].factor);
        if (!(v >= 0) || v >= 0x1p63)
            return LT_EPARSE;
        *ret = (int64_t)v;
        return 0;
    }
    return LT_EPARSE;
}

int units_duration(const char *s, int64_t *ret_ns)
{
    int64_t ns;
    int r = parse_quantity(s, duration_units, ARRAY_SIZE(duration_units), false, &ns);

    if (r < 0)
        return r;
    if (ns <= 0)
        return LT_EPARSE;
    *ret_ns = ns;
    return 0;
}

int units_size(const char *s, int64_t *ret_bytes)
{
    return parse_quantity(s, size_units, ARRAY_SIZE(size_units), true, ret_bytes);
}

/* v >= 0 with `decimals` places and no locale; v * 10^decimals must be below 2^63. */
static size_t put_fixed(char *out, size_t size, double v, int decimals)
{
    static const double tens[] = { 1, 10, 100, 1e3, 1e4, 1e5, 1e6 };
    int64_t scale = (int64_t)tens[decimals];
    int64_t steps = (int64_t)round(v * tens[decimals]);

    if (!decimals)
        return str_fmt(out, size, "%lld", (long long)steps);
    return str_fmt(out, size, "%lld.%0*lld", (long long)(steps / scale), decimals, (long long)(steps % scale));
}

const char *units_bytes(double bytes, char out[UNITS_TEXT_MAX])
{
    static const char *const names[] = { "B", "KB", "MB", "GB", "TB", "PB", "EB" };
    double v = fabs(bytes);
    size_t unit = 0, n;
    int decimals;

    if (!isfinite(bytes) || v >= 0x1p73) {
        str_fmt(out, UNITS_TEXT_MAX, isnan(bytes) ? "n/a" : bytes < 0 ? "-huge" : "huge");
        return out;
    }
    /* 1023.6 KB would round to 1024 KB: it is 1.0 MB already. */
    for (; unit + 1 < ARRAY_SIZE(names) && v >= (unit ? 1023.5 : 1024); unit++)
        v /= 1024;
    if (unit == 0)
        decimals = v == round(v) ? 0 : v < 10 ? 2 : 1;
    else
        decimals = v < 99.95 ? 1 : 0;
    n = bytes < 0 ? str_copy(out, UNITS_TEXT_MAX, "-") : 0;
    n += put_fixed(out + n, UNITS_TEXT_MAX - n, v, decimals);
    str_fmt(out + n, UNITS_TEXT_MAX - n, " %s", names[unit]);
    return out;
}

/* 1204 -> "1,204". v < 1e15. */
static size_t put_grouped(char *out, size_t size, int64_t v)
{
    char digits[24];
    size_t n = str_fmt(digits, sizeof digits, "%lld", (long long)v);
    size_t at = 0;

    for (size_t i = 0; i < n && at + 2 < size; i++) {
        if (i && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return at;
}

/* Places to show: two significant digits of small numbers, none of a hundred and more. */
static int count_decimals(double v)
{
    if (v >= 99.95 || v == round(v))
        return 0;
    if (v >= 9.995)
        return 1;
    if (v >= 0.0995)
        return 2;
    return v >= 0.00995 ? 3 : v >= 0.000995 ? 4 : 6;
}

const char *units_count(double n, char out[UNITS_TEXT_MAX])
{
    double v = fabs(n);
    size_t at = n < 0 ? 1 : 0;
    int decimals = count_decimals(v);

    out[0] = '-';
    if (isnan(n)) {
        str_copy(out, UNITS_TEXT_MAX, "n/a");
    } else if (v >= 1e15) {
        int exponent = isfinite(v) ? (int)floor(log10(v)) : 0;
        size_t w = isfinite(v) ? put_fixed(out + at, UNITS_TEXT_MAX - at, v / pow(10, exponent), 2) : 0;

        str_fmt(out + at + w, UNITS_TEXT_MAX - at - w, isfinite(v) ? "e%d" : "huge", exponent);
    } else if (!decimals) {
        put_grouped(out + at, UNITS_TEXT_MAX - at, (int64_t)round(v));
    } else {
        size_t end = at + put_fixed(out + at, UNITS_TEXT_MAX - at, v, decimals);

        while (out[end - 1] == '0')
            out[--end] = '\0';
        if (out[end - 1] == '.')
            out[--end] = '\0';
    }
    return str_eq(out, "-0") ? str_copy(out, UNITS_TEXT_MAX, "0"), out : out;
}

const char *units_time(int64_t ns, char out[UNITS_TEXT_MAX])
{
    uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    unsigned long long s = v / (uint64_t)NS_PER_S;
    const char *sign = ns < 0 ? "-" : "";

    if (s >= 86400)
        str_fmt(out, UNITS_TEXT_MAX, "%s%llud %02lluh", sign, s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        str_fmt(out, UNITS_TEXT_MAX, "%s%lluh %02llum", sign, s / 3600, s / 60 % 60);
    else if (s >= 60)
        str_fmt(out, UNITS_TEXT_MAX, "%s%llum %02llus", sign, s / 60, s % 60);
    else if (s >= 10 || v == 0)
        str_fmt(out, UNITS_TEXT_MAX, "%s%llus", sign, s);
    else if (v >= (uint64_t)(100 * NS_PER_MS))
        str_fmt(out, UNITS_TEXT_MAX, "%s%llu.%llus", sign, s, (unsigned long long)(v / 100000000 % 10));
    else if (v >= (uint64_t)NS_PER_MS)
        str_fmt(out, UNITS_TEXT_MAX, "%s%llums", sign, (unsigned long long)(v / 1000000));
    else if (v >= (uint64_t)NS_PER_US)
        str_fmt(out, UNITS_TEXT_MAX, "%s%lluus", sign, (unsigned long long)(v / 1000));
    else
        str_fmt(out, UNITS_TEXT_MAX, "%s%lluns", sign, (unsigned long long)v);
    return out;
}
