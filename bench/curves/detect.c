#include "detect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "output/output.h"

static const enum metric_id metric_of[V_N] = { METRIC_RSS_ANON, METRIC_HEAP_USED, METRIC_FDS, METRIC_THREADS, METRIC_CHILDREN,
    METRIC_CONNECTIONS, METRIC_TMPFILES };

struct feed {
    const struct curve *c;
    const struct detect_options *o;
    struct series *s;
    int64_t from_ns, to_ns;
    struct life_row *lives;  /* one a life of the curve, and the target's own */
    size_t index[LIVES_OF_CASE];
};

static void blank(struct point_values v[METRIC_N])
{
    for (int m = 0; m < METRIC_N; m++)
        v[m] = (struct point_values){ METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA };
}

static void fill(const struct feed *f, const struct row *r, bool whole, struct point_values v[METRIC_N])
{
    blank(v);
    for (int i = 0; i < V_N; i++)
        if ((i == V_TMPFILES) == whole && !(i == V_HEAP && f->o->no_heap))
            v[metric_of[i]] = (struct point_values){ r->v[i], r->v[i], r->v[i], r->v[i], r->v[i] };
}

static void note(struct life_row *l, int64_t ts_ns, const struct point_values v[METRIC_N])
{
    if (!l->samples++) {
        l->first_ns = ts_ns;
        for (int m = 0; m < METRIC_N; m++)
            l->first[m] = v[m].first;
    }
    l->last_ns = ts_ns;
    for (int m = 0; m < METRIC_N; m++)
        l->last[m] = v[m].last;
}

static void describe_life(struct feed *f, size_t i)
{
    const struct curve_life *l = &f->c->lives[i];
    struct life_row *row = &f->lives[i];

    row->id = (int64_t)i + 1;
    row->info.key.pid = l->pid;
    row->info.key.start = (uint64_t)(l->start_ns / 10000000);
    row->info.ppid = l->ppid;
    row->info.start_wall_ns = l->start_ns;
    if (l->end_ns < f->to_ns)
        row->end = (struct life_end){ l->end_ns, l->oom ? LIFE_OOM : LIFE_EXITED, 0, 0 };
}

static void feed_lives(struct feed *f)
{
    struct point_values v[METRIC_N];
    size_t n = 0, whole = f->c->nlives;

    for (size_t i = 0; i < f->c->nrows; i++) {
        const struct row *r = &f->c->rows[i];

        if (r->ts_ns >= f->to_ns)
            continue;
        fill(f, r, false, v);
        note(&f->lives[r->life], r->ts_ns, v);
        if (f->c->lives[r->life].ppid)
            continue;
        MUST(series_time(f->s, r->ts_ns));
        fill(f, r, true, v);
        note(&f->lives[whole], r->ts_ns, v);
    }
    for (size_t i = 0; i < whole; i++)
        if (f->lives[i].samples) {
            describe_life(f, i);
            f->index[i] = n++;
            MUST(series_life(f->s, &f->lives[i]));
        }
    f->lives[whole].id = 1000000;
    MUST(series_life(f->s, &f->lives[whole]));
}

static void feed_points(struct feed *f)
{
    size_t whole = 0;

    for (size_t i = 0; i < f->c->nlives; i++)
        whole += f->lives[i].samples > 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < f->c->nrows; i++) {
            const struct row *r = &f->c->rows[i];
            struct point p = { r->ts_ns, 1, 0 };
            struct point_values v[METRIC_N];

            if (r->ts_ns >= f->to_ns || (pass && f->c->lives[r->life].ppid))
                continue;
            fill(f, r, pass, v);
            MUST(series_point(f->s, pass ? whole : f->index[r->life], &p, v));
        }
}

static void feed_rest(struct feed *f)
{
    const struct curve *c = f->c;

    for (size_t b = 0; b < c->nbins && !f->o->no_requests; b++) {
        int64_t ts = f->from_ns + (int64_t)llround((double)b * c->bin_s * 1e9), n = 0;

        for (size_t e = 0; e < c->endpoints; e++)
            n += c->requests[b * ENDPOINTS_MAX + e];
        if (ts + (int64_t)(c->bin_s * 1e9) <= f->to_ns)
            MUST(series_request(f->s, ts, n));
    }
    for (size_t i = 0; i < c->nevents; i++)
        if (c->events[i].ts_ns < f->to_ns)
            MUST(series_event(f->s, &(struct event_row){ 1, c->events[i].ts_ns, c->events[i].kind, "" }));
    for (size_t i = 0; i < c->ngaps; i++)
        if (c->gaps[i].from_ns < f->to_ns)
            MUST(series_gap(f->s, &(struct gap_row){ c->gaps[i].from_ns, c->gaps[i].to_ns, "watch" }));
}

struct series *detect_series(const struct curve *c, const struct detect_options *o)
{
    struct feed *f = mem_zalloc(1, sizeof *f);
    struct series *s;
    double span = o->cut_s > 0 ? o->cut_s : c->options.days * DAY_S + 121; /* a clock step may reach past the end */

    MUST(!f || !(f->lives = mem_zalloc(c->nlives + 1, sizeof *f->lives)));
    f->c = c;
    f->o = o;
    f->from_ns = c->lives[0].start_ns;
    f->to_ns = f->from_ns + (int64_t)(span * 1e9);
    MUST(series_new(&f->s, "api", f->from_ns, f->to_ns));
    feed_lives(f);
    feed_rest(f);
    MUST(series_plan(f->s));
    feed_points(f);
    MUST(series_finish(f->s));
    s = f->s;
    mem_free(f->lives);
    mem_free(f);
    return s;
}

struct outcome detect(const struct series *s, struct buf *explain)
{
    struct outcome o = { VERDICT_INSUFFICIENT, VERDICT_N, VERDICT_N, CLASS_FLAT, 0 };
    struct analysis_options options = { 0 };
    struct analysis *a = NULL;
    struct verdict *v = NULL;
    int64_t begin = clock_mono_ns();

    MUST(analysis_run(&a, s, &options) || verdict_decide(&v, a));
    o.ms = (double)(clock_mono_ns() - begin) / 1e6;
    o.verdict = v->verdict;
    o.class = v->class;
    for (size_t i = 0; i < v->n; i++) {
        if (v->series[i].finding->metric == METRIC_RSS_ANON)
            o.rss = v->series[i].verdict;
        if (v->series[i].finding->metric == METRIC_HEAP_USED)
            o.heap = v->series[i].verdict;
    }
    if (explain)
        MUST(output_text(explain, v, &(struct output_options){ .explain = true }));
    verdict_free(v);
    analysis_free(a);
    return o;
}
