#include "store/chunk.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

/* What a metric of a raw chunk may be predicted from: the sum of others (FORMAT.md; append only, none is itself predicted
 * from a predicted one). statm gives resident = anonymous + file + shared, so RSS usually costs nothing. */
#define B(m) (UINT64_C(1) << METRIC_##m)
static const struct { int metric; uint64_t sum; } predictors[] = {
    {METRIC_RSS, B(RSS_ANON) | B(RSS_FILE) | B(RSS_SHMEM)},
    {METRIC_FDS, B(SOCKETS) | B(PIPES) | B(FILES) | B(ANON_INODES)},
    {METRIC_CONNECTIONS, B(TCP_ESTABLISHED) | B(TCP_CLOSE_WAIT) | B(TCP_OTHER)},
};
#undef B

_Static_assert(METRIC_N <= 64, "a metric mask has 64 bits");

static uint64_t sum_of(int metric)
{
    for (size_t i = 0; i < ARRAY_SIZE(predictors); i++)
        if (predictors[i].metric == metric)
            return predictors[i].sum;
    return 0;
}

/* The prediction of a raw column: false when a part of the sum is missing where it is needed (v, NULL: anywhere). */
static bool predict_sum(const struct chunk *c, uint64_t sum, const int64_t *v, int64_t *ret)
{
    if (!sum || (c->mask & sum) != sum)
        return false;
    for (size_t i = 0; i < c->n; i++) {
        uint64_t total = 0;
        bool na = false;
        for (uint64_t left = sum; left; left &= left - 1) {
            int64_t part = c->v[__builtin_ctzll(left)][0][i];
            na |= part == METRIC_NA;
            total += (uint64_t)part;
        }
        if (na && v && v[i] != METRIC_NA)
            return false;
        ret[i] = na ? METRIC_NA : (int64_t)(total & INT64_MAX);
    }
    return true;
}

/* ---- writing ---- */

/* Whether all values are measured and equal; in bins, over all five parts. */
static bool is_constant(const struct chunk *c, int m, int64_t *ret)
{
    size_t parts = c->form == CHUNK_RAW ? 1 : PART_N;
    int64_t first = c->v[m][0][0];
    for (size_t k = 0; k < parts; k++)
        for (size_t i = 0; i < c->n; i++)
            if (c->v[m][k][i] != first)
                return false;
    *ret = first;
    return first != METRIC_NA;
}

static int encode_metric(const struct chunk *c, int m, struct column_heads *heads, struct column_bits *bits)
{
    if (c->form == CHUNK_RAW) {
        int64_t pred[COLUMN_MAX];
        bool has = predict_sum(c, sum_of(m), c->v[m][0], pred);
        return column_encode(heads, bits, c->v[m][0], c->n, has ? pred : NULL, true);
    }
    for (int k = 0; k < PART_N; k++) {
        int rc = column_encode(heads, bits, c->v[m][k], c->n, k ? c->v[m][PART_MIN] : NULL, false);
        if (rc)
            return rc;
    }
    return 0;
}

static int encode_columns(const struct chunk *c, uint64_t packed, struct column_heads *heads, struct column_bits *bits)
{
    int64_t since[COLUMN_MAX];
    for (size_t i = 0; i < c->n; i++)
        since[i] = c->ts[i] - c->ts[0];
    int rc = column_encode(heads, bits, since, c->n, NULL, false);
    if (!rc && c->form == CHUNK_BINS)
        rc = column_encode(heads, bits, c->count, c->n, NULL, false);
    for (; packed && !rc; packed &= packed - 1)
        rc = encode_metric(c, __builtin_ctzll(packed), heads, bits);
    return rc;
}

static size_t put_varint(uint8_t *p, size_t at, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        p[at++] = (uint8_t)(v | 0x80);
    p[at++] = (uint8_t)v;
    return at;
}

int chunk_encode(const struct chunk *c, struct chunk_scratch *s, size_t *ret_len)
{
    uint64_t zero = 0, constant = 0;
    int64_t value[METRIC_N];
    struct column_heads heads = {s->heads, sizeof s->heads, 0};
    struct column_bits bits = {s->bits, sizeof s->bits, 0};

    for (uint64_t left = c->mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        if (is_constant(c, m, &value[m]))
            *(value[m] ? &constant : &zero) |= UINT64_C(1) << m;
    }
    int rc = encode_columns(c, c->mask & ~zero & ~constant, &heads, &bits);
    size_t nbytes = (bits.bit + 7) / 8, at = 0;
    if (!rc && heads.len + nbytes + METRIC_N * 10 + 64 > sizeof s->out)
        rc = LT_ELIMIT;
    if (!rc) {
        s->out[at++] = (uint8_t)c->form;
        at = put_varint(s->out, at, c->n);
        at = put_varint(s->out, at, c->prev_ms == CHUNK_NO_PREV ? 0 : (uint64_t)c->ts[0] - (uint64_t)c->prev_ms);
        at = put_varint(s->out, at, (uint64_t)(c->ts[c->n - 1] - c->ts[0]));
        at = put_varint(s->out, at, c->mask);
        at = put_varint(s->out, at, zero);
        at = put_varint(s->out, at, constant);
        for (uint64_t left = constant; left; left &= left - 1)
            at = put_varint(s->out, at, (uint64_t)value[__builtin_ctzll(left)]);
        memcpy(s->out + at, heads.p, heads.len);
        memcpy(s->out + at + heads.len, bits.p, nbytes);
        *ret_len = at + heads.len + nbytes;
    }
    memset(s->bits, 0, nbytes);
    return rc;
}

/* ---- reading ---- */

static int read_constants(struct chunk_view *v, size_t *pos)
{
    for (uint64_t left = v->constant; left; left &= left - 1) {
        uint64_t u;
        if (varint_get(v->data, v->len, pos, &u) || !u || u > INT64_MAX)
            return LT_ECORRUPT;
        v->constant_v[__builtin_ctzll(left)] = (int64_t)u;
    }
    return 0;
}

static int read_heads(struct chunk_view *v, size_t *pos)
{
    size_t parts = v->form == CHUNK_RAW ? 1 : PART_N, lead = v->form == CHUNK_RAW ? 1 : 2;
    uint64_t packed = v->present & ~v->zero & ~v->constant;
    v->nheads = lead + (size_t)__builtin_popcountll(packed) * parts;
    for (size_t i = 0; i < v->nheads; i++) {
        bool footer = i >= lead && v->form == CHUNK_RAW;
        int rc = column_head_read(v->data, v->len, pos, v->n, footer, &v->heads[i]);
        if (rc)
            return rc;
    }
    for (size_t i = lead; packed; packed &= packed - 1, i += parts)
        v->at[__builtin_ctzll(packed)] = (uint16_t)i;
    return 0;
}

static int place_bits(struct chunk_view *v, size_t pos)
{
    size_t bit = pos * 8, nbits = v->len * 8;
    for (size_t i = 0; i < v->nheads; i++) {
        size_t len, measured;
        if (column_bits_len(&v->heads[i], v->data, bit, nbits, v->n, &len, &measured))
            return LT_ECORRUPT;
        v->bit[i] = bit;
        v->measured[i] = (uint16_t)measured;
        bit += len;
    }
    return (bit + 7) / 8 == v->len ? 0 : LT_ECORRUPT; /* invariant K3: nothing behind the last column */
}

int chunk_parse(struct chunk_view *v, const void *p, size_t len)
{
    size_t pos = 1;
    uint64_t n, prev, span;
    if (len < 2 || len > CHUNK_BYTES_MAX)
        return LT_ECORRUPT;
    memcpy(v->data, p, len);
    memset(v->data + len, 0, COLUMN_PAD);
    v->len = len;
    if (v->data[0] != CHUNK_RAW && v->data[0] != CHUNK_BINS)
        return LT_ECORRUPT;
    v->form = v->data[0];
    if (varint_get(v->data, len, &pos, &n) || !n || n > COLUMN_MAX || varint_get(v->data, len, &pos, &prev) ||
        prev > INT64_MAX || varint_get(v->data, len, &pos, &span) || span > INT64_MAX || varint_get(v->data, len, &pos, &v->present) ||
        varint_get(v->data, len, &pos, &v->zero) || varint_get(v->data, len, &pos, &v->constant))
        return LT_ECORRUPT;
    v->n = n;
    v->prev_gap = (int64_t)prev;
    v->span_ms = (int64_t)span;
    if ((v->zero & v->constant) || ((v->zero | v->constant) & ~v->present))
        return LT_ECORRUPT; /* invariant K2 */
    if (read_constants(v, &pos) || read_heads(v, &pos))
        return LT_ECORRUPT;
    return place_bits(v, pos);
}

static int decode_times(const struct chunk_view *v, int64_t from_ms, struct chunk *c)
{
    if (column_decode(&v->heads[0], v->data, v->bit[0], v->n, NULL, c->ts))
        return LT_ECORRUPT;
    /* Invariant K4: starts at 0, strictly ascending, ends at the span. */
    if (c->ts[0] || c->ts[v->n - 1] != v->span_ms)
        return LT_ECORRUPT;
    for (size_t i = 1; i < v->n; i++)
        if (c->ts[i] <= c->ts[i - 1])
            return LT_ECORRUPT;
    for (size_t i = 0; i < v->n; i++)
        if (__builtin_add_overflow(c->ts[i], from_ms, &c->ts[i]))
            return LT_ECORRUPT;
    if (v->form == CHUNK_BINS)
        return column_decode(&v->heads[1], v->data, v->bit[1], v->n, NULL, c->count);
    for (size_t i = 0; i < v->n; i++)
        c->count[i] = 1;
    return 0;
}

static int decode_metric(const struct chunk_view *v, int m, struct chunk *c)
{
    uint64_t bit = UINT64_C(1) << m;
    size_t parts = v->form == CHUNK_RAW ? 1 : PART_N;
    if ((v->zero | v->constant) & bit) {
        int64_t value = v->zero & bit ? 0 : v->constant_v[m];
        for (size_t k = 0; k < parts; k++)
            for (size_t i = 0; i < v->n; i++)
                c->v[m][k][i] = value;
        return 0;
    }
    for (size_t k = 0; k < parts; k++) {
        size_t h = v->at[m] + k;
        int64_t sum[COLUMN_MAX];
        const int64_t *pred = NULL;
        if (v->heads[h].transform == COLUMN_PRED && v->form == CHUNK_RAW)
            pred = predict_sum(c, sum_of(m), NULL, sum) ? sum : NULL;
        else if (v->form == CHUNK_BINS && k)
            pred = c->v[m][PART_MIN];
        if (column_decode(&v->heads[h], v->data, v->bit[h], v->n, pred, c->v[m][k]))
            return LT_ECORRUPT;
    }
    return 0;
}

/* Whether a raw metric needs others to be unpacked before it. */
static bool is_predicted(const struct chunk_view *v, int m)
{
    uint64_t bit = UINT64_C(1) << m;
    return v->form == CHUNK_RAW && !((v->zero | v->constant) & bit) && v->heads[v->at[m]].transform == COLUMN_PRED;
}

int chunk_decode(const struct chunk_view *v, int64_t from_ms, uint64_t wanted, struct chunk *c)
{
    uint64_t known = METRIC_N < 64 ? (UINT64_C(1) << (METRIC_N & 63)) - 1 : UINT64_MAX;
    uint64_t want = v->present & known & wanted, late = 0;
    c->form = v->form;
    c->n = v->n;
    c->prev_ms = CHUNK_NO_PREV;
    if (v->prev_gap && __builtin_sub_overflow(from_ms, v->prev_gap, &c->prev_ms))
        return LT_ECORRUPT;
    c->mask = want;
    for (uint64_t left = want; left; left &= left - 1)
        if (is_predicted(v, __builtin_ctzll(left))) {
            late |= left & -left;
            c->mask |= sum_of(__builtin_ctzll(left)) & v->present;
        }
    int rc = decode_times(v, from_ms, c);
    for (uint64_t left = c->mask & ~late; left && !rc; left &= left - 1)
        rc = is_predicted(v, __builtin_ctzll(left)) ? LT_ECORRUPT : decode_metric(v, __builtin_ctzll(left), c);
    for (uint64_t left = late; left && !rc; left &= left - 1)
        rc = decode_metric(v, __builtin_ctzll(left), c);
    c->mask = want;
    return rc ? LT_ECORRUPT : 0;
}

bool chunk_footer(const struct chunk_view *v, int metric, int64_t ret[PART_N])
{
    uint64_t bit = UINT64_C(1) << metric;
    if (!(v->present & bit) || v->form != CHUNK_RAW)
        return false;
    if ((v->zero | v->constant) & bit) {
        for (int k = 0; k < PART_N; k++)
            ret[k] = v->zero & bit ? 0 : v->constant_v[metric];
        return true;
    }
    const struct column_head *h = &v->heads[v->at[metric]];
    ret[PART_MIN] = h->min;
    ret[PART_FIRST] = h->first;
    ret[PART_LAST] = h->last;
    ret[PART_P10] = h->p10;
    ret[PART_MAX] = h->max;
    return true;
}

uint64_t chunk_values(const struct chunk_view *v)
{
    size_t parts = v->form == CHUNK_RAW ? 1 : PART_N, lead = v->form == CHUNK_RAW ? 1 : 2;
    uint64_t total = (uint64_t)__builtin_popcountll(v->zero | v->constant) * v->n * parts;
    for (size_t i = lead; i < v->nheads; i++)
        total += v->measured[i];
    return total;
}
