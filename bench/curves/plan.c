/* Draws a case: see README.md for the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* n moments within the window, ascending. */
static void moments(struct stream *s, double *at, size_t n, double from_s, double to_s)
{
    for (size_t i = 0; i < n; i++)
        at[i] = draw_between(s, from_s, to_s);
    qsort(at, n, sizeof *at, by_time);
}

static size_t whole(struct stream *s, double lo, double hi)
{
    return (size_t)floor(draw_between(s, lo, hi + 1));
}

static void plan_traffic(struct plan *p, struct curve *c, struct stream *s)
{
    double sum = 0;

    p->begin_h = draw_between(s, 0, 24);
    p->weekday = (int)(draw(s) * 7);
    p->rps = draw_log(s, 0.5, 50);
    p->peak_h = draw_between(s, 13.5, 15.5);
    p->trough = draw_between(s, 0.04, 0.35);
    p->weekend = draw_between(s, 0.4, 1);
    p->mix_sd = (double[]){ 0.05, 0.15, 0.4 }[(int)(draw(s) * 3)];
    c->endpoints = whole(s, 3, ENDPOINTS_MAX);
    for (size_t e = 0; e < c->endpoints; e++) { /* Dirichlet(1.5): a gamma is an exponential and half a chi square */
        double z = draw_normal(s);

        p->mix[e] = -log(1 - draw(s)) + z * z / 2;
        sum += p->mix[e];
    }
    for (size_t e = 0; e < c->endpoints; e++)
        p->mix[e] /= sum;
}

static void plan_memory(struct plan *p, struct stream *s)
{
    p->base = draw_log(s, 150e6, 3e9);
    p->flight = draw_between(s, 0.01, 0.25) * p->base;
    p->busy = fmax(4, p->rps * draw_log(s, 0.05, 5));
    p->still = draw(s) < 0.25;
    p->noise = draw_log(s, 0.0015, 0.02) * p->base;
    p->rho = draw_between(s, 0.74, 0.99);
    p->warm = draw_between(s, 0, 0.1) * p->base;
    p->warm_requests = draw_between(s, 300, 3600) * p->rps;
    p->kept = draw_between(s, 0.3, 0.98);
    p->release_s = draw_log(s, 600, 7200);
    p->quantum = (double[]){ 4096, 135168, 1 << 20, 4 << 20, 64 << 20 }[(int)(draw(s) * 5)];
    p->onset_s = (double)NAN;
    p->fds = floor(draw_between(s, 10, 120));
    p->threads = floor(draw_between(s, 2, 40));
    p->thread_pool = draw(s) < 0.5 ? 32 : 0;
    p->children = draw(s) < 0.25 ? draw_between(s, 0.2, 4) : 0;
    p->pool = floor(draw_between(s, 0, 60));
    p->pool_requests = draw_between(s, 600, 7200) * p->rps;
}

static void plan_jumps(struct plan *p, struct stream *s, size_t n, double lo, double hi, double span)
{
    double at[STEPS_OF_CASE];

    moments(s, at, n, 0.1 * span, 0.9 * span);
    for (size_t i = 0; i < n; i++)
        p->jumps[p->njumps++] = (struct jump){ at[i], draw_between(s, lo, hi) * p->base };
}

static void plan_ok(struct plan *p, struct curve *c, struct stream *s, double span)
{
    switch (c->options.family) {
    case FAMILY_FLAT:
        p->trough = draw_between(s, 0.8, 1);
        p->weekend = 1;
        p->flight *= 0.2;
        break;
    case FAMILY_DIURNAL:
        p->flight = draw_between(s, 0.1, 0.4) * p->base;
        break;
    case FAMILY_GC_SAW:
        p->saw = draw_between(s, 0.05, 0.5) * p->base;
        p->saw_period_s = draw_log(s, 600, 10800);
        break;
    case FAMILY_OU:
        p->wander = draw_between(s, 0.01, 0.05) * p->base;
        p->wander_s = draw_log(s, 7200, 43200);
        break;
    case FAMILY_CRON:
        p->spike = draw_between(s, 0.1, 0.8) * p->base;
        p->spike_every_s = 3600 * (double[]){ 1, 6, 24 }[(int)(draw(s) * 3)];
        p->spike_s = draw_between(s, 300, 1200);
        p->spike_at_s = draw(s) * p->spike_every_s;
        break;
    case FAMILY_DEPLOYS:
        p->nrestarts = whole(s, 3, 15);
        moments(s, p->restart_at_s, p->nrestarts, 0.02 * span, 0.98 * span);
        break;
    case FAMILY_AUTOSCALE:
        p->workers = whole(s, 2, 5);
        break;
    case FAMILY_TRAFFIC_GROWTH:
        p->growth = draw_between(s, 0.03, 0.12);
        break;
    default:
        break;
    }
}

static void plan_bounded(struct plan *p, struct curve *c, struct stream *s, double span)
{
    switch (c->options.family) {
    case FAMILY_STEP:
    case FAMILY_STEP_EVENT:
        plan_jumps(p, s, 1, 0.05, 0.4, span);
        break;
    case FAMILY_MULTI_STEP:
        plan_jumps(p, s, whole(s, 2, 4), 0.04, 0.25, span);
        break;
    case FAMILY_WARMUP:
        p->slow = draw_between(s, 0.1, 0.6) * p->base;
        p->slow_tau_s = draw_log(s, 1800, 72000);
        break;
    case FAMILY_CACHE_BOUND:
        p->cache = draw_between(s, 0.1, 0.8) * p->base;
        p->cache_full_s = draw_between(s, 0.08, 0.55) * span;
        p->ttl_s = draw(s) < 0.3 ? draw_log(s, 3600, 43200) : 0;
        break;
    case FAMILY_FRAG_LOG:
        p->frag = draw_between(s, 0.05, 0.3) * p->base;
        p->frag_tau_s = draw_log(s, 1800, 18000);
        break;
    case FAMILY_RETENTION:
        p->nbursts = whole(s, 3, 15);
        moments(s, p->burst_at_s, p->nbursts, 0.01 * span, 0.95 * span);
        p->burst = draw_between(s, 0.1, 0.5) * p->base;
        p->arena = draw_between(s, 0.1, 0.4) * p->base;
        p->arena_bursts = draw_between(s, 1, 5);
        break;
    default:
        break;
    }
}

static void plan_lives(struct plan *p, struct curve *c, struct stream *s, double span)
{
    double first = fmod(28 - p->begin_h, 24) * 3600; /* 04:00 */

    switch (c->options.family) {
    case FAMILY_SAW_OOM:
        /* What a busy moment takes is below the limit: only the leak reaches it. */
        p->busy = fmax(p->busy, 16);
        p->limit = draw_between(s, 0.25, 0.8) * p->base;
        p->size = p->limit * draw_between(s, 6, 18) / p->base * 7 / c->options.days;
        p->limit += p->base + p->warm + 1.3 * p->flight * (1 + 4 / sqrt(p->busy)) + 8 * p->noise + p->quantum;
        break;
    case FAMILY_SAW_DAILY:
        for (double t = first; t < span; t += DAY_S)
            p->restart_at_s[p->nrestarts++] = fmax(t, 60);
        break;
    case FAMILY_SAW_MAXREQ:
        p->max_requests = 1 / draw_between(s, 3, 20); /* a share of all; made a number when the traffic is known */
        break;
    case FAMILY_EXT_BASE:
    case FAMILY_EXT_SAW:
        p->nrestarts = whole(s, 5, 14);
        for (size_t i = 0; i < p->nrestarts; i++)
            p->restart_at_s[i] = span * ((double)i + draw_between(s, 0.6, 1.4)) / (double)(p->nrestarts + 1);
        p->ext = p->size;
        p->size = c->options.family == FAMILY_EXT_SAW ? draw_log(s, 0.08, 2) : 0;
        break;
    default:
        break;
    }
}

static void plan_leak(struct plan *p, struct curve *c, struct stream *s, double span)
{
    p->size = draw_log(s, 0.08, 2);
    p->onset_s = 0;
    p->share = 0;
    p->weight = draw_between(s, 0.3, 1);
    switch (c->options.family) {
    case FAMILY_CANCEL_ONLY: p->share = draw_log(s, 0.01, 0.1); break;
    case FAMILY_STREAM_ONLY: p->share = draw_between(s, 0.2, 0.6); break;
    case FAMILY_VERSION_ONLY: p->share = draw_between(s, 0.05, 0.2); break;
    case FAMILY_LATE_CREEP: p->onset_s = draw_between(s, 0.2, 0.6) * span; break;
    case FAMILY_STEP_CREEP: plan_jumps(p, s, whole(s, 1, 2), 0.05, 0.3, span); break;
    case FAMILY_DIURNAL_HIDDEN: p->flight = draw_between(s, 0.25, 0.6) * p->base; break;
    case FAMILY_STAIR:
        p->nstairs = whole(s, 6, 28);
        for (size_t i = 0; i < p->nstairs; i++) /* one in each n-th of the time: a stair that stops early is no leak anybody could call */
            p->stair_at_s[i] = span * ((double)i + draw_between(s, 0.1, 0.9)) / (double)p->nstairs;
        break;
    default: break;
    }
    plan_lives(p, c, s, span);
}

void plan_case(struct plan *p, struct curve *c)
{
    struct stream s = stream_of(&c->options, 1);
    double span = c->options.days * DAY_S;
    enum truth truth = family_truth(c->options.family);

    *p = (struct plan){ 0 };
    plan_traffic(p, c, &s);
    plan_memory(p, &s);
    s = stream_of(&c->options, 2);
    if (truth == TRUTH_OK)
        plan_ok(p, c, &s, span);
    else if (truth < TRUTH_CREEP)
        plan_bounded(p, c, &s, span);
    else if (truth < TRUTH_COUNT)
        plan_leak(p, c, &s, span);
    else {
        double about = p->rps * 0.45 * span; /* requests; at most 20,000 things left, at least 30 */

        p->count_leak = fmin(fmax(1 / draw_log(&s, 10, 10000), 30 / about), 20000 / about);
        p->onset_s = 0;
    }
    if (draw(&s) < 0.15)
        c->label.modifier = MODIFIER_GAPS + (enum modifier)(draw(&s) * (MODIFIER_N - 1));
}
