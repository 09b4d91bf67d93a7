/* Requests: daily and weekly shape, slow wander, Poisson counts by endpoint; and the units of work that leak. */
#include <math.h>

#include "base/mem.h"
#include "plan.h"

static double shape(const struct plan *p, const struct curve *c, double t_s)
{
    double dst = c->label.modifier == MODIFIER_DST && t_s > 3.5 * DAY_S ? 1 : 0;
    double h = p->begin_h + t_s / 3600 + dst, day = floor(h / 24);
    double v = p->trough + (1 - p->trough) * 0.5 * (1 + cos(2 * M_PI * (h - p->peak_h) / 24));
    int weekday = (p->weekday + (int)day) % 7;

    return v * (weekday >= 5 ? p->weekend : 1) * pow(1 + p->growth, t_s / DAY_S);
}

static void fill_bin(struct traffic *t, const struct plan *p, struct curve *c, size_t b, const double mix[], struct stream *s)
{
    double sum = 0, n = 0;

    for (size_t e = 0; e < c->endpoints; e++)
        sum += p->mix[e] * exp(p->mix_sd * mix[e]);
    for (size_t e = 0; e < c->endpoints; e++) {
        double mean = t->rate[b] * c->bin_s * p->mix[e] * exp(p->mix_sd * mix[e]) / sum;

        c->requests[b * ENDPOINTS_MAX + e] = (uint32_t)draw_poisson(s, mean);
    }
    if (c->options.family == FAMILY_HEALTH_PROBE) /* endpoint 0: one probe every ten seconds, whatever the load */
        c->requests[b * ENDPOINTS_MAX] = (uint32_t)round(c->bin_s / 10);
    for (size_t e = 0; e < c->endpoints; e++)
        n += c->requests[b * ENDPOINTS_MAX + e];
    t->requests[b + 1] = t->requests[b] + n;
}

static double units_of(const struct plan *p, const struct curve *c, const uint32_t n[], double all, struct stream *s)
{
    switch (c->options.family) {
    case FAMILY_CREEP_TIME: return c->bin_s;
    case FAMILY_TWO_EP: return n[0] + p->weight * n[1];
    case FAMILY_HEALTH_PROBE: return n[0];
    case FAMILY_CANCEL_ONLY:
    case FAMILY_STREAM_ONLY:
    case FAMILY_VERSION_ONLY: return draw_poisson(s, all * p->share);
    case FAMILY_FD: case FAMILY_THREAD: case FAMILY_CHILD: case FAMILY_CONNECTION: case FAMILY_TMPFILE:
        return draw_poisson(s, all * p->count_leak);
    default: return all;
    }
}

int traffic_make(struct traffic *t, struct plan *p, struct curve *c)
{
    struct stream s = stream_of(&c->options, 3), leak = stream_of(&c->options, 4);
    double slow = draw_normal(&s), mix[ENDPOINTS_MAX] = { 0 }, step = c->bin_s / 300, rho = pow(0.98, step), all;

    t->rate = mem_zalloc(c->nbins + 1, sizeof(double));
    t->requests = mem_zalloc(c->nbins + 1, sizeof(double));
    t->units = mem_zalloc(c->nbins + 1, sizeof(double));
    c->requests = mem_zalloc(c->nbins * ENDPOINTS_MAX, sizeof *c->requests);
    if (!t->rate || !t->requests || !t->units || !c->requests)
        return -1;
    for (size_t b = 0; b < c->nbins; b++) {
        slow = rho * slow + sqrt(1 - rho * rho) * draw_normal(&s);
        for (size_t e = 0; e < c->endpoints; e++)
            mix[e] = rho * mix[e] + sqrt(1 - rho * rho) * draw_normal(&s);
        t->rate[b] = p->rps * shape(p, c, ((double)b + 0.5) * c->bin_s) * exp(0.12 * slow);
        fill_bin(t, p, c, b, mix, &s);
        all = t->requests[b + 1] - t->requests[b];
        t->units[b + 1] = t->units[b] + units_of(p, c, c->requests + b * ENDPOINTS_MAX, all, &leak);
    }
    if (p->max_requests > 0)
        p->max_requests *= t->requests[c->nbins];
    return 0;
}

void traffic_free(struct traffic *t)
{
    mem_free(t->rate);
    mem_free(t->requests);
    mem_free(t->units);
}

double traffic_at(const double *sums, const struct curve *c, double t_s)
{
    double at = fmin(fmax(t_s / c->bin_s, 0), (double)c->nbins);
    size_t b = at >= (double)c->nbins ? c->nbins - 1 : (size_t)at;

    return sums[b] + (sums[b + 1] - sums[b]) * (at - (double)b);
}

double traffic_rate(const struct traffic *t, const struct curve *c, double t_s)
{
    size_t b = (size_t)fmax(0, t_s / c->bin_s);

    return t->rate[b < c->nbins ? b : c->nbins - 1];
}
