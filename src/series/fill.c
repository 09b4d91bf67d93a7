/* Points into columns. One life is filled at a time, in time order; roots before their children. */
#include "base/clock.h"
#include "base/mem.h"
#include "series/parts.h"

static double *nan_array(size_t n)
{
    double *v = mem_alloc(n * sizeof *v);

    for (size_t i = 0; v && i < n; i++)
        v[i] = (double)NAN;
    return v;
}

static int column_make(struct column *c, size_t n, bool binned)
{
    if (c->floor)
        return 0;
    c->floor = nan_array(n);
    c->mid = binned ? nan_array(n) : c->floor;
    c->max = binned ? nan_array(n) : c->floor;
    if (c->floor && c->mid && c->max)
        return 0;
    column_release(c);
    return LT_ENOMEM;
}

struct triple { double floor, mid, max; };

/* Insertion sort: bins hold few values, and mostly in order. */
static void sort_values(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double x = v[i];
        size_t j = i;

        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

/* p10, median and maximum of what was gathered; a bin of one moment keeps the last reading (duplicates replace). */
static struct triple squeeze(const struct series *s, int m)
{
    double *v = s->gather + (size_t)m * GATHER_MAX;
    size_t n = MIN((size_t)s->gathered[m], (size_t)GATHER_MAX);

    if (s->grid_step == 1)
        return (struct triple){ v[n - 1], v[n - 1], v[n - 1] };
    sort_values(v, n);
    return (struct triple){ v[n / 10], v[n / 2], v[n - 1] };
}

static void column_set(struct column *c, size_t i, struct triple t)
{
    c->n += isnan(c->floor[i]);
    c->floor[i] = t.floor;
    if (c->mid == c->floor)
        return;
    c->mid[i] = t.mid;
    c->max[i] = t.max;
}

static void column_add(struct column *c, size_t i, struct triple t)
{
    if (!isnan(c->floor[i]))
        t = (struct triple){ c->floor[i] + t.floor,
                             c->mid == c->floor ? 0 : c->mid[i] + t.mid,
                             c->max == c->floor ? 0 : c->max[i] + t.max };
    column_set(c, i, t);
}

/* Adds a life's value to the target's sum. A child adds only where a root was read: a sum without it would be a dip. */
static int sum_add(struct series *s, const struct series_life *l, int m, size_t i, struct triple t)
{
    struct column *c = &s->sum.col[m];

    if (!l->summed)
        return 0;
    if (metrics[m].scope == METRIC_SCOPE_P && !l->root && (!c->floor || isnan(c->floor[i])))
        return 0;
    if (column_make(c, s->sum.n, s->grid_step > 1))
        return LT_ENOMEM;
    column_add(c, i, t);
    return 0;
}

static int own_set(const struct series *s, const struct series_life *l, int m, size_t i, struct triple t)
{
    struct column *c;
    size_t base;

    if (!l->own)
        return 0;
    c = &l->own->col[m];
    base = (size_t)(l->own->ts_ns - s->sum.ts_ns);
    if (i < base || i >= base + l->own->n)
        return 0;
    if (column_make(c, l->own->n, s->grid_step > 1))
        return LT_ENOMEM;
    column_set(c, i - base, t);
    return 0;
}

/* How long a child's last value stands in for one that was not read. */
static int64_t carry_limit(const struct series *s)
{
    double limit = 20 * s->interval_s * (double)NS_PER_S;

    return limit > 60e9 ? (int64_t)limit : 60 * NS_PER_S;
}

/* Children's values forward over the bins (from, to) that this life skipped. */
static int carry(struct series *s, const struct series_life *l, size_t from, size_t to)
{
    int64_t until = s->carried_ns + carry_limit(s);

    for (size_t i = from; i < to && s->sum.ts_ns[i] <= until; i++)
        for (int m = 0; m < METRIC_N; m++) {
            double v = s->carried[m];

            if (!isnan(v) && sum_add(s, l, m, i, (struct triple){ v, v, v }))
                return LT_ENOMEM;
        }
    return 0;
}

int fill_flush(struct series *s)
{
    const struct series_life *l;

    if (s->life_at == SIZE_MAX || s->bin_at == SIZE_MAX)
        return 0;
    l = series_life_at(s, s->life_at);
    for (int m = 0; m < METRIC_N; m++) {
        struct triple t = { s->carried[m], s->carried[m], s->carried[m] };

        if (s->gathered[m])
            t = squeeze(s, m);
        if (isnan(t.mid))
            continue;
        /* A column read at every tenth sweep only (kinds of descriptors) stays a column of every tenth point for a root. */
        if (!s->gathered[m] && (l->root || l->whole))
            continue;
        if (sum_add(s, l, m, s->bin_at, t) || (s->gathered[m] && own_set(s, l, m, s->bin_at, t)))
            return LT_ENOMEM;
        s->carried[m] = t.mid;
    }
    s->carried_ns = s->sum.ts_ns[s->bin_at];
    memset(s->gathered, 0, sizeof s->gathered);
    return 0;
}

static int begin_life(struct series *s, size_t life)
{
    int r = fill_flush(s);

    s->life_at = life;
    s->bin_at = SIZE_MAX;
    memset(s->gathered, 0, sizeof s->gathered);
    for (int m = 0; m < METRIC_N; m++)
        s->carried[m] = (double)NAN;
    return r;
}

static int begin_bin(struct series *s, size_t bin)
{
    const struct series_life *l = series_life_at(s, s->life_at);
    size_t last = s->bin_at;
    int r = fill_flush(s);

    if (!r && last != SIZE_MAX && bin > last + 1 && !l->root && !l->whole)
        r = carry(s, l, last + 1, bin);
    s->bin_at = bin;
    return r;
}

static void gather(struct series *s, int m, const struct point_values *v)
{
    double *g = s->gather + (size_t)m * GATHER_MAX;
    double mid = ((double)v->first + (double)v->last) / 2;

    if (v->p10 == METRIC_NA && v->last == METRIC_NA)
        return;
    /* A tier's bin counts once; its floor is what the floors are made of. */
    g[s->gathered[m] % GATHER_MAX] = v->p10 != METRIC_NA && v->p10 != v->last ? MIN((double)v->p10, mid) : (double)v->last;
    if (s->gathered[m] < UINT16_MAX)
        s->gathered[m]++;
}

int series_point(struct series *s, size_t life, const struct point *p, const struct point_values v[METRIC_N])
{
    size_t bin;
    int r = 0;

    if (p->ts_ns < s->from_ns || p->ts_ns > s->to_ns || !s->sum.n || p->ts_ns < s->sum.ts_ns[0])
        return 0;
    bin = grid_index(s, p->ts_ns);
    if (life != s->life_at)
        r = begin_life(s, life);
    else if (s->bin_at != SIZE_MAX && bin < s->bin_at)
        return 0; /* the clock went back: this stretch of time has its values already */
    if (!r && bin != s->bin_at)
        r = begin_bin(s, bin);
    if (r)
        return r;
    *(series_life_at(s, life)->whole ? &s->whole_samples : &s->samples) += p->n;
    for (int m = 0; m < METRIC_N; m++) {
        gather(s, m, &v[m]);
        if (series_life_at(s, life)->cut && v[m].last != METRIC_NA)
            series_life_at(s, life)->last[m] = v[m].last;
    }
    return 0;
}
