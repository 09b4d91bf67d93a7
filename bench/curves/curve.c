/* Runs a case: memory at the heap's level, what the allocator makes of it, counts, lives; then the watch's own mishaps. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "plan.h"

struct run {
    struct plan p;
    struct traffic traffic;
    struct curve *c;
    struct stream s, watch;
    double t, born_s, born_n, onset_units, per_unit, held, high, noise[2], wander, ttl, most, base;
    double shift_s, shift_at_s;
    size_t restart, bursts;
    uint32_t life;
    bool on[8];
    uint32_t worker_life[8];
};

static int64_t when(const struct run *r, double t)
{
    return CURVE_BEGIN_NS + (int64_t)llround(r->p.begin_h * 3600e9) + (int64_t)llround(t * 1e9);
}

static void begin_life(struct run *r, double t, bool oom)
{
    struct curve *c = r->c;

    if (c->nlives == LIVES_OF_CASE)
        return;
    if (c->nlives)
        c->lives[c->nlives - 1] = (struct curve_life){ c->lives[c->nlives - 1].pid, 0, c->lives[c->nlives - 1].start_ns, when(r, t), oom };
    r->life = (uint32_t)c->nlives;
    c->lives[c->nlives++] = (struct curve_life){ (int32_t)(3000 + 7 * r->life), 0, when(r, t), INT64_MAX, false };
    r->born_s = t;
    r->born_n = traffic_at(r->traffic.requests, c, t);
    r->held = r->high = r->most = 0;
    r->base = r->p.base * (1 + (r->c->options.no_leak ? 0 : r->p.ext) * t / (7 * DAY_S));
}

static void event(struct run *r, double t, const char *kind)
{
    if (r->c->nevents < EVENTS_MAX)
        r->c->events[r->c->nevents++] = (struct curve_event){ when(r, t), kind };
}

static double leaked(const struct run *r)
{
    double from = fmax(r->p.onset_s, r->born_s), share = 0;

    if (isnan(r->p.onset_s) || r->c->options.no_leak)
        return 0;
    if (r->p.nstairs) {
        for (size_t i = 0; i < r->p.nstairs; i++)
            share += r->p.stair_at_s[i] <= r->t;
        return share / (double)r->p.nstairs * r->p.size * r->p.base * r->c->options.days / 7;
    }
    return r->t <= from ? 0 : r->per_unit * (traffic_at(r->traffic.units, r->c, r->t) - traffic_at(r->traffic.units, r->c, from));
}

static double habits(struct run *r, double dt, double n)
{
    const struct plan *p = &r->p;
    double v = 0, age = r->t - r->born_s, decay, load = traffic_rate(&r->traffic, r->c, r->t) / p->rps;

    v += p->warm * (1 - exp(-n / p->warm_requests));
    if (p->saw > 0)
        v += p->saw * fmod(n / (p->rps * 0.6 * p->saw_period_s), 1);
    if (p->wander > 0) {
        decay = exp(-dt / p->wander_s);
        r->wander = decay * r->wander + sqrt(1 - decay * decay) * draw_normal(&r->s);
        v += p->wander * r->wander;
    }
    if (p->spike > 0 && fmod(r->t + p->spike_at_s, p->spike_every_s) < p->spike_s)
        v += p->spike;
    if (p->slow > 0)
        v += p->slow * (1 - exp(-age / p->slow_tau_s));
    if (p->cache > 0 && !(p->ttl_s > 0))
        v += p->cache * fmin(1, n / traffic_at(r->traffic.requests, r->c, p->cache_full_s));
    if (p->ttl_s > 0) {
        r->ttl += (load - r->ttl) * fmin(1, dt / p->ttl_s);
        v += p->cache * r->ttl;
    }
    for (size_t i = 0; i < p->nbursts; i++)
        v += r->t >= p->burst_at_s[i] && r->t < p->burst_at_s[i] + 600 ? p->burst : 0;
    for (size_t i = 0; i < p->njumps; i++)
        v += r->t >= p->jumps[i].at_s ? p->jumps[i].bytes : 0;
    return v;
}

/* What the allocator keeps beside the heap, for good. */
static double fragments(const struct run *r)
{
    const struct plan *p = &r->p;
    double past = 0, v = 0;

    for (size_t i = 0; i < p->nbursts; i++)
        past += r->t >= p->burst_at_s[i];
    if (p->arena > 0)
        v += p->arena * (1 - exp(-past / p->arena_bursts));
    if (p->frag > 0)
        v += p->frag * log1p((r->t - r->born_s) / p->frag_tau_s) / log1p(7 * DAY_S / p->frag_tau_s);
    return v;
}

static double allocator(struct run *r, double heap, double dt)
{
    double rest;

    r->high = fmax(r->high, heap);
    rest = heap + r->p.kept * (r->high - heap);
    r->held = r->held > rest ? rest + (r->held - rest) * exp(-dt / r->p.release_s) : rest;
    return ceil((r->held + fragments(r)) / r->p.quantum) * r->p.quantum;
}

static double noise(struct run *r, int which, double dt)
{
    double rho = pow(r->p.rho, dt / 30), *x = &r->noise[which], fresh = draw_t4(&r->s), moved = draw(&r->s);

    if (!r->p.still)
        *x = rho * *x + sqrt(1 - rho * rho) * fresh;
    else if (moved < 0.01 * dt / 30)
        *x = fresh;
    return r->p.noise * *x;
}

static void counts(struct run *r, struct row *row, double flight, double n, double leaks)
{
    const struct plan *p = &r->p;
    enum family_id f = r->c->options.family;
    double conns = flight + floor(p->pool * fmin(1, n / p->pool_requests)) + (f == FAMILY_CONNECTION ? leaks : 0);

    r->most = fmax(r->most, flight);
    row->v[V_CONNECTIONS] = (int64_t)conns;
    row->v[V_FDS] = (int64_t)(p->fds + conns + (f == FAMILY_FD ? leaks : 0));
    row->v[V_THREADS] = (int64_t)(p->threads + fmin(p->thread_pool, r->most) + (f == FAMILY_THREAD ? leaks : 0));
    row->v[V_CHILDREN] = (int64_t)(draw_poisson(&r->s, p->children) + (f == FAMILY_CHILD ? leaks : 0));
    row->v[V_TMPFILES] = (int64_t)(2 + (f == FAMILY_TMPFILE ? leaks : 0));
}

static bool push(struct curve *c, const struct row *row)
{
    if (c->nrows == c->room) {
        size_t room = c->room ? 2 * c->room : 32768;
        struct row *more = mem_realloc(c->rows, room * sizeof *more);

        if (!more)
            return false;
        c->rows = more;
        c->room = room;
    }
    c->rows[c->nrows++] = *row;
    return true;
}

static bool emit(struct run *r, struct row *row)
{
    struct curve *c = r->c;
    double again = draw(&r->watch);

    row->ts_ns = when(r, r->t + (r->shift_at_s > 0 && r->t >= r->shift_at_s ? r->shift_s : 0));
    for (size_t i = 0; i < c->ngaps; i++)
        if (row->ts_ns >= c->gaps[i].from_ns && row->ts_ns < c->gaps[i].to_ns)
            return true;
    if (!push(c, row))
        return false;
    return c->label.modifier != MODIFIER_DUPLICATES || again >= 0.05 || push(c, row);
}

static void plan_watch(struct run *r)
{
    struct curve *c = r->c;
    double span = c->options.days * DAY_S, from = 0, n = 0, lo = 3600, hi = 12 * 3600;

    if (c->label.modifier == MODIFIER_CLOCK) {
        r->shift_at_s = draw_between(&r->watch, 0.1, 0.9) * span;
        r->shift_s = draw_between(&r->watch, 5, 120) * (draw(&r->watch) < 0.5 ? -1 : 1);
    }
    if (c->label.modifier == MODIFIER_GAPS)
        n = floor(draw_between(&r->watch, 1, 5));
    if (c->label.modifier == MODIFIER_RESTART) {
        n = floor(draw_between(&r->watch, 3, 11));
        lo = 60;
        hi = 600;
    }
    for (double i = 0; i < n; i++) {
        from = span * (i + draw_between(&r->watch, 0.1, 0.7)) / n;
        c->gaps[c->ngaps++] = (struct curve_gap){ when(r, from), when(r, from + draw_between(&r->watch, lo, hi)) };
    }
}

static void restarts(struct run *r, double rss)
{
    const struct plan *p = &r->p;
    bool deploy = r->c->options.family == FAMILY_DEPLOYS;

    if (p->limit > 0 && rss > p->limit)
        begin_life(r, r->t, true);
    else if (p->max_requests > 0 && traffic_at(r->traffic.requests, r->c, r->t) - r->born_n >= p->max_requests)
        begin_life(r, r->t, false);
    else if (r->restart < p->nrestarts && r->t >= p->restart_at_s[r->restart]) {
        begin_life(r, r->t, false);
        r->restart++;
        if (deploy)
            event(r, r->t, "deploy");
    }
}

static bool take(struct run *r, double dt)
{
    struct row row = { 0 };
    double flight = draw_poisson(&r->s, r->p.busy * traffic_rate(&r->traffic, r->c, r->t) / r->p.rps);
    double n = traffic_at(r->traffic.requests, r->c, r->t) - r->born_n, leak = leaked(r), heap, rss;

    heap = r->base + r->p.flight * flight / r->p.busy + habits(r, dt, n) + (r->p.count_leak > 0 ? 0 : leak);
    rss = allocator(r, heap, dt) + noise(r, 0, dt);
    heap += noise(r, 1, dt);
    row.life = r->life;
    row.v[V_RSS] = (int64_t)(fmax(rss, 4096) / 4096) * 4096;
    row.v[V_HEAP] = (int64_t)fmax(heap, 0);
    counts(r, &row, flight, n, r->p.count_leak > 0 && !r->c->options.no_leak ? floor(traffic_at(r->traffic.units, r->c, r->t)) : 0);
    for (size_t w = 0; w < r->p.workers; w++)
        row.v[V_CHILDREN] += r->on[w];
    if (!emit(r, &row))
        return false;
    restarts(r, rss);
    return true;
}

/* Workers come and go with the load: one life each time. */
static bool work(struct run *r, size_t w, double dt)
{
    struct curve *c = r->c;
    double load = traffic_rate(&r->traffic, c, r->t) / r->p.rps, at = 0.35 + 0.5 * (double)w / (double)r->p.workers;
    struct row row = { .v = { 0, 0, 8, 2, 0, 0, 0 } };

    if (!r->on[w] && load > at && c->nlives < LIVES_OF_CASE) {
        r->worker_life[w] = (uint32_t)c->nlives;
        c->lives[c->nlives] = (struct curve_life){ (int32_t)(20000 + c->nlives), c->lives[0].pid, when(r, r->t), INT64_MAX, false };
        c->nlives++;
        r->on[w] = true;
    } else if (r->on[w] && load < 0.6 * at) {
        c->lives[r->worker_life[w]].end_ns = when(r, r->t);
        r->on[w] = false;
    }
    if (!r->on[w])
        return true;
    row.life = r->worker_life[w];
    row.v[V_HEAP] = (int64_t)(r->p.base * 0.3 + noise(r, 0, dt) * 0.3);
    row.v[V_RSS] = (int64_t)((double)row.v[V_HEAP] * 1.05 / 4096) * 4096;
    return emit(r, &row);
}

static bool run_all(struct run *r)
{
    const struct curve_options *o = &r->c->options;
    size_t n = (size_t)(o->days * DAY_S / o->interval_s);

    begin_life(r, 0, false);
    for (size_t i = 0; i < n; i++) {
        r->t = (double)(i + 1) * o->interval_s;
        if (!take(r, o->interval_s))
            return false;
    }
    for (size_t w = 0; w < r->p.workers; w++)
        for (size_t i = 0; i < n; i++) {
            r->t = (double)(i + 1) * o->interval_s;
            if (!work(r, w, o->interval_s))
                return false;
        }
    return true;
}

static void set_label(struct run *r)
{
    struct curve *c = r->c;
    struct label *l = &c->label;
    double from = isnan(r->p.onset_s) ? 0 : r->p.onset_s, end = c->options.days * DAY_S;
    double served = traffic_at(r->traffic.requests, c, end) - traffic_at(r->traffic.requests, c, from);
    double bytes = r->per_unit * (traffic_at(r->traffic.units, c, end) - traffic_at(r->traffic.units, c, from));

    l->leak = truth_is_leak(l->class);
    l->onset_s = r->p.onset_s;
    l->per_week = fmax(r->p.size, r->p.ext);
    l->kb_per_1k = r->p.size > 0 && served > 0 ? bytes / served * 1000 / 1024 : 0;
    l->count_per_request = r->p.count_leak;
    if (c->options.family == FAMILY_STEP_EVENT)
        event(r, r->p.jumps[0].at_s - 60, "config");
}

struct curve *curve_make(const struct curve_options *o)
{
    struct curve *c = mem_zalloc(1, sizeof *c);
    struct run *r = mem_zalloc(1, sizeof *r);
    bool good = false;

    if (c && r) {
        c->options = *o;
        c->label = (struct label){ .family = o->family, .class = family_truth(o->family), .seed = o->seed, .number = o->number };
        c->bin_s = fmax(60, o->interval_s);
        c->nbins = (size_t)ceil(o->days * DAY_S / c->bin_s);
        r->c = c;
        plan_case(&r->p, c);
        r->s = stream_of(o, 5);
        r->watch = stream_of(o, 6);
        plan_watch(r);
        if (!traffic_make(&r->traffic, &r->p, c)) {
            double all = r->traffic.units[c->nbins];

            r->per_unit = all > 0 ? r->p.size * r->p.base * o->days / 7 / all : 0;
            set_label(r);
            good = run_all(r);
        }
        traffic_free(&r->traffic);
    }
    mem_free(r);
    if (!good) {
        curve_free(c);
        return NULL;
    }
    return c;
}

void curve_free(struct curve *c)
{
    if (!c)
        return;
    mem_free(c->rows);
    mem_free(c->requests);
    mem_free(c);
}
