#include "store/sweep.h"

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/column.h"

/* A changed value is 0 (became NA), 1 (eight raw bytes follow), or 2 + a number whose two low bits name the unit that the
 * difference was divided by and whose rest is its zigzag form. */
static const int64_t units[4] = {1, 4096, 1000000, 10000000}; /* things, pages, milliseconds, clock ticks */
enum { CHANGE_NA = 0, CHANGE_RAW = 1, CHANGE_UNITS = 2, ROW_CHANGED = 64 };

static size_t put_varint(uint8_t *p, size_t at, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        p[at++] = (uint8_t)(v | 0x80);
    p[at++] = (uint8_t)v;
    return at;
}

static size_t put_change(uint8_t *p, size_t at, int64_t v, int64_t prev)
{
    if (v < 0)
        return put_varint(p, at, CHANGE_NA);
    int64_t d = v - MAX(prev, 0);
    if (d > INT64_MAX / 16 || d < INT64_MIN / 16) {
        at = put_varint(p, at, CHANGE_RAW);
        memcpy(p + at, &v, sizeof v);
        return at + sizeof v;
    }
    uint64_t u = 0;
    for (uint64_t i = ARRAY_SIZE(units) - 1; i > 0 && !u; i--)
        if (d % units[i] == 0)
            u = i;
    return put_varint(p, at, CHANGE_UNITS + (zigzag(d / units[u]) << 2 | u));
}

int sweep_begin(struct sweep_writer *w, struct buf *out, enum sweep_kind kind, uint8_t *rows)
{
    *w = (struct sweep_writer){.out = out, .group = -1, .last_group = -1, .rows = rows};
    return buf_putc(out, (char)kind);
}

static int flush_group(struct sweep_writer *w)
{
    if (w->group < 0)
        return 0;
    int rc = buf_put_varint(w->out, (uint64_t)(w->group - w->last_group - 1));
    if (!rc)
        rc = buf_put_varint(w->out, w->len);
    if (!rc)
        rc = buf_append(w->out, w->rows, w->len);
    w->last_group = w->group;
    w->group = -1;
    w->len = 0;
    return rc;
}

int sweep_row(struct sweep_writer *w, int64_t life_id, const int64_t *v, const int64_t *prev)
{
    if (life_id / SWEEP_GROUP != w->group) {
        int rc = flush_group(w);
        if (rc)
            return rc;
        w->group = life_id / SWEEP_GROUP;
    }
    uint64_t mask = 0;
    for (int i = 0; i < METRIC_N; i++)
        if (v[i] != prev[i])
            mask |= UINT64_C(1) << i;
    uint8_t *p = w->rows;
    size_t at = w->len;
    p[at++] = (uint8_t)(life_id % SWEEP_GROUP | (mask ? ROW_CHANGED : 0));
    if (mask) {
        size_t which = at++;
        p[which] = 0;
        for (int b = 0; b < 8; b++)
            if (mask >> (8 * b) & 0xff) {
                p[which] |= (uint8_t)(1 << b);
                p[at++] = (uint8_t)(mask >> (8 * b));
            }
    }
    for (; mask; mask &= mask - 1)
        at = put_change(p, at, v[__builtin_ctzll(mask)], prev[__builtin_ctzll(mask)]);
    w->len = at;
    return 0;
}

int sweep_end(struct sweep_writer *w) { return flush_group(w); }

/* ---- reading ---- */

int sweep_kind_of(const uint8_t *p, size_t len) { return len && p[0] <= SWEEP_KEY ? p[0] : -1; }

/* Reads one changed value into *v (its previous value on entry). */
static int read_change(const uint8_t *p, size_t len, size_t *pos, int64_t *v)
{
    uint64_t u;
    int64_t d, next;
    if (varint_get(p, len, pos, &u))
        return LT_ECORRUPT;
    if (u == CHANGE_NA) {
        *v = METRIC_NA;
        return 0;
    }
    if (u == CHANGE_RAW) {
        if (len - *pos < sizeof next)
            return LT_ECORRUPT;
        memcpy(&next, p + *pos, sizeof next);
        *pos += sizeof next;
    } else {
        u -= CHANGE_UNITS;
        d = unzigzag(u >> 2);
        if (__builtin_mul_overflow(d, units[u & 3], &d) || __builtin_add_overflow(*v == METRIC_NA ? 0 : *v, d, &next))
            return LT_ECORRUPT;
    }
    if (next < 0)
        return LT_ECORRUPT;
    *v = next;
    return 0;
}

static int read_mask(const uint8_t *p, size_t len, size_t *pos, uint64_t *ret)
{
    uint64_t mask = 0;
    if (*pos >= len)
        return LT_ECORRUPT;
    unsigned which = p[(*pos)++];
    for (int b = 0; b < 8; b++) {
        if (!(which >> b & 1))
            continue;
        if (*pos >= len || !p[*pos])
            return LT_ECORRUPT;
        mask |= (uint64_t)p[(*pos)++] << (8 * b);
    }
    *ret = mask;
    return mask ? 0 : LT_ECORRUPT;
}

/* One row; `values` (NULL: the life does not matter) is brought up to date. */
static int read_row(const uint8_t *p, size_t len, size_t *pos, bool changed, int64_t *values)
{
    uint64_t mask = 0;
    if (changed && read_mask(p, len, pos, &mask))
        return LT_ECORRUPT;
    for (; mask; mask &= mask - 1) {
        int m = __builtin_ctzll(mask);
        int64_t unknown = 0; /* not wanted, or a metric of a newer build: stepped over */
        bool keep = values && m < METRIC_N;
        if (!keep) {
            uint64_t u;
            if (varint_get(p, len, pos, &u) || (u == CHANGE_RAW && len - *pos < sizeof unknown))
                return LT_ECORRUPT;
            *pos += u == CHANGE_RAW ? sizeof unknown : 0;
        } else if (read_change(p, len, pos, &values[m])) {
            return LT_ECORRUPT;
        }
    }
    return 0;
}

static int read_group(const struct sweep_reader *r, int64_t base, const uint8_t *p, size_t len)
{
    int last = -1;
    for (size_t pos = 0; pos < len;) {
        unsigned lead = p[pos++];
        int index = (int)(lead & (SWEEP_GROUP - 1));
        if (index <= last || lead >= 2 * ROW_CHANGED)
            return LT_ECORRUPT;
        last = index;
        int64_t id = base + index;
        bool wanted = id >= r->lo && id <= r->hi;
        int64_t *values = wanted && r->slot ? r->slot(r->ctx, id) : NULL;
        int rc = read_row(p, len, &pos, lead & ROW_CHANGED, values);
        if (!rc && (values || (wanted && !r->slot)))
            rc = r->row(r->ctx, id, values);
        if (rc)
            return rc;
    }
    return len ? 0 : LT_ECORRUPT;
}

int sweep_read(const struct sweep_reader *r, const uint8_t *p, size_t len)
{
    if (sweep_kind_of(p, len) < 0)
        return LT_ECORRUPT;
    int64_t group = -1;
    for (size_t pos = 1; pos < len;) {
        uint64_t skip, size;
        if (varint_get(p, len, &pos, &skip) || skip > INT32_MAX || varint_get(p, len, &pos, &size) || size > len - pos)
            return LT_ECORRUPT;
        group += 1 + (int64_t)skip;
        if (group > INT64_MAX / SWEEP_GROUP - 1)
            return LT_ECORRUPT;
        int64_t base = group * SWEEP_GROUP;
        if (base + SWEEP_GROUP > r->lo && base <= r->hi) {
            int rc = read_group(r, base, p + pos, size);
            if (rc)
                return rc;
        }
        pos += size;
    }
    return 0;
}
