#include "store/column.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/metric.h"

/* Tag byte of a head. */
enum { TAG_TRANSFORM = 3, TAG_SPARSE = 4, TAG_EXCEPTIONS = 8, TAG_ALL = 15 };

/* ---- small arithmetic, all modulo 2^64 so that every int64_t round-trips ---- */

static int64_t sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

static unsigned bits_of(uint64_t v) { return v ? 64 - (unsigned)__builtin_clzll(v) : 0; }

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

void column_sort(int64_t *v, size_t n)
{
    static const size_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    size_t gap = n; /* above the table, halve */
    while (gap > 4000) {
        gap /= 2;
        for (size_t i = gap; i < n; i++) {
            int64_t x = v[i];
            size_t j = i;
            for (; j >= gap && v[j - gap] > x; j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
    }
    for (size_t k = 0; k < ARRAY_SIZE(gaps); k++)
        for (size_t i = gaps[k]; i < n; i++) {
            int64_t x = v[i];
            size_t j = i;
            for (; j >= gaps[k] && v[j - gaps[k]] > x; j -= gaps[k])
                v[j] = v[j - gaps[k]];
            v[j] = x;
        }
}

/* ---- bits ---- */

static void bits_put(struct column_bits *b, uint64_t v, unsigned width)
{
    while (width) {
        unsigned at = b->bit & 7, take = MIN(8 - at, width);
        b->p[b->bit >> 3] |= (uint8_t)((v & ((1u << take) - 1)) << at);
        v >>= take;
        width -= take;
        b->bit += take;
    }
}

static uint64_t bits_get(const uint8_t *p, size_t bit, unsigned width)
{
    uint64_t lo, hi;
    unsigned at = bit & 7;
    memcpy(&lo, p + (bit >> 3), 8);
    lo >>= at;
    if (width + at > 64) {
        memcpy(&hi, p + (bit >> 3) + 8, 8);
        lo |= hi << (64 - at);
    }
    return width < 64 ? lo & ((UINT64_C(1) << width) - 1) : lo;
}

/* ---- choosing the form ---- */

/* How a set of residuals is packed: the window [base, base + 2^width) holds all but exc_n of them. */
struct plan {
    unsigned width, exc_n, exc_width;
    int64_t base;
    size_t cost; /* bits, heads included */
};

struct measured { int64_t v[COLUMN_MAX]; uint8_t at[COLUMN_MAX]; size_t m; };

static unsigned position_bits(size_t count) { return bits_of(count - 1); }

static size_t varint_bits(uint64_t v) { return 8 * ((bits_of(v | 1) + 6) / 7); }

/* Exceptions of the window that starts at sorted[i] and ends before sorted[j]: their width and the cost of all. */
static struct plan window_plan(const int64_t *sorted, size_t count, size_t i, size_t j, unsigned width)
{
    struct plan p = {.width = width, .base = sorted[i], .exc_n = (unsigned)(count - (j - i))};
    uint64_t below = i ? zigzag(sub(sorted[0], sorted[i])) : 0;
    uint64_t above = j < count ? zigzag(sub(sorted[count - 1], sorted[i])) : 0;
    p.exc_width = p.exc_n ? MAX(bits_of(below), bits_of(above)) : 0;
    p.cost = count * width + varint_bits(zigzag(p.base));
    if (p.exc_n)
        p.cost += 16 + p.exc_n * (size_t)(position_bits(count) + p.exc_width);
    return p;
}

/* The cheapest packing of `count` sorted residuals. */
static struct plan plan_residuals(const int64_t *sorted, size_t count)
{
    struct plan best = {0};
    if (!count)
        return best;
    unsigned full = bits_of((uint64_t)sub(sorted[count - 1], sorted[0]));
    best = window_plan(sorted, count, 0, count, full);
    for (unsigned w = full; w-- > 0;) {
        size_t bi = 0, bj = 0;
        for (size_t i = 0, j = 0; i < count; i++) {
            while (j < count && (uint64_t)sub(sorted[j], sorted[i]) >> w == 0)
                j++;
            if (j - i > bj - bi) {
                bi = i;
                bj = j;
            }
            if (j == count)
                break;
        }
        struct plan p = window_plan(sorted, count, bi, bj, w);
        if (p.cost < best.cost)
            best = p;
        /* A narrower window has at least as many exceptions. */
        if (p.exc_n * (size_t)position_bits(count) >= best.cost)
            break;
    }
    return best;
}

/* Residuals of `d` (in units, d[0] = 0) under a transform; returns how many there are. */
static size_t residuals(enum column_transform t, const int64_t *d, size_t m, int64_t *ret)
{
    if (t == COLUMN_FOR || t == COLUMN_PRED) {
        memcpy(ret, d, m * sizeof *ret);
        return m;
    }
    int64_t slope = 0;
    for (size_t i = 1; i < m; i++) {
        int64_t step = sub(d[i], d[i - 1]);
        ret[i - 1] = sub(step, slope);
        if (t == COLUMN_DELTA2)
            slope = step;
    }
    return m - 1;
}

/* Divides v[i] - v[0] by their greatest common divisor; returns the divisor (1 when all are equal). */
static uint64_t to_units(const int64_t *v, size_t m, int64_t *ret_d)
{
    uint64_t g = 0;
    for (size_t i = 0; i < m; i++) {
        int64_t d = sub(v[i], v[0]);
        uint64_t mag = d < 0 ? 0 - (uint64_t)d : (uint64_t)d;
        if (mag && (!g || mag % g))
            g = gcd(mag, g);
        ret_d[i] = d;
    }
    /* INT64_MIN only comes from a prediction that wraps; then the unit stays 1. */
    if (g <= 1 || g > INT64_MAX)
        return 1;
    for (size_t i = 0; i < m; i++)
        ret_d[i] /= (int64_t)g;
    return g;
}

/* ---- writing ---- */

static int head_byte(struct column_heads *h, uint64_t v)
{
    if (h->len >= h->cap)
        return LT_ELIMIT;
    h->p[h->len++] = (uint8_t)v;
    return 0;
}

static int head_varint(struct column_heads *h, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        if (head_byte(h, v | 0x80))
            return LT_ELIMIT;
    return head_byte(h, v);
}

static int write_head(struct column_heads *out, const struct column_head *h, bool footer, uint64_t value_unit)
{
    unsigned tag = h->transform | (h->sparse ? TAG_SPARSE : 0) | (h->exc_n ? TAG_EXCEPTIONS : 0);
    int rc = head_byte(out, tag);
    if (footer || h->transform != COLUMN_PRED) {
        rc |= head_varint(out, (uint64_t)h->first);
        rc |= head_varint(out, value_unit);
    }
    if (footer) {
        int64_t u = (int64_t)value_unit;
        rc |= head_varint(out, zigzag((h->last - h->first) / u));
        rc |= head_varint(out, (uint64_t)((h->first - h->min) / u));
        rc |= head_varint(out, (uint64_t)((h->max - h->first) / u));
        rc |= head_varint(out, (uint64_t)((h->p10 - h->min) / u));
    }
    if (h->transform == COLUMN_PRED) {
        rc |= head_varint(out, zigzag(h->start));
        rc |= head_varint(out, h->unit);
    }
    rc |= head_byte(out, h->width);
    rc |= head_varint(out, zigzag(h->base));
    if (h->exc_n) {
        rc |= head_byte(out, h->exc_n);
        rc |= head_byte(out, h->exc_width);
    }
    return rc ? LT_ELIMIT : 0;
}

static void write_bits(struct column_bits *b, const struct column_head *h, const int64_t *r, size_t count)
{
    uint64_t limit = h->width < 64 ? UINT64_C(1) << h->width : 0; /* 0: everything fits */
    for (size_t i = 0; i < count; i++) {
        uint64_t off = (uint64_t)sub(r[i], h->base);
        bits_put(b, limit && off >= limit ? 0 : off, h->width);
    }
    if (!h->exc_n)
        return;
    for (size_t i = 0; i < count; i++) {
        int64_t off = sub(r[i], h->base);
        if ((uint64_t)off < limit)
            continue;
        bits_put(b, i, position_bits(count));
        bits_put(b, zigzag(off), h->exc_width);
    }
}

/* One transform tried on the values. */
struct trial { struct column_head h; size_t count, cost; int64_t r[COLUMN_MAX]; };

static void trial_plan(struct trial *t, const int64_t *sorted, size_t extra)
{
    struct plan p = plan_residuals(sorted, t->count);
    t->h.width = p.width;
    t->h.exc_n = p.exc_n;
    t->h.exc_width = p.exc_width;
    t->h.base = p.base;
    t->cost = p.cost + extra;
}

/* About what the residuals will cost, without sorting them: their bits around one in the middle. */
static size_t guess(const int64_t *r, size_t count)
{
    size_t bits = 0;
    int64_t a = count ? r[count / 4] : 0, b = count ? r[count / 2] : 0, c = count ? r[count * 3 / 4] : 0;
    int64_t middle = MAX(MIN(a, b), MIN(MAX(a, b), c));
    for (size_t i = 0; i < count; i++)
        bits += bits_of(zigzag(sub(r[i], middle)));
    return bits;
}

static void try_pred(const struct measured *x, const int64_t *pred, struct trial *t)
{
    int64_t u[COLUMN_MAX];
    for (size_t i = 0; i < x->m; i++)
        u[i] = sub(x->v[i], pred[x->at[i]]);
    t->h.start = u[0];
    t->h.unit = to_units(u, x->m, t->r);
    t->count = x->m;
}

/* FOR is planned to the bit, for the values are sorted anyway; of the others the one that promises most is. The cheaper of
 * the two is returned. */
static const struct trial *choose(const struct measured *x, const int64_t *sorted_v, const int64_t *pred, struct trial t[2])
{
    int64_t d[COLUMN_MAX], sorted[COLUMN_MAX];
    struct trial next;
    uint64_t unit = to_units(x->v, x->m, d);
    const struct column_head head = {.unit = unit, .start = x->v[0]};
    size_t best = SIZE_MAX;

    t[0] = (struct trial){.h = head, .count = x->m};
    memcpy(t[0].r, d, x->m * sizeof *d);
    for (size_t i = 0; i < x->m; i++)
        sorted[i] = (sorted_v[i] - x->v[0]) / (int64_t)unit;
    trial_plan(&t[0], sorted, 0);
    for (enum column_transform k = COLUMN_DELTA; k < (pred ? COLUMN_TRANSFORM_N : COLUMN_PRED); k++) {
        next.h = head;
        next.h.transform = k;
        if (k == COLUMN_PRED)
            try_pred(x, pred, &next);
        else
            next.count = residuals(k, d, x->m, next.r);
        size_t bits = guess(next.r, next.count);
        if (bits >= best)
            continue;
        best = bits;
        t[1].h = next.h;
        t[1].count = next.count;
        memcpy(t[1].r, next.r, next.count * sizeof *next.r);
    }
    memcpy(sorted, t[1].r, t[1].count * sizeof *sorted);
    column_sort(sorted, t[1].count);
    trial_plan(&t[1], sorted, t[1].h.transform == COLUMN_PRED ? varint_bits(zigzag(t[1].h.start)) + varint_bits(t[1].h.unit) : 0);
    t[0].h.first = t[1].h.first = x->v[0];
    return t[0].cost <= t[1].cost ? &t[0] : &t[1];
}

int column_encode(struct column_heads *heads, struct column_bits *bits, const int64_t *v, size_t n, const int64_t *pred, bool footer)
{
    struct measured x;
    int64_t sorted[COLUMN_MAX];
    struct trial trials[2];

    x.m = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i] == METRIC_NA)
            continue;
        x.at[x.m] = (uint8_t)i;
        x.v[x.m++] = v[i];
    }
    if (!x.m || bits->cap < (bits->bit + 7) / 8 + COLUMN_BITS_MAX)
        return LT_ELIMIT;
    memcpy(sorted, x.v, x.m * sizeof *sorted);
    column_sort(sorted, x.m);
    const struct trial *t = choose(&x, sorted, pred, trials);
    struct column_head h = t->h;
    h.sparse = x.m < n;
    h.last = x.v[x.m - 1];
    h.min = sorted[0];
    h.max = sorted[x.m - 1];
    h.p10 = sorted[column_p10_index(x.m)];
    int rc = write_head(heads, &h, footer, trials[0].h.unit);
    if (rc)
        return rc;
    if (h.sparse)
        for (size_t i = 0; i < n; i++)
            bits_put(bits, v[i] != METRIC_NA, 1);
    write_bits(bits, &h, t->r, t->count);
    return 0;
}

/* ---- reading ---- */

static int read_footer(const uint8_t *p, size_t len, size_t *pos, struct column_head *h)
{
    uint64_t last, below, above, p10;
    if (varint_get(p, len, pos, &last) || varint_get(p, len, pos, &below) || varint_get(p, len, pos, &above) ||
        varint_get(p, len, pos, &p10))
        return LT_ECORRUPT;
    int64_t u = (int64_t)h->unit, l, b, a, t;
    if (__builtin_mul_overflow(unzigzag(last), u, &l) || __builtin_mul_overflow((int64_t)below, u, &b) ||
        __builtin_mul_overflow((int64_t)above, u, &a) || __builtin_mul_overflow((int64_t)p10, u, &t))
        return LT_ECORRUPT;
    h->last = add(h->first, l);
    h->min = sub(h->first, b);
    h->max = add(h->first, a);
    h->p10 = add(h->min, t);
    /* Invariant C4. */
    bool ordered = 0 <= h->min && h->min <= h->p10 && h->p10 <= h->max && h->min <= h->last && h->last <= h->max &&
                   h->min <= h->first && h->first <= h->max;
    return ordered ? 0 : LT_ECORRUPT;
}

static int read_exceptions(const uint8_t *p, size_t len, size_t *pos, struct column_head *h)
{
    if (len - *pos < 2)
        return LT_ECORRUPT;
    h->exc_n = p[(*pos)++];
    h->exc_width = p[(*pos)++];
    return h->exc_n && h->exc_n < COLUMN_MAX && h->exc_width <= 64 && h->width < 64 ? 0 : LT_ECORRUPT;
}

int column_head_read(const uint8_t *p, size_t len, size_t *pos, size_t n, bool footer, struct column_head *ret)
{
    struct column_head h = {0};
    uint64_t u;
    if (*pos >= len || p[*pos] > TAG_ALL || !n || n > COLUMN_MAX)
        return LT_ECORRUPT;
    unsigned tag = p[(*pos)++];
    h.transform = tag & TAG_TRANSFORM;
    h.sparse = tag & TAG_SPARSE;
    if (footer || h.transform != COLUMN_PRED) {
        if (varint_get(p, len, pos, &u) || u > INT64_MAX || varint_get(p, len, pos, &h.unit) || !h.unit || h.unit > INT64_MAX)
            return LT_ECORRUPT;
        h.first = h.start = (int64_t)u;
    }
    if (footer && read_footer(p, len, pos, &h))
        return LT_ECORRUPT;
    if (h.transform == COLUMN_PRED) {
        if (varint_get(p, len, pos, &u) || varint_get(p, len, pos, &h.unit) || !h.unit)
            return LT_ECORRUPT;
        h.start = unzigzag(u);
    }
    if (*pos >= len || p[*pos] > 64)
        return LT_ECORRUPT;
    h.width = p[(*pos)++];
    if (varint_get(p, len, pos, &u))
        return LT_ECORRUPT;
    h.base = unzigzag(u);
    if ((tag & TAG_EXCEPTIONS) && read_exceptions(p, len, pos, &h))
        return LT_ECORRUPT;
    *ret = h;
    return 0;
}

static size_t residual_count(const struct column_head *h, size_t m)
{
    return h->transform == COLUMN_FOR || h->transform == COLUMN_PRED ? m : m - 1;
}

static size_t count_ones(const uint8_t *p, size_t bit, size_t n)
{
    size_t ones = 0;
    for (size_t i = 0; i < n; i++)
        ones += (p[(bit + i) >> 3] >> ((bit + i) & 7)) & 1;
    return ones;
}

int column_bits_len(const struct column_head *h, const uint8_t *p, size_t bit, size_t nbits, size_t n, size_t *ret_len,
                    size_t *ret_measured)
{
    size_t len = h->sparse ? n : 0, m = n;
    if (bit + len > nbits)
        return LT_ECORRUPT;
    if (h->sparse)
        m = count_ones(p, bit, n);
    if (!m)
        return LT_ECORRUPT;
    size_t count = residual_count(h, m);
    if (h->exc_n > count)
        return LT_ECORRUPT;
    len += count * h->width;
    if (h->exc_n)
        len += h->exc_n * (size_t)(position_bits(count) + h->exc_width);
    if (bit + len > nbits)
        return LT_ECORRUPT;
    *ret_len = len;
    if (ret_measured)
        *ret_measured = m;
    return 0;
}

/* Unpacks the residuals, exceptions put in place. */
static int read_residuals(const struct column_head *h, const uint8_t *p, size_t bit, size_t count, int64_t *r)
{
    if (!h->width) {
        for (size_t i = 0; i < count; i++)
            r[i] = h->base;
    } else {
        for (size_t i = 0; i < count; i++, bit += h->width)
            r[i] = add(h->base, (int64_t)bits_get(p, bit, h->width));
    }
    for (unsigned e = 0; e < h->exc_n; e++) {
        size_t at = bits_get(p, bit, position_bits(count));
        bit += position_bits(count);
        if (at >= count)
            return LT_ECORRUPT;
        r[at] = add(h->base, unzigzag(bits_get(p, bit, h->exc_width)));
        bit += h->exc_width;
    }
    return 0;
}

/* Residuals to values of the m measured samples. */
static void undo_transform(const struct column_head *h, const int64_t *r, size_t m, int64_t *v)
{
    uint64_t at = (uint64_t)h->start, unit = h->unit, slope = 0;
    if (h->transform == COLUMN_FOR || h->transform == COLUMN_PRED) {
        for (size_t i = 0; i < m; i++)
            v[i] = (int64_t)(at + (uint64_t)r[i] * unit);
        return;
    }
    v[0] = h->start;
    for (size_t i = 1; i < m; i++) {
        uint64_t step = slope + (uint64_t)r[i - 1] * unit;
        at += step;
        v[i] = (int64_t)at;
        if (h->transform == COLUMN_DELTA2)
            slope = step;
    }
}

/* Spreads m values over the n samples by the bitmap at `bit`, from the end so that out may hold v. */
static void spread(const uint8_t *p, size_t bit, size_t n, size_t m, int64_t *out)
{
    for (size_t i = n; i-- > 0;) {
        bool set = (p[(bit + i) >> 3] >> ((bit + i) & 7)) & 1;
        out[i] = set ? out[--m] : METRIC_NA;
    }
}

int column_decode(const struct column_head *h, const uint8_t *p, size_t bit, size_t n, const int64_t *pred, int64_t *out)
{
    int64_t r[COLUMN_MAX];
    size_t m = h->sparse ? count_ones(p, bit, n) : n;
    int rc = read_residuals(h, p, bit + (h->sparse ? n : 0), residual_count(h, m), r);
    if (rc)
        return rc;
    undo_transform(h, r, m, out);
    if (h->sparse)
        spread(p, bit, n, m, out);
    if (h->transform != COLUMN_PRED && !h->sparse) {
        int64_t any = 0;
        for (size_t i = 0; i < n; i++)
            any |= out[i];
        return any < 0 ? LT_ECORRUPT : 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (h->sparse && !((p[(bit + i) >> 3] >> ((bit + i) & 7)) & 1))
            continue;
        if (h->transform == COLUMN_PRED) {
            if (!pred || pred[i] == METRIC_NA)
                return LT_ECORRUPT;
            out[i] = add(out[i], pred[i]);
        }
        if (out[i] < 0)
            return LT_ECORRUPT;
    }
    return 0;
}
