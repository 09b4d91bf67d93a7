/* What time a sweep is stamped with, and whether the time since the last one can be trusted. Pure: the clocks are passed in. */
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/watch/watching.h"

#define HOLE_INTERVALS 3                /* a sweep later than so many intervals left a hole ... */
#define HOLE_MIN_NS (5 * NS_PER_S)      /* ... when it is at least this long */
#define STEP_MIN_NS NS_PER_S            /* a clock set by less is drift */
#define STAMP_MIN_NS NS_PER_MS          /* two sweeps are at least this far apart: the store counts in ms */

struct clock_reading clock_reading_now(void)
{
    return (struct clock_reading){ clock_wall_ns(), clock_boot_ns(), clock_mono_ns() };
}

void sweep_clock_init(struct sweep_clock *c, int64_t interval_ns, int64_t last_stamp_ns)
{
    *c = (struct sweep_clock){ .interval_ns = interval_ns, .stamp_ns = last_stamp_ns };
}

static void gap(struct sweep_gap *g, int64_t from, int64_t to, const char *what, int64_t how_long)
{
    char text[UNITS_TEXT_MAX];
    *g = (struct sweep_gap){ .from_ns = from, .to_ns = to, .any = true };
    str_fmt(g->why, sizeof g->why, "%s %s", what, units_time(how_long, text));
}

static int64_t hole(const struct sweep_clock *c)
{
    return MAX(HOLE_INTERVALS * c->interval_ns, HOLE_MIN_NS);
}

/* The first sweep of this watch, behind what an earlier one left in the store. That nothing was watched in between is
 * known to the store itself. */
static int64_t first_stamp(const struct sweep_clock *c, int64_t wall, struct sweep_gap *g)
{
    if (c->stamp_ns == CLOCK_INVALID)
        return wall;
    if (wall <= c->stamp_ns) {
        gap(g, c->stamp_ns, c->stamp_ns + STAMP_MIN_NS, "the clock is behind the last sweep by", c->stamp_ns - wall);
        return c->stamp_ns + STAMP_MIN_NS;
    }
    return MAX(wall, c->stamp_ns + STAMP_MIN_NS);
}

static int64_t next_stamp(const struct sweep_clock *c, const struct clock_reading *now, struct sweep_gap *g)
{
    int64_t wall = now->wall_ns - c->last.wall_ns, boot = now->boot_ns - c->last.boot_ns;
    int64_t asleep = boot - (now->mono_ns - c->last.mono_ns), step = wall - boot;
    int64_t behind = c->stamp_ns + MAX(boot / 2, STAMP_MIN_NS);
    int64_t stamp = now->wall_ns > c->stamp_ns ? MAX(now->wall_ns, c->stamp_ns + STAMP_MIN_NS) : behind;
    if (now->wall_ns <= c->stamp_ns)
        gap(g, c->stamp_ns, stamp, "the clock was set back; it is behind the last sweep by", c->stamp_ns - now->wall_ns);
    else if (step < -MAX(STEP_MIN_NS, c->interval_ns / 2))
        gap(g, c->stamp_ns, stamp, "the clock was set back by", -step);
    else if (step > MAX(STEP_MIN_NS, c->interval_ns / 2))
        gap(g, c->stamp_ns, stamp, "the clock was set forward by", step);
    else if (asleep > MAX(STEP_MIN_NS, c->interval_ns / 2))
        gap(g, c->stamp_ns, stamp, "the machine slept for", asleep);
    else if (boot > hole(c))
        gap(g, c->stamp_ns, stamp, "the watcher was held up for", boot);
    return stamp;
}

int64_t sweep_clock_next(struct sweep_clock *c, const struct clock_reading *now, struct sweep_gap *ret_gap)
{
    *ret_gap = (struct sweep_gap){ .any = false };
    int64_t stamp = c->started ? next_stamp(c, now, ret_gap) : first_stamp(c, now->wall_ns, ret_gap);
    c->behind = stamp - now->wall_ns > STAMP_MIN_NS;
    c->started = true;
    c->stamp_ns = stamp;
    c->last = *now;
    return stamp;
}
