/* Columns, chunks and sweep rows: whatever goes in comes out; whatever is not theirs is refused. */
#include <string.h>

#include "base/base.h"
#include "lib/harness.h"
#include "lib/random.h"
#include "store/chunk.h"
#include "store/sweep.h"

/* ---- columns ---- */

static int by_value(int64_t a, int64_t b) { return a < b ? -1 : a > b; }

/* One of many shapes of data. */
static void make_column(struct random *r, int64_t *v, size_t n, bool sparse)
{
    uint64_t shape = random_below(r, 10), wide = random_below(r, 63);
    int64_t at = (int64_t)(random_u64(r) >> (1 + random_below(r, 63))), unit = shape % 2 ? 4096 : 1;
    for (size_t i = 0; i < n; i++) {
        int64_t x = at;
        switch (shape) {
        case 0: break;
        case 1: x = at / unit * unit + (int64_t)random_below(r, 9) * unit; break;
        case 2: x = (int64_t)(random_u64(r) >> (63 - wide) >> 1); break;
        case 3: x = at / 2 + (int64_t)i * unit * 3; break;
        case 4: x = at / 2 + (int64_t)(i * i * 7); break;
        case 5: x = random_below(r, 40) ? 5 : (int64_t)(random_u64(r) >> 1); break;
        case 6: x = i < n / 2 ? 0 : INT64_MAX; break;
        case 7: x = INT64_MAX - (int64_t)random_below(r, 3); break;
        case 8: x = (int64_t)i * 10000000 + (int64_t)random_below(r, 4) * 10000000; break;
        default: x = (int64_t)random_below(r, 2);
        }
        v[i] = x < 0 ? 0 : x;
        if (sparse && random_below(r, 3) == 0)
            v[i] = METRIC_NA;
    }
    if (v[n / 2] == METRIC_NA)
        v[n / 2] = 7;
}

static void check_footer(const struct column_head *h, const int64_t *v, size_t n)
{
    int64_t sorted[COLUMN_MAX], first = METRIC_NA, last = METRIC_NA;
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i] != METRIC_NA) {
            first = m ? first : v[i];
            last = v[i];
            size_t j = m++;
            for (; j > 0 && by_value(sorted[j - 1], v[i]) > 0; j--)
                sorted[j] = sorted[j - 1];
            sorted[j] = v[i];
        }
    assert_true(h->first == first && h->last == last && h->min == sorted[0] && h->max == sorted[m - 1]);
    assert_true(h->p10 == sorted[(m + 9) / 10 - 1]);
}

static void test_columns_round_trip(void **state)
{
    static uint8_t heads_mem[COLUMN_HEAD_MAX], bits_mem[COLUMN_BITS_MAX + COLUMN_PAD + 8];
    struct random r = {1};
    (void)state;
    for (int round = 0; round < 40000; round++) {
        int64_t v[COLUMN_MAX], pred[COLUMN_MAX], out[COLUMN_MAX];
        size_t n = 1 + random_below(&r, COLUMN_MAX), lead = random_below(&r, 8), pos = 0, len, measured, expect = 0;
        bool footer = random_below(&r, 2), predicted = random_below(&r, 2);
        make_column(&r, v, n, random_below(&r, 3) == 0);
        for (size_t i = 0; i < n; i++) {
            pred[i] = predicted && v[i] != METRIC_NA ? v[i] / 2 + (int64_t)random_below(&r, 1 + (uint64_t)round % 5) : 3;
            expect += v[i] != METRIC_NA;
        }
        struct column_heads heads = {heads_mem, sizeof heads_mem, 0};
        struct column_bits bits = {bits_mem, sizeof bits_mem, lead};
        memset(bits_mem, 0, sizeof bits_mem);
        assert_int_equal(column_encode(&heads, &bits, v, n, predicted ? pred : NULL, footer), 0);
        struct column_head h;
        assert_int_equal(column_head_read(heads_mem, heads.len, &pos, n, footer, &h), 0);
        assert_int_equal(pos, heads.len);
        assert_int_equal(column_bits_len(&h, bits_mem, lead, bits.bit, n, &len, &measured), 0);
        assert_int_equal(lead + len, bits.bit);
        assert_int_equal(measured, expect);
        assert_int_equal(column_decode(&h, bits_mem, lead, n, pred, out), 0);
        assert_memory_equal(out, v, n * sizeof *v);
        if (footer)
            check_footer(&h, v, n);
    }
}

/* What makes the store small: the forms that fit the data are found. */
static void test_columns_are_small(void **state)
{
    static uint8_t heads_mem[COLUMN_HEAD_MAX], bits_mem[COLUMN_BITS_MAX + COLUMN_PAD];
    int64_t v[COLUMN_MAX], pred[COLUMN_MAX];
    static const size_t at_most[] = {14, 24, 20, 100, 20};
    (void)state;
    for (int shape = 0; shape < 5; shape++) {
        struct random r = {7};
        for (int64_t i = 0; i < COLUMN_MAX; i++) {
            int64_t noise = (int64_t)random_below(&r, 16);
            switch (shape) {
            case 0: v[i] = 123 * 4096; break;                                  /* constant */
            case 1: v[i] = i == 40 ? 900 : 20; break;                          /* one spike */
            case 2: v[i] = (1000 + i * 3) * 4096; break;                       /* a straight line */
            case 3: v[i] = (100000 + noise) * 4096; break;                     /* noise of 16 pages: 4 bits */
            default: pred[i] = (100000 + noise) * 4096; v[i] = pred[i] + 8192; /* a sum */
            }
        }
        struct column_heads heads = {heads_mem, sizeof heads_mem, 0};
        struct column_bits bits = {bits_mem, sizeof bits_mem, 0};
        memset(bits_mem, 0, sizeof bits_mem);
        assert_int_equal(column_encode(&heads, &bits, v, COLUMN_MAX, shape == 4 ? pred : NULL, true), 0);
        assert_in_range(heads.len + (bits.bit + 7) / 8, 1, at_most[shape]);
    }
}

/* ---- chunks ---- */

static struct chunk in, out;
static struct chunk_scratch scratch;
static struct chunk_view view;

static void make_chunk(struct random *r, enum chunk_form form)
{
    in.form = form;
    in.n = 1 + random_below(r, COLUMN_MAX);
    in.mask = random_u64(r) & ((UINT64_C(1) << METRIC_N) - 1);
    in.ts[0] = (int64_t)random_below(r, UINT64_C(1) << 41);
    in.prev_ms = random_below(r, 2) ? CHUNK_NO_PREV : in.ts[0] - 1 - (int64_t)random_below(r, 1000000);
    for (size_t i = 0; i < in.n; i++) {
        if (i)
            in.ts[i] = in.ts[i - 1] + 30000 + (int64_t)random_below(r, 5) - 2;
        in.count[i] = form == CHUNK_RAW ? 1 : 10;
    }
    for (int m = 0; m < METRIC_N; m++)
        for (int k = 0; k < (form == CHUNK_RAW ? 1 : PART_N); k++)
            make_column(r, in.v[m][k], in.n, form == CHUNK_RAW && random_below(r, 4) == 0);
    if (form == CHUNK_RAW && random_below(r, 2)) /* what statm gives */
        for (size_t i = 0; i < in.n; i++) {
            in.v[METRIC_RSS_ANON][0][i] /= 4;
            in.v[METRIC_RSS_FILE][0][i] /= 4;
            in.v[METRIC_RSS_SHMEM][0][i] = 0;
            in.v[METRIC_RSS][0][i] = MAX(in.v[METRIC_RSS_ANON][0][i], 0) + MAX(in.v[METRIC_RSS_FILE][0][i], 0);
        }
}

static void check_decoded(uint64_t wanted)
{
    assert_int_equal(chunk_decode(&view, in.ts[0], wanted, &out), 0);
    assert_true(out.n == in.n && out.mask == (in.mask & wanted) && out.prev_ms == in.prev_ms);
    assert_memory_equal(out.ts, in.ts, in.n * sizeof *in.ts);
    assert_memory_equal(out.count, in.count, in.n * sizeof *in.count);
    for (uint64_t left = out.mask; left; left &= left - 1)
        for (int k = 0; k < (in.form == CHUNK_RAW ? 1 : PART_N); k++) {
            int m = __builtin_ctzll(left);
            assert_memory_equal(out.v[m][k], in.v[m][k], in.n * sizeof(int64_t));
        }
}

static void test_chunks_round_trip(void **state)
{
    struct random r = {2};
    (void)state;
    for (int round = 0; round < 400; round++) {
        size_t len;
        uint64_t values = 0;
        make_chunk(&r, round % 2 ? CHUNK_RAW : CHUNK_BINS);
        assert_int_equal(chunk_encode(&in, &scratch, &len), 0);
        assert_int_equal(chunk_parse(&view, scratch.out, len), 0);
        check_decoded(UINT64_MAX);
        check_decoded(random_u64(&r));
        check_decoded(UINT64_C(1) << METRIC_RSS);
        for (uint64_t left = in.mask; left; left &= left - 1)
            for (int k = 0; k < (in.form == CHUNK_RAW ? 1 : PART_N); k++)
                for (size_t i = 0; i < in.n; i++)
                    values += in.v[__builtin_ctzll(left)][k][i] != METRIC_NA;
        assert_int_equal(chunk_values(&view), values);
    }
}

/* Any change of the bytes is refused or gives a chunk that keeps every promise: times ascend, values are measured or NA. */
static void test_broken_chunks_are_safe(void **state)
{
    struct random r = {3};
    (void)state;
    for (int round = 0; round < 3000; round++) {
        static uint8_t bytes[CHUNK_BYTES_MAX];
        size_t len;
        if (round % 100 == 0)
            make_chunk(&r, round % 200 ? CHUNK_RAW : CHUNK_BINS);
        assert_int_equal(chunk_encode(&in, &scratch, &len), 0);
        memcpy(bytes, scratch.out, len);
        for (uint64_t flips = 1 + random_below(&r, 3); flips; flips--)
            bytes[random_below(&r, len)] ^= (uint8_t)(1 << random_below(&r, 8));
        if (random_below(&r, 4) == 0)
            len = random_below(&r, len + 1);
        if (chunk_parse(&view, bytes, len) || chunk_decode(&view, in.ts[0], UINT64_MAX, &out))
            continue;
        for (size_t i = 1; i < out.n; i++)
            assert_true(out.ts[i] > out.ts[i - 1]);
        for (uint64_t left = out.mask; left; left &= left - 1)
            for (size_t i = 0; i < out.n; i++)
                assert_true(out.v[__builtin_ctzll(left)][0][i] >= METRIC_NA);
    }
}

/* ---- sweep rows ---- */

#define LIVES 300
struct kept { int64_t id[LIVES], v[LIVES][METRIC_N]; size_t n, seen; const struct kept *truth; };

static int64_t *find_slot(void *ctx, int64_t id)
{
    struct kept *k = ctx;
    for (size_t i = 0; i < k->n; i++)
        if (k->id[i] == id)
            return k->v[i];
    return NULL;
}

static int check_row(void *ctx, int64_t id, const int64_t *v)
{
    struct kept *k = ctx;
    for (size_t i = 0; i < k->n; i++)
        if (k->truth->id[i] == id) {
            assert_memory_equal(v, k->truth->v[i], sizeof k->truth->v[i]);
            k->seen++;
            return 0;
        }
    fail_msg("a life that was not written");
    return 0;
}

static int count_row(void *ctx, int64_t id, const int64_t *v)
{
    (void)id;
    assert_null(v);
    ++*(size_t *)ctx;
    return 0;
}

static void test_sweeps_round_trip(void **state)
{
    static struct kept now, was, back;
    static uint8_t rows[SWEEP_GROUP * SWEEP_ROW_MAX];
    _cleanup_buf_ struct buf b;
    struct random r = {4};
    (void)state;
    buf_init(&b, 1 << 20);
    now.n = back.n = LIVES;
    back.truth = &now;
    for (size_t i = 0; i < LIVES; i++)
        now.id[i] = back.id[i] = (i ? now.id[i - 1] : 0) + 1 + (int64_t)random_below(&r, i % 50 ? 3 : 5000);
    for (int sweep = 0; sweep < 60; sweep++) {
        struct sweep_writer w;
        bool key = sweep % SWEEP_KEY_EVERY == 0;
        size_t written = 0, ids = 0;
        if (key)
            memset(&was.v, 0xff, sizeof was.v), memset(&back.v, 0xff, sizeof back.v); /* all METRIC_NA */
        buf_clear(&b);
        assert_int_equal(sweep_begin(&w, &b, key ? SWEEP_KEY : SWEEP_DELTA, rows), 0);
        for (size_t i = 0; i < LIVES; i++) {
            for (int m = 0; m < METRIC_N; m++)
                if (sweep == 0 || random_below(&r, 5) == 0)
                    now.v[i][m] = random_below(&r, 9) ? (int64_t)(random_u64(&r) >> (1 + random_below(&r, 63))) : METRIC_NA;
            if (random_below(&r, 6) == 0)
                continue; /* not in this sweep */
            assert_int_equal(sweep_row(&w, now.id[i], now.v[i], was.v[i]), 0);
            memcpy(was.v[i], now.v[i], sizeof was.v[i]);
            written++;
        }
        assert_int_equal(sweep_end(&w), 0);
        struct sweep_reader all = {&back, find_slot, check_row, 1, INT64_MAX}, names = {&ids, NULL, count_row, 1, INT64_MAX};
        back.seen = 0;
        assert_int_equal(sweep_read(&all, (uint8_t *)b.p, b.len), 0);
        assert_int_equal(back.seen, written);
        assert_int_equal(sweep_read(&names, (uint8_t *)b.p, b.len), 0);
        assert_int_equal(ids, written);
        /* Cut anywhere, or with a bit flipped: no crash, and no more rows than there are. */
        ids = 0;
        b.p[random_below(&r, b.len)] ^= (char)(1 << random_below(&r, 8));
        sweep_read(&names, (uint8_t *)b.p, random_below(&r, b.len + 1));
        assert_true(ids <= b.len);
    }
}

static void test_idle_lives_cost_a_byte(void **state)
{
    static uint8_t rows[SWEEP_GROUP * SWEEP_ROW_MAX];
    _cleanup_buf_ struct buf b;
    struct sweep_writer w;
    int64_t v[METRIC_N] = {4096};
    (void)state;
    buf_init(&b, 1 << 20);
    assert_int_equal(sweep_begin(&w, &b, SWEEP_DELTA, rows), 0);
    for (int64_t id = 64; id < 64 + 6400; id++)
        assert_int_equal(sweep_row(&w, id, v, v), 0);
    assert_int_equal(sweep_end(&w), 0);
    assert_in_range(b.len, 6400, 6400 + 100 * 2 + 1);
}

HARNESS_MAIN(CASE(test_columns_round_trip), CASE(test_columns_are_small), CASE(test_chunks_round_trip), CASE(test_broken_chunks_are_safe),
             CASE(test_sweeps_round_trip), CASE(test_idle_lives_cost_a_byte))
