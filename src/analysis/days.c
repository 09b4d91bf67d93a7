/* Floors day by day: whole days that end now, and the low window of each (methods.md: "Does it ebb?", 2.6). */
#include "analysis/parts.h"
#include "analysis/stats.h"
#include "base/clock.h"
#include "base/mem.h"

#define HOUR_NS (3600 * NS_PER_S)
#define DAY_NS (24 * HOUR_NS)
#define COVERED 0.7 /* share of a day that must have been sampled */

static size_t lower_bound(const struct curve *c, int64_t ts)
{
    size_t lo = c->from, hi = c->to;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (c->track->ts_ns[mid] < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct day day_of(const struct curve *c, struct work *w, int64_t begin, int64_t length, double interval_s)
{
    size_t a = lower_bound(c, begin), b = lower_bound(c, begin + length);
    double expected = (double)length / 1e9 / MAX(interval_s, 1e-3);
    struct day d = { .begin_ns = begin, .floor = curve_floor(c, w, a, b, 0.1) };

    d.usable = !isnan(d.floor) && (double)curve_points(c, a, b) >= COVERED * expected;
    return d;
}

/* Days that end with the window: as many whole ones as there are, the newest DAYS_MAX. */
static void whole_days(struct days *d, const struct curve *c, struct work *w, double interval_s)
{
    int64_t end = c->track->ts_ns[c->to - 1], first = c->track->ts_ns[c->from];
    /* Half an hour short is still a day: samplers do not begin on the second. */
    size_t n = (size_t)((end - first + HOUR_NS / 2) / DAY_NS);

    d->n = MIN(n, (size_t)DAYS_MAX);
    for (size_t i = 0; i < d->n; i++)
        d->day[i] = day_of(c, w, end - (int64_t)(d->n - i) * DAY_NS, DAY_NS, interval_s);
}

static double traffic_at(const struct series *s, const struct curve *c, int64_t from, int64_t to)
{
    size_t a = lower_bound(c, from), b = lower_bound(c, to);

    return b > a + 1 ? s->sum.req[b - 1] - s->sum.req[a] : 0;
}

/* The service's own quietest three hours of the local day, by requests, else 02:00-05:00. */
static void choose_low(struct days *d, const struct series *s, const struct curve *c, int64_t utc_offset_ns)
{
    int64_t first = c->track->ts_ns[c->from], end = c->track->ts_ns[c->to - 1];
    double hour[24] = { 0 }, least = (double)INFINITY, peak = 0;
    int at = 2;

    d->low_from_min = 2 * 60;
    d->low_usable = true;
    if (!s->sum.req || !(s->requests > 0))
        goto out;
    d->low_traffic_known = true;
    for (int64_t t = first; t + HOUR_NS <= end; t += HOUR_NS)
        hour[(((t + utc_offset_ns) / HOUR_NS) % 24 + 24) % 24] += traffic_at(s, c, t, t + HOUR_NS);
    for (int h = 0; h < 24; h++) {
        double three = hour[h] + hour[(h + 1) % 24] + hour[(h + 2) % 24];

        peak = MAX(peak, 3 * hour[h]);
        if (three < least) {
            least = three;
            at = h;
        }
    }
    d->low_from_min = at * 60;
    d->low_usable = least < 0.1 * peak;
out:
    d->low_to_min = (d->low_from_min + 180) % 1440;
}

static void low_windows(struct days *d, const struct curve *c, struct work *w, double interval_s, int64_t utc_offset_ns)
{
    int64_t first = c->track->ts_ns[c->from], end = c->track->ts_ns[c->to - 1];
    int64_t begin = (first + utc_offset_ns) / DAY_NS * DAY_NS - utc_offset_ns + (int64_t)d->low_from_min * 60 * NS_PER_S;

    for (; begin + 3 * HOUR_NS <= end + HOUR_NS / 12 && d->low_n < DAYS_MAX; begin += DAY_NS)
        if (begin >= first)
            d->low[d->low_n++] = day_of(c, w, begin, 3 * HOUR_NS, interval_s);
}

void days_measure(struct days *d, const struct series *s, const struct curve *c, struct work *w, int64_t utc_offset_ns)
{
    size_t points = curve_points(c, c->from, c->to);
    double interval_s;

    *d = (struct days){ 0 };
    if (points < 10)
        return;
    /* The distance of this column's own points, with holes left out of account by taking the grid's where it is denser. */
    interval_s = s->interval_s * MAX(1.0, (double)(c->to - c->from) / (double)points);
    whole_days(d, c, w, interval_s);
    choose_low(d, s, c, utc_offset_ns);
    low_windows(d, c, w, interval_s, utc_offset_ns);
}
