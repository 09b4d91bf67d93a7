#include "lib/synth.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define BEGIN_NS (INT64_C(1790000000) * NS_PER_S)

double synth_uniform(struct random *r)
{
    return (double)(random_u64(r) >> 11) * 0x1p-53;
}

double synth_between(struct random *r, double lo, double hi)
{
    return lo + (hi - lo) * synth_uniform(r);
}

double synth_normal(struct random *r)
{
    return sqrt(-2 * log(1 - synth_uniform(r))) * cos(2 * M_PI * synth_uniform(r));
}

double synth_poisson(struct random *r, double mean)
{
    double n = 0, p = 1, limit = exp(-mean);

    if (mean > 60)
        return fmax(0, round(mean + sqrt(mean) * synth_normal(r)));
    for (p = synth_uniform(r); p > limit; p *= synth_uniform(r))
        n++;
    return n;
}

struct synth synth_plain(uint64_t seed)
{
    return (struct synth){ .seed = seed, .seconds = 420, .interval_s = 1, .rps = 20, .base = 80e6, .fds = 24, .threads = 6, .latency_s = 0.1 };
}

static void draw_memory(struct synth *c, struct random *r)
{
    double total = c->rps * (c->seconds - c->head_s - c->tail_s);

    c->base = exp(synth_between(r, log(30e6), log(2e9)));
    c->warm = synth_between(r, 0, 0.25) * c->base;
    c->warm_requests = synth_between(r, 0.005, 0.06) * total;
    c->inflight = synth_between(r, 0, 0.02) * c->base / fmax(1, c->rps * c->latency_s);
    c->noise = synth_between(r, 0.0005, 0.006) * c->base;
    c->rho = synth_between(r, 0.5, 0.97);
    if (synth_uniform(r) < 0.4) {
        c->collect = synth_between(r, 0.005, 0.06) * c->base;
        c->collect_requests = synth_between(r, 0.004, 0.03) * total;
    }
    if (synth_uniform(r) < 0.4) {
        c->cache = synth_between(r, 0.01, 0.2) * c->base;
        c->cache_requests = synth_between(r, 0.02, 0.4) * total;
    }
    if (synth_uniform(r) < 0.6)
        c->chunk = (double[]){ 4096, 135168, 1 << 20, 1 << 22 }[random_below(r, 4)];
    if (synth_uniform(r) < 0.1)
        c->spike = synth_between(r, 0.02, 0.2) * c->base;
}

static void draw_counts(struct synth *c, struct random *r)
{
    double total = c->rps * (c->seconds - c->head_s - c->tail_s);

    c->fds = floor(synth_between(r, 8, 200));
    c->threads = floor(synth_between(r, 1, 40));
    c->latency_s = exp(synth_between(r, log(0.005), log(2)));
    c->pool = floor(synth_between(r, 0, 120));
    c->pool_requests = synth_between(r, 0.005, 0.3) * total;
    c->thread_pool = synth_uniform(r) < 0.6 ? 40 : 0;
    c->late_fd_s = synth_uniform(r) < 0.3 ? synth_between(r, 0.3, 0.95) * c->seconds : 0;
    c->slow_children = synth_uniform(r) < 0.3 ? synth_between(r, 0.2, 6) : 0;
}

struct synth synth_healthy(uint64_t seed)
{
    struct random r = { seed * 2654435761u + 17 };
    struct synth c = synth_plain(seed);

    c.seconds = exp(synth_between(&r, log(90), log(3600)));
    c.interval_s = fmax(0.2, c.seconds / synth_between(&r, 120, 900));
    c.rps = exp(synth_between(&r, log(3), log(300)));
    c.tail_s = synth_uniform(&r) < 0.5 ? synth_between(&r, 0.08, 0.25) * c.seconds : 0;
    c.head_s = synth_uniform(&r) < 0.5 ? synth_between(&r, 0.02, 0.1) * c.seconds : 0;
    c.no_requests = synth_uniform(&r) < 0.15;
    draw_counts(&c, &r);
    draw_memory(&c, &r);
    return c;
}

struct synth synth_healthy_days(uint64_t seed)
{
    struct random r = { seed * 2654435761u + 91 };
    struct synth c = synth_plain(seed);
    double total;

    c.seconds = 86400 * floor(synth_between(&r, 3, 9)) + 600;
    c.interval_s = c.seconds / 3000;
    c.rps = exp(synth_between(&r, log(0.5), log(50)));
    c.day_low = synth_between(&r, 0.04, 0.35);
    c.no_requests = synth_uniform(&r) < 0.15;
    draw_counts(&c, &r);
    draw_memory(&c, &r);
    c.inflight = synth_between(&r, 0.01, 0.25) * c.base / fmax(1, c.rps * c.latency_s);
    total = c.rps * c.seconds * 0.5;
    c.warm_requests = synth_between(&r, 0.005, 0.12) * total;
    c.cache_requests = synth_between(&r, 0.08, 0.55) * total;
    c.pool_requests = synth_between(&r, 0.0005, 0.01) * total;
    if (synth_uniform(&r) < 0.2) {
        c.restart_s = c.seconds / synth_between(&r, 2, 12);
        c.warm_requests *= c.restart_s / c.seconds;
        c.cache_requests *= c.restart_s / c.seconds;
    }
    c.drop = synth_uniform(&r) < 0.15 ? 0.2 : 0;
    return c;
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

struct state {
    const struct synth *c;
    struct random r;
    double t, requests, rate, inflight, noise, held, high, born_s, born_requests;
    double leaked_fd, leaked_socket, leaked_thread, leaked_child, leaked_zombie, leaked_tmp, leaked_shm;
    double children, cpu_ns;
};

static double rate_at(const struct synth *c, double t)
{
    double busy = c->seconds - c->head_s - c->tail_s, share = (t - c->head_s) / busy, rate = c->rps;

    if (share < 0 || share >= 1)
        return 0;
    if (c->ramp > 0)
        rate *= 1 + (c->ramp - 1) * share;
    if (c->day_low > 0)
        rate *= c->day_low + (1 - c->day_low) * 0.5 * (1 - cos(2 * M_PI * t / 86400));
    return rate;
}

static double add_leak(struct state *s, double per_request, double n)
{
    return per_request == floor(per_request) ? per_request * n : synth_poisson(&s->r, per_request * n);
}

static void take_step(struct state *s)
{
    const struct synth *c = s->c;
    double n;

    s->t += c->interval_s;
    s->rate = rate_at(c, s->t);
    n = s->rate > 0 ? synth_poisson(&s->r, s->rate * c->interval_s) : 0;
    s->requests += n;
    s->inflight = s->rate > 0 ? synth_poisson(&s->r, s->rate * c->latency_s) : 0;
    s->high = fmax(s->high, s->inflight);
    s->noise = c->rho * s->noise + sqrt(1 - c->rho * c->rho) * c->noise * synth_normal(&s->r);
    s->leaked_fd += add_leak(s, c->fd_leak, n);
    s->leaked_socket += add_leak(s, c->socket_leak, n);
    s->leaked_thread += add_leak(s, c->thread_leak, n);
    s->leaked_child += add_leak(s, c->child_leak, n);
    s->leaked_zombie += add_leak(s, c->zombie_leak, n);
    s->leaked_tmp += add_leak(s, c->tmp_leak, n);
    s->leaked_shm += add_leak(s, c->shm_leak, n);
    s->children = s->rate > 0 ? synth_poisson(&s->r, c->slow_children) : 0;
    s->cpu_ns += (n * 2e6 + c->interval_s * 1e6) * synth_between(&s->r, 0.8, 1.2);
    if (c->restart_s > 0 && s->t - s->born_s >= c->restart_s) {
        s->born_s = s->t;
        s->born_requests = s->requests;
        s->leaked_fd = s->leaked_socket = s->leaked_thread = s->leaked_child = s->leaked_zombie = s->high = s->held = s->cpu_ns = 0;
    }
}

static double memory(struct state *s)
{
    const struct synth *c = s->c;
    double n = s->requests - s->born_requests, v = c->base + s->noise + c->inflight * s->inflight;

    if (c->warm > 0)
        v += c->warm * (1 - exp(-n / c->warm_requests));
    if (c->collect > 0)
        v += c->collect * fmod(n, c->collect_requests) / c->collect_requests;
    if (c->cache > 0)
        v += c->cache * fmin(1, n / c->cache_requests);
    if (c->spike > 0 && s->t > c->seconds / 2)
        v += c->spike;
    v += c->mem_leak * n + c->mem_leak_s * (s->t - s->born_s) + 30e3 * s->leaked_thread + 10e3 * s->leaked_socket;
    if (c->chunk > 0) {
        v = ceil(v / c->chunk) * c->chunk;
        s->held = fmax(s->held, v);
        v = s->held;
    }
    return floor(v / 4096) * 4096;
}

static void set(struct point_values *v, enum metric_id m, double x)
{
    int64_t i = (int64_t)fmax(x, 0);

    v[m] = (struct point_values){ i, i, i, i, i };
}

static void values(struct state *s, struct point_values v[METRIC_N])
{
    const struct synth *c = s->c;
    double n = s->requests - s->born_requests, conns, fds, threads, mem = memory(s);

    for (int m = 0; m < METRIC_N; m++)
        v[m] = (struct point_values){ METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA };
    conns = s->inflight + (c->pool > 0 ? floor(c->pool * fmin(1, n / c->pool_requests)) : 0) + s->leaked_socket;
    fds = c->fds + conns + s->leaked_fd + (c->late_fd_s > 0 && s->t > c->late_fd_s ? 1 : 0);
    threads = c->threads + fmin(c->thread_pool, s->high) + s->leaked_thread;
    set(v, METRIC_RSS_ANON, mem);
    set(v, METRIC_RSS, mem + 20e6);
    set(v, METRIC_FDS, fds);
    set(v, METRIC_SOCKETS, conns + 2);
    set(v, METRIC_CONNECTIONS, conns);
    set(v, METRIC_FILES, s->leaked_fd + 3);
    set(v, METRIC_THREADS, threads);
    set(v, METRIC_CHILDREN, s->children + s->leaked_child);
    set(v, METRIC_ZOMBIES, s->leaked_zombie);
    if (!c->no_cpu)
        set(v, METRIC_CPU_NS, s->cpu_ns);
}

static void target_values(struct state *s, struct point_values v[METRIC_N])
{
    for (int m = 0; m < METRIC_N; m++)
        v[m] = (struct point_values){ METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA, METRIC_NA };
    set(v, METRIC_ORPHANS, 0);
    if (s->c->seldom_s > 0 && floor(s->t / s->c->seldom_s) <= floor((s->t - s->c->interval_s) / s->c->seldom_s))
        return;
    set(v, METRIC_TMPFILES, 2 + s->leaked_tmp);
    set(v, METRIC_TMP_BYTES, 8192 + 4096 * s->leaked_tmp);
    set(v, METRIC_SHM_SEGMENTS, s->leaked_shm);
    set(v, METRIC_SHM_BYTES, 65536 * s->leaked_shm);
}

static bool missing(const struct synth *c, struct random *r, double t)
{
    if (c->hole_s > 0 && t >= c->hole_at_s && t < c->hole_at_s + c->hole_s)
        return true;
    return c->drop > 0 && synth_uniform(r) < c->drop;
}

bool synth_has_samples(const struct synth *c)
{
    struct random holes = { c->seed + 1 };

    for (double t = c->interval_s; t - c->interval_s < c->seconds; t += c->interval_s)
        if (!missing(c, &holes, t))
            return true;
    return false;
}

static int64_t when(double t)
{
    return BEGIN_NS + (int64_t)llround(t * 1e9);
}

/* ---- feeding it to a series ----------------------------------------------------------------------------------- */

struct feed {
    struct series *s;
    bool points;               /* the second pass; the first finds lives, times and requests */
    bool whole;                /* the target's own row */
    struct life_row *lives;
    size_t nlives;
};

static void note_life(struct feed *f, const struct state *st, const struct point_values v[METRIC_N])
{
    struct life_row *l = f->nlives ? &f->lives[f->nlives - 1] : NULL;

    if (!l || l->info.start_wall_ns != when(st->born_s)) {
        l = &f->lives[f->nlives++];
        *l = (struct life_row){ .id = (int64_t)f->nlives, .first_ns = when(st->t) };
        l->info.key.pid = (int32_t)(4000 + f->nlives);
        l->info.start_wall_ns = when(st->born_s);
        for (int m = 0; m < METRIC_N; m++)
            l->first[m] = v[m].first;
        if (f->nlives > 1)
            l[-1].end = (struct life_end){ when(st->born_s), LIFE_EXITED, 0, 0 };
    }
    l->last_ns = when(st->t);
    l->samples++;
    for (int m = 0; m < METRIC_N; m++)
        l->last[m] = v[m].last;
}

static void feed_point(struct feed *f, struct state *st, size_t life)
{
    struct point_values v[METRIC_N];
    struct point p = { when(st->t), 1, 0 };

    if (f->whole)
        target_values(st, v);
    else
        values(st, v);
    if (f->points)
        assert(!series_point(f->s, life, &p, v));
    else
        note_life(f, st, v);
}

static void pass(struct feed *f, const struct synth *c)
{
    struct state st = { .c = c, .r = { c->seed }, .noise = 0 };
    struct random holes = { c->seed + 1 };
    double counted = 0;
    size_t life = 0;

    st.noise = c->noise * synth_normal(&st.r);
    while (st.t < c->seconds) {
        take_step(&st);
        if (!f->points && !c->no_requests)
            assert(!series_request(f->s, when(st.t - c->interval_s), (int64_t)(st.requests - counted)));
        counted = st.requests;
        if (missing(c, &holes, st.t))
            continue;
        if (!f->points)
            assert(!series_time(f->s, when(st.t)));
        /* Lives of which every sample is missing were never noted. */
        while (f->points && life + 1 < f->nlives && f->lives[life].info.start_wall_ns != when(st.born_s))
            life++;
        feed_point(f, &st, f->whole ? f->nlives : life);
    }
}

struct series *synth_series(const struct synth *c)
{
    struct feed f = { 0 };
    struct life_row whole = { .id = 100000, .first_ns = when(0), .last_ns = when(c->seconds), .samples = 100 };

    assert(!series_new(&f.s, "api", when(0), when(c->seconds + c->interval_s + 1)));
    f.lives = mem_zalloc((size_t)(c->seconds / (fmax(c->restart_s, c->interval_s))) + 3, sizeof *f.lives);
    assert(f.lives);
    pass(&f, c);
    for (size_t i = 0; i < f.nlives; i++)
        assert(!series_life(f.s, &f.lives[i]));
    for (int m = 0; m < METRIC_N; m++)
        whole.first[m] = whole.last[m] = METRIC_NA;
    assert(!series_life(f.s, &whole));
    assert(!series_plan(f.s));
    f.points = true;
    pass(&f, c);
    f.whole = true;
    pass(&f, c);
    assert(!series_finish(f.s));
    mem_free(f.lives);
    return f.s;
}
