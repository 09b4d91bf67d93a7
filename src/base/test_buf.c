#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/random.h"

static void test_is_a_string_from_the_start(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 10);
    assert_string_equal(b.p, "");
    buf_clear(&b);
    buf_release(&b);
    assert_string_equal(b.p, "");
}

static void test_append_up_to_the_maximum(void **state)
{
    _cleanup_buf_ struct buf b;

    (void)state;
    buf_init(&b, 5);
    assert_int_equal(buf_puts(&b, "abc"), 0);
    assert_int_equal(buf_putc(&b, 'd'), 0);
    assert_int_equal(buf_append(&b, "ef", 2), LT_ELIMIT);
    assert_string_equal(b.p, "abcd");
    assert_int_equal(buf_append(&b, NULL, 0), 0);
    assert_int_equal(buf_putc(&b, 'e'), 0);
    assert_int_equal(buf_putc(&b, 'f'), LT_ELIMIT);
    assert_string_equal(b.p, "abcde");
    assert_int_equal(b.len, 5);
    buf_clear(&b);
    assert_string_equal(b.p, "");
    assert_int_equal(buf_puts(&b, "12345"), 0);
}

static void test_zero_maximum_and_huge_reserve(void **state)
{
    _cleanup_buf_ struct buf none, huge;

    (void)state;
    buf_init(&none, 0);
    assert_int_equal(buf_putc(&none, 'x'), LT_ELIMIT);
    assert_int_equal(buf_append(&none, "", 0), 0);
    buf_init(&huge, SIZE_MAX);
    assert_int_equal(buf_reserve(&huge, SIZE_MAX), LT_ELIMIT);
    assert_int_equal(buf_putc(&huge, 'x'), 0);
    assert_int_equal(buf_reserve(&huge, SIZE_MAX), LT_ELIMIT);
    assert_string_equal(huge.p, "x");
}

static void test_printf(void **state)
{
    _cleanup_buf_ struct buf b;

    (void)state;
    buf_init(&b, 100);
    assert_int_equal(buf_printf(&b, "%d-%s", 1, "a"), 0);
    assert_int_equal(buf_printf(&b, "%60d", 7), 0);
    assert_int_equal(b.len, 63);
    assert_int_equal(buf_printf(&b, "%60d", 7), LT_ELIMIT);
    assert_int_equal(b.len, 63);
    assert_int_equal(strlen(b.p), 63);
    assert_int_equal(buf_printf(&b, "%37d", 7), 0);
    assert_int_equal(b.len, 100);
    assert_int_equal(buf_printf(&b, "%s", ""), 0);
}

static void test_reserve_means_no_allocation(void **state)
{
    _cleanup_buf_ struct buf b;
    uint64_t total;

    (void)state;
    buf_init(&b, 1000);
    assert_int_equal(buf_reserve(&b, 1000), 0);
    total = mem_total_allocs();
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_putc(&b, 'x'), 0);
    assert_int_equal(mem_total_allocs(), total);
}

static int build(void *ctx)
{
    _cleanup_buf_ struct buf b;
    int r;

    (void)ctx;
    buf_init(&b, 10000);
    for (int i = 0; i < 200; i++) {
        size_t len = b.len;

        r = i % 2 ? buf_printf(&b, "%d,", i) : buf_put_varint(&b, (uint64_t)i << 30);
        if (r < 0) {
            assert_int_equal(b.len, len);
            assert_int_equal(b.p[len], 0);
            return r;
        }
    }
    return 0;
}

static void test_no_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(build, NULL);
}

static void test_varint_edges(void **state)
{
    static const struct { uint64_t v; size_t bytes; } rows[] = {
        { 0, 1 }, { 127, 1 }, { 128, 2 }, { 16383, 2 }, { 16384, 3 }, { UINT32_MAX, 5 }, { UINT64_MAX >> 1, 9 },
        { UINT64_MAX, 10 },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        _cleanup_buf_ struct buf b;
        size_t pos = 0;
        uint64_t v = 1;

        buf_init(&b, 16);
        assert_int_equal(buf_put_varint(&b, rows[i].v), 0);
        assert_int_equal(b.len, rows[i].bytes);
        for (size_t cut = 0; cut < b.len; cut++) {
            assert_int_equal(varint_get((const uint8_t *)b.p, cut, &pos, &v), LT_ECORRUPT);
            assert_int_equal(pos, 0);
        }
        assert_int_equal(varint_get((const uint8_t *)b.p, b.len, &pos, &v), 0);
        assert_true(v == rows[i].v);
        assert_int_equal(pos, b.len);
    }
}

static void test_varint_over_64_bits(void **state)
{
    uint8_t bytes[11];
    size_t pos = 0;
    uint64_t v = 42;

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(varint_get(bytes, sizeof bytes, &pos, &v), LT_ECORRUPT);
    bytes[9] = 0x02;
    assert_int_equal(varint_get(bytes, sizeof bytes, &pos, &v), LT_ECORRUPT);
    bytes[9] = 0x81;
    assert_int_equal(varint_get(bytes, sizeof bytes, &pos, &v), LT_ECORRUPT);
    assert_int_equal(v, 42);
    bytes[9] = 0x01;
    assert_int_equal(varint_get(bytes, sizeof bytes, &pos, &v), 0);
    assert_true(v == UINT64_MAX);
    pos = sizeof bytes;
    assert_int_equal(varint_get(bytes, sizeof bytes, &pos, &v), LT_ECORRUPT);
}

/* Any mix of values comes back, also with the signs folded. */
static void test_varint_roundtrip(void **state)
{
    struct random rnd = { 1 };

    (void)state;
    for (int round = 0; round < 200; round++) {
        _cleanup_buf_ struct buf b;
        uint64_t values[50], v;
        size_t pos = 0;

        buf_init(&b, 1000);
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
            values[i] = random_u64(&rnd) >> random_below(&rnd, 64);
            assert_int_equal(buf_put_varint(&b, values[i]), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
            assert_int_equal(varint_get((const uint8_t *)b.p, b.len, &pos, &v), 0);
            assert_true(v == values[i]);
            assert_true(zigzag(unzigzag(v)) == v);
            assert_true(unzigzag(zigzag((int64_t)v)) == (int64_t)v);
        }
        assert_int_equal(pos, b.len);
    }
}

static void test_zigzag(void **state)
{
    (void)state;
    assert_true(zigzag(0) == 0 && zigzag(-1) == 1 && zigzag(1) == 2 && zigzag(-2) == 3);
    assert_true(zigzag(INT64_MIN) == UINT64_MAX && unzigzag(UINT64_MAX) == INT64_MIN);
    assert_true(zigzag(INT64_MAX) == UINT64_MAX - 1 && unzigzag(UINT64_MAX - 1) == INT64_MAX);
}

/* Published check values: "123456789", and the four 32-byte ones of RFC 3720 B.4. */
static void test_crc32c_known_values(void **state)
{
    uint8_t block[32];

    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
    memset(block, 0, sizeof block);
    assert_int_equal(crc32c(0, block, sizeof block), 0x8a9136aa);
    memset(block, 0xff, sizeof block);
    assert_int_equal(crc32c(0, block, sizeof block), 0x62a8ab43);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)i;
    assert_int_equal(crc32c(0, block, sizeof block), 0x46dd794e);
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(31 - i);
    assert_int_equal(crc32c(0, block, sizeof block), 0x113fdb5c);
}

static void test_crc32c_both_paths_and_pieces(void **state)
{
    struct random rnd = { 2 };
    uint8_t data[300];

    (void)state;
    for (int round = 0; round < 500; round++) {
        size_t begin = random_below(&rnd, 9), len = random_below(&rnd, sizeof data - begin);
        size_t cut = len ? random_below(&rnd, len) : 0;
        uint32_t whole;

        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)random_u64(&rnd);
        whole = crc32c(0, data + begin, len);
        assert_int_equal(whole, crc32c_portable(0, data + begin, len));
        assert_int_equal(whole, crc32c(crc32c(0, data + begin, cut), data + begin + cut, len - cut));
        assert_int_equal(whole, crc32c_portable(crc32c(0, data + begin, cut), data + begin + cut, len - cut));
    }
}

HARNESS_MAIN(CASE(test_is_a_string_from_the_start), CASE(test_append_up_to_the_maximum),
             CASE(test_zero_maximum_and_huge_reserve), CASE(test_printf), CASE(test_reserve_means_no_allocation),
             CASE(test_no_memory), CASE(test_varint_edges), CASE(test_varint_over_64_bits), CASE(test_varint_roundtrip),
             CASE(test_zigzag), CASE(test_crc32c_known_values), CASE(test_crc32c_both_paths_and_pieces))
