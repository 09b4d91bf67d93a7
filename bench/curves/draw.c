/* Names and random numbers. Counter-based: number `at` of a stream is a hash of (key, at). */
#include <math.h>

#include "curve.h"

static const struct { const char *name; enum truth truth; } families[FAMILY_N] = {
#define X(id, name, class) { name, TRUTH_##class },
    FAMILIES(X)
#undef X
};

const char *family_name(enum family_id f) { return families[f].name; }
enum truth family_truth(enum family_id f) { return families[f].truth; }

const char *truth_name(enum truth t)
{
    static const char *const names[] = { "ok", "step", "bounded", "retention", "creep", "sawtooth", "external", "count" };

    return names[t];
}

const char *modifier_name(enum modifier m)
{
    static const char *const names[] = { "none", "gaps", "clock step", "duplicates", "sampler restarts", "DST" };

    return names[m];
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

struct stream stream_of(const struct curve_options *o, uint64_t which)
{
    uint64_t key = mix(o->seed + UINT64_C(0x9e3779b97f4a7c15));

    key = mix(key ^ ((uint64_t)o->family << 32 | o->number));
    return (struct stream){ mix(key + which * UINT64_C(0xd1342543de82ef95)), 0 };
}

double draw(struct stream *s)
{
    return (double)(mix(s->key + UINT64_C(0x9e3779b97f4a7c15) * ++s->at) >> 11) * 0x1p-53;
}

double draw_between(struct stream *s, double lo, double hi)
{
    return lo + (hi - lo) * draw(s);
}

double draw_log(struct stream *s, double lo, double hi)
{
    return exp(draw_between(s, log(lo), log(hi)));
}

double draw_normal(struct stream *s)
{
    double r = sqrt(-2 * log(1 - draw(s)));

    return r * cos(2 * M_PI * draw(s));
}

double draw_t4(struct stream *s)
{
    double z = draw_normal(s), chi = -2 * log((1 - draw(s)) * (1 - draw(s)));

    return z / sqrt(chi / 4) * M_SQRT1_2;
}

double draw_poisson(struct stream *s, double mean)
{
    double n = 0, limit = exp(-mean);

    if (mean > 40)
        return fmax(0, round(mean + sqrt(mean) * draw_normal(s)));
    for (double p = draw(s); p > limit; p *= draw(s))
        n++;
    return n;
}
