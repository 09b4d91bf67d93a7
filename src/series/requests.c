/* Request counts as one cumulative curve on the grid. A row counts requests from its ts to the next row's. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "series/parts.h"

static int by_time(const void *a, const void *b)
{
    const struct series_request *x = a, *y = b;

    return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

static void merge_equal(struct vec *v)
{
    struct series_request *r = v->items;
    size_t n = 0;

    if (v->n)
        qsort(r, v->n, sizeof *r, by_time);
    for (size_t i = 0; i < v->n; i++) {
        if (n && r[n - 1].ts_ns == r[i].ts_ns)
            r[n - 1].n += r[i].n;
        else
            r[n++] = r[i];
    }
    v->n = n;
}

static void merge_pairs(struct vec *v)
{
    struct series_request *r = v->items;
    size_t n = 0;

    for (size_t i = 0; i < v->n; i += 2) {
        r[n] = r[i];
        if (i + 1 < v->n)
            r[n].n += r[i + 1].n;
        n++;
    }
    v->n = n;
}

int series_request(struct series *s, int64_t ts_ns, int64_t n)
{
    struct series_request *last = s->reqs.n ? vec_at(&s->reqs, s->reqs.n - 1) : NULL;
    struct series_request row = { ts_ns, (double)n };

    if (n <= 0)
        return 0;
    if (last && last->ts_ns == ts_ns) {
        last->n += row.n;
        return 0;
    }
    if (s->reqs.n >= s->reqs.max)
        merge_equal(&s->reqs);
    if (s->reqs.n >= s->reqs.max)
        merge_pairs(&s->reqs);
    return vec_append(&s->reqs, &row);
}

static int by_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median distance of the rows, the width taken for a row with no neighbour near. */
static double bin_width_ns(const struct series *s)
{
    const struct series_request *r = s->reqs.items;
    double d[1001];
    size_t n = 0, step = s->reqs.n / ARRAY_SIZE(d) + 1;

    for (size_t i = 1; i < s->reqs.n && n < ARRAY_SIZE(d); i += step)
        d[n++] = (double)(r[i].ts_ns - r[i - 1].ts_ns);
    if (!n)
        return s->interval_s * 1e9;
    qsort(d, n, sizeof *d, by_double);
    return d[n / 2];
}

/* Where row i's requests end: at the next row, or one width on when that is far. */
static int64_t row_end(const struct series *s, size_t i, double width_ns)
{
    const struct series_request *r = s->reqs.items;
    int64_t end = r[i].ts_ns + (int64_t)width_ns;

    if (i + 1 < s->reqs.n && (double)(r[i + 1].ts_ns - r[i].ts_ns) < 1.5 * width_ns)
        end = r[i + 1].ts_ns;
    return end > r[i].ts_ns ? end : r[i].ts_ns + 1;
}

int requests_join(struct series *s)
{
    const struct series_request *r;
    double done = 0, width;
    size_t row = 0;

    if (!s->reqs.n || !s->sum.n)
        return 0;
    merge_equal(&s->reqs);
    s->req = mem_alloc(s->sum.n * sizeof *s->req);
    if (!s->req)
        return LT_ENOMEM;
    r = s->reqs.items;
    width = bin_width_ns(s);
    for (size_t i = 0; i < s->sum.n; i++) {
        int64_t t = s->sum.ts_ns[i];

        for (; row < s->reqs.n && row_end(s, row, width) <= t; row++)
            done += r[row].n;
        s->req[i] = done;
        if (row < s->reqs.n && r[row].ts_ns < t)
            s->req[i] += r[row].n * (double)(t - r[row].ts_ns) / (double)(row_end(s, row, width) - r[row].ts_ns);
    }
    for (size_t i = s->sum.n; i-- > 0;)
        s->req[i] -= s->req[0];
    s->requests = s->req[s->sum.n - 1];
    s->request_bin_s = width / 1e9;
    s->sum.req = s->req;
    VEC_EACH(struct series_life, l, &s->lives)
        if (l->own)
            l->own->req = s->req + (l->own->ts_ns - s->sum.ts_ns);
    return 0;
}

int series_finish(struct series *s)
{
    int r = fill_flush(s);

    s->life_at = SIZE_MAX;
    if (!s->samples)
        s->samples = s->whole_samples;
    if (!r)
        r = requests_join(s);
    if (s->sum.n) {
        s->from_ns = s->sum.ts_ns[0];
        s->to_ns = s->sum.ts_ns[s->sum.n - 1];
    }
    mem_free(s->gather);
    s->gather = NULL;
    vec_release(&s->reqs);
    return r;
}
