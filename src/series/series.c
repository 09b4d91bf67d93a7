#include "series/series.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "series/parts.h"

int series_new(struct series **ret, const char *target, int64_t from_ns, int64_t to_ns)
{
    struct series *s = mem_zalloc(1, sizeof *s);

    if (!s)
        return LT_ENOMEM;
    str_copy(s->target, sizeof s->target, target);
    str_printable(s->target);
    s->from_ns = from_ns;
    s->to_ns = to_ns;
    s->grid_step = 1;
    s->requests = (double)NAN;
    s->life_at = s->bin_at = SIZE_MAX;
    vec_init(&s->lives, sizeof(struct series_life), SERIES_LIVES_MAX);
    vec_init(&s->epochs, sizeof(struct series_epoch), SERIES_EPOCHS_MAX);
    vec_init(&s->events, sizeof(struct series_event), SERIES_EVENTS_MAX);
    vec_init(&s->gaps, sizeof(struct series_gap), SERIES_GAPS_MAX);
    vec_init(&s->times, sizeof(int64_t), TIMES_MAX);
    vec_init(&s->reqs, sizeof(struct series_request), REQUESTS_MAX);
    *ret = s;
    return 0;
}

void column_release(struct column *c)
{
    if (c->mid != c->floor)
        mem_free(c->mid);
    if (c->max != c->floor)
        mem_free(c->max);
    mem_free(c->floor);
    *c = (struct column){ 0 };
}

static void track_release(struct track *t)
{
    for (int m = 0; m < METRIC_N; m++)
        column_release(&t->col[m]);
}

void series_free(struct series *s)
{
    if (!s)
        return;
    VEC_EACH(struct series_life, l, &s->lives) {
        if (l->own)
            track_release(l->own);
        mem_free(l->own);
    }
    track_release(&s->sum);
    vec_release(&s->lives);
    vec_release(&s->epochs);
    vec_release(&s->events);
    vec_release(&s->gaps);
    vec_release(&s->times);
    vec_release(&s->reqs);
    mem_free(s->req);
    mem_free(s->gather);
    mem_free(s);
}

static int full_or_oom(const struct vec *v)
{
    return v->n >= v->max ? LT_ELIMIT : LT_ENOMEM;
}

/* As of the window's end this life still ran; its last values then are those of its last point (series_point). */
static void forget_later(const struct series *s, struct series_life *l)
{
    l->end = (struct life_end){ .wall_ns = CLOCK_INVALID, .cause = LIFE_RUNNING };
    l->last_ns = s->to_ns;
    l->cut = true;
    for (int m = 0; m < METRIC_N; m++)
        l->last[m] = METRIC_NA;
}

static bool may_go(const struct series_life *l)
{
    return !l->whole && l->end.cause != LIFE_RUNNING;
}

/* More lives than are kept; they come oldest first, and the newest are what a verdict is about. Those go that ran for less
 * than a ten-thousandth of the window; when that is of little help, those of the older half that have ended. */
static void forget_passing(struct series *s)
{
    struct series_life *l = s->lives.items;
    int64_t passing = s->to_ns / 10000 - s->from_ns / 10000;
    size_t n = s->lives.n, kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!may_go(&l[i]) || (l[i].first_ns != CLOCK_INVALID && l[i].last_ns - l[i].first_ns >= passing))
            l[kept++] = l[i];
    if (kept > n / 8 * 7) {
        n = kept;
        kept = 0;
        for (size_t i = 0; i < n; i++)
            if (!may_go(&l[i]) || i >= n / 2)
                l[kept++] = l[i];
    }
    s->lives.n = kept;
}

int series_life(struct series *s, const struct life_row *row)
{
    struct series_life *l;

    if (s->lives.n == s->lives.max)
        forget_passing(s);
    l = vec_push(&s->lives);
    if (!l)
        return full_or_oom(&s->lives);
    l->id = row->id;
    l->key = row->info.key;
    l->ppid = row->info.ppid;
    l->start_ns = row->info.start_wall_ns;
    l->first_ns = row->first_ns;
    l->last_ns = row->last_ns;
    l->end = row->end;
    str_copy(l->comm, sizeof l->comm, row->info.comm);
    str_copy(l->role, sizeof l->role, row->info.role);
    str_printable(l->comm); /* from a store that anybody may have made */
    str_printable(l->role);
    l->samples = row->samples;
    memcpy(l->first, row->first, sizeof l->first);
    memcpy(l->last, row->last, sizeof l->last);
    l->whole = l->key.pid == 0;
    if (l->last_ns != CLOCK_INVALID && l->last_ns > s->to_ns)
        forget_later(s, l);
    return 0;
}

/* Full: the oldest quarter goes. The newest are what a step of now is put down to. */
static void forget_events(struct vec *events)
{
    size_t gone = events->n / 4 + 1;

    events->n -= gone;
    memmove(events->items, vec_at(events, gone), events->n * events->item_size);
}

int series_event(struct series *s, const struct event_row *row)
{
    struct series_event *e;

    if (s->events.n >= s->events.max)
        forget_events(&s->events);
    e = vec_push(&s->events);
    if (!e)
        return LT_ENOMEM;
    e->ts_ns = row->ts_ns;
    str_copy(e->kind, sizeof e->kind, row->kind);
    str_copy(e->text, sizeof e->text, row->text);
    str_printable(e->kind); /* cut in the middle of a character they are no text, which JSON does not take */
    str_printable(e->text);
    return 0;
}

/* Gaps less than near_ns apart become one: what lies between them is trusted no more, which errs on the safe side. */
static void join_gaps(struct vec *gaps, double near_ns)
{
    struct series_gap *g = gaps->items;
    size_t kept = 0;

    for (size_t i = 1; i < gaps->n; i++) {
        if ((double)g[i].from_ns - (double)g[kept].to_ns <= near_ns) { /* they come in time order */
            g[kept].to_ns = MAX(g[kept].to_ns, g[i].to_ns);
            g[kept].from_ns = MIN(g[kept].from_ns, g[i].from_ns);
        } else {
            g[++kept] = g[i];
        }
    }
    gaps->n = kept + 1;
}

int series_gap(struct series *s, const struct gap_row *row)
{
    struct series_gap gap = { row->from_ns, row->to_ns };

    if (s->gaps.n == s->gaps.max)
        for (double near_ns = 1e9; s->gaps.n > s->gaps.max / 4 * 3; near_ns *= 2)
            join_gaps(&s->gaps, near_ns);
    return vec_append(&s->gaps, &gap);
}

/* Drops every second moment once full: the grid is thinned to SERIES_POINTS_MAX in the end anyway. */
static void thin_times(struct vec *times)
{
    int64_t *t = times->items;
    size_t n = 0;

    for (size_t i = 0; i < times->n; i += 2)
        t[n++] = t[i];
    times->n = n;
}

int series_time(struct series *s, int64_t ts_ns)
{
    if (ts_ns < s->from_ns || ts_ns > s->to_ns)
        return 0;
    if (s->times.n >= s->times.max)
        thin_times(&s->times);
    return vec_append(&s->times, &ts_ns);
}

double series_requests_between(const struct track *t, size_t from, size_t to)
{
    if (!t->req || to <= from || to > t->n)
        return (double)NAN;
    return t->req[to - 1] - t->req[from];
}
