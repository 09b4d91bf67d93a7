#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

#define DAY_S INT64_C(86400)

static int64_t now_ns(clockid_t id)
{
    struct timespec ts = { 0 };

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_wall_ns(void)
{
    return now_ns(CLOCK_REALTIME);
}

int64_t clock_mono_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

int64_t clock_boot_ns(void)
{
    return now_ns(CLOCK_BOOTTIME);
}

int64_t clock_cpu_ns(void)
{
    return now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Days since 1970-01-01 of a Gregorian date, and back. Years begin in March, so that the leap day is the last day;
 * eras are the 400-year cycles of 146,097 days. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t in_era = y - era * 400;
    int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

struct date {
    int year, month, day;
};

static struct date date_of(int64_t days)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    int month = (int)(mp < 10 ? mp + 3 : mp - 9);

    return (struct date){
        .year = (int)(yoe + era * 400 + (month <= 2)),
        .month = month,
        .day = (int)(doy - (153 * mp + 2) / 5 + 1),
    };
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

const char *clock_rfc3339(int64_t wall_ns, char out[CLOCK_TEXT_MAX])
{
    int64_t s = floor_div(wall_ns, NS_PER_S);
    int64_t ns = wall_ns % NS_PER_S + (wall_ns % NS_PER_S < 0 ? NS_PER_S : 0);
    struct date d = date_of(floor_div(s, DAY_S));
    int sec = (int)(s - floor_div(s, DAY_S) * DAY_S);
    int n;

    if (wall_ns == CLOCK_INVALID) {
        snprintf(out, CLOCK_TEXT_MAX, "-");
        return out;
    }
    n = snprintf(out, CLOCK_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", d.year, d.month, d.day, sec / 3600,
                 sec / 60 % 60, sec % 60);
    if (ns)
        snprintf(out + n, (size_t)(CLOCK_TEXT_MAX - n), ".%03dZ", (int)(ns / NS_PER_MS));
    else
        snprintf(out + n, (size_t)(CLOCK_TEXT_MAX - n), "Z");
    return out;
}

struct cursor {
    const char *p, *end;
};

static bool take(struct cursor *c, char wanted)
{
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

static bool at_digit(const struct cursor *c)
{
    return c->p < c->end && *c->p >= '0' && *c->p <= '9';
}

/* Exactly n digits, lo..hi. */
static bool take_number(struct cursor *c, int n, int lo, int hi, int *ret)
{
    int v = 0;

    for (int i = 0; i < n; i++) {
        if (!at_digit(c))
            return false;
        v = v * 10 + (*c->p++ - '0');
    }
    *ret = v;
    return v >= lo && v <= hi;
}

/* ".5", ".123456789": nanoseconds, digits behind the ninth are dropped. 0 when there is no dot. */
static bool take_fraction(struct cursor *c, int64_t *ret_ns)
{
    int64_t unit = NS_PER_S / 10;

    *ret_ns = 0;
    if (!take(c, '.'))
        return true;
    if (!at_digit(c))
        return false;
    for (; at_digit(c); unit /= 10)
        *ret_ns += (*c->p++ - '0') * unit;
    return true;
}

static bool join(int64_t s, int64_t ns, int64_t *ret)
{
    /* The earliest second has an end but no beginning in 64 bits: count from its end. */
    if (s < 0 && ns > 0) {
        s++;
        ns -= NS_PER_S;
    }
    return !__builtin_mul_overflow(s, NS_PER_S, &s) && !__builtin_add_overflow(s, ns, ret) && *ret != CLOCK_INVALID;
}

static int days_in(int year, int month)
{
    static const int8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return days[month - 1] + (month == 2 && leap);
}

static bool take_date(struct cursor *c, int64_t *ret_days)
{
    int year, month, day;

    if (!take_number(c, 4, 0, 9999, &year) || !take(c, '-') || !take_number(c, 2, 1, 12, &month) || !take(c, '-') ||
        !take_number(c, 2, 1, days_in(year, month), &day))
        return false;
    *ret_days = days_of(year, month, day);
    return true;
}

/* "Z", "+08:00": seconds east of UTC. */
static bool take_offset(struct cursor *c, int *ret_s)
{
    int sign, hours, minutes;

    *ret_s = 0;
    if (take(c, 'Z') || take(c, 'z'))
        return true;
    if (take(c, '+'))
        sign = 1;
    else if (take(c, '-'))
        sign = -1;
    else
        return false;
    if (!take_number(c, 2, 0, 23, &hours) || !take(c, ':') || !take_number(c, 2, 0, 59, &minutes))
        return false;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool take_rfc3339(struct cursor *c, int64_t *ret)
{
    int64_t days, frac_ns, s;
    int hour, minute, sec, offset_s;

    if (!take_date(c, &days) || !(take(c, 'T') || take(c, 't') || take(c, ' ')))
        return false;
    if (!take_number(c, 2, 0, 23, &hour) || !take(c, ':') || !take_number(c, 2, 0, 59, &minute) || !take(c, ':') ||
        !take_number(c, 2, 0, 60, &sec) || !take_fraction(c, &frac_ns) || !take_offset(c, &offset_s))
        return false;
    s = days * DAY_S + hour * 3600 + minute * 60 + sec - offset_s;
    /* A leap second is the last of a UTC day; like the system clock we count it as the first of the next. */
    if (sec == 60 && s % DAY_S != 0)
        return false;
    return join(s, frac_ns, ret);
}

static bool take_epoch(struct cursor *c, int64_t *ret)
{
    bool negative = take(c, '-');
    int64_t s = 0, ns;

    if (!at_digit(c))
        return false;
    for (; at_digit(c); c->p++)
        if (__builtin_mul_overflow(s, 10, &s) || __builtin_add_overflow(s, *c->p - '0', &s))
            return false;
    if (!take_fraction(c, &ns))
        return false;
    return negative ? join(-s, -ns, ret) : join(s, ns, ret);
}

int clock_parse(const char *s, size_t len, int64_t *ret_wall_ns)
{
    struct cursor c = { s, s + len };
    bool dated = len > 4 && s[4] == '-';
    int64_t t;

    if (!(dated ? take_rfc3339(&c, &t) : take_epoch(&c, &t)) || c.p != c.end)
        return LT_EPARSE;
    *ret_wall_ns = t;
    return 0;
}
