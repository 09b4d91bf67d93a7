#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "lib/harness.h"
#include "lib/random.h"

static void test_put_get_remove(void **state)
{
    _cleanup_map_ struct map m;
    uint64_t v = 1;
    size_t pos = 0;

    (void)state;
    map_init(&m, 10);
    assert_false(map_get(&m, 0, &v));
    assert_false(map_remove(&m, 0));
    assert_null(map_next(&m, &pos));
    assert_int_equal(map_put(&m, 0, 7), 0);
    assert_int_equal(map_put(&m, UINT64_MAX, 8), 0);
    assert_int_equal(map_put(&m, 0, 9), 0);
    assert_int_equal(m.n, 2);
    assert_true(map_get(&m, 0, &v));
    assert_int_equal(v, 9);
    assert_true(map_remove(&m, 0));
    assert_false(map_remove(&m, 0));
    assert_false(map_get(&m, 0, &v));
    assert_int_equal(v, 9);
    map_clear(&m);
    assert_int_equal(m.n, 0);
    assert_false(map_get(&m, UINT64_MAX, &v));
}

static void test_bound(void **state)
{
    _cleanup_map_ struct map m;

    (void)state;
    map_init(&m, 3);
    for (uint64_t k = 0; k < 3; k++)
        assert_int_equal(map_put(&m, k, k), 0);
    assert_int_equal(map_put(&m, 3, 3), LT_ELIMIT);
    assert_int_equal(map_put(&m, 2, 5), 0); /* replacing is not growing */
    assert_true(map_remove(&m, 0));
    assert_int_equal(map_put(&m, 3, 3), 0);
    assert_int_equal(map_reserve(&m, 4), LT_ELIMIT);
}

/* Reserved once, a map lives for ever at its full size without the heap, whatever comes and goes. */
static void test_no_allocation_at_full_size(void **state)
{
    _cleanup_map_ struct map m;
    struct random rnd = { 3 };
    uint64_t total;

    (void)state;
    map_init(&m, 1000);
    assert_int_equal(map_reserve(&m, 1000), 0);
    total = mem_total_allocs();
    for (uint64_t k = 0; k < 1000; k++)
        assert_int_equal(map_put(&m, k, k), 0);
    for (uint64_t k = 1000; k < 200000; k++) {
        size_t pos = random_below(&rnd, m.nslots);
        struct map_entry *e = map_next(&m, &pos);

        pos = 0;
        if (!e)
            e = map_next(&m, &pos);
        assert_true(map_remove(&m, e->key));
        assert_int_equal(map_put(&m, k, k), 0);
        assert_int_equal(m.n, 1000);
    }
    assert_int_equal(mem_total_allocs(), total);
}

#define MODEL_KEYS 300

/* Random work against the plainest model there is: an array with a slot for every key. */
static void test_against_model(void **state)
{
    struct random rnd = { 4 };

    (void)state;
    for (int round = 0; round < 20; round++) {
        _cleanup_map_ struct map m;
        struct { bool in; uint64_t value; } model[MODEL_KEYS] = { 0 };
        size_t n = 0, seen = 0, pos = 0;

        map_init(&m, MODEL_KEYS / 2);
        for (int step = 0; step < 5000; step++) {
            size_t i = random_below(&rnd, MODEL_KEYS);
            uint64_t key = i * UINT64_C(0x100000000), value = random_u64(&rnd), got = 0;

            if (random_below(&rnd, 2)) {
                int want = model[i].in || n < MODEL_KEYS / 2 ? 0 : LT_ELIMIT;

                assert_int_equal(map_put(&m, key, value), want);
                if (want == 0) {
                    n += !model[i].in;
                    model[i].in = true;
                    model[i].value = value;
                }
            } else {
                assert_int_equal(map_remove(&m, key), model[i].in);
                n -= model[i].in;
                model[i].in = false;
            }
            assert_int_equal(m.n, n);
            i = random_below(&rnd, MODEL_KEYS);
            assert_int_equal(map_get(&m, i * UINT64_C(0x100000000), &got), model[i].in);
            assert_true(!model[i].in || got == model[i].value);
        }
        for (struct map_entry *e; (e = map_next(&m, &pos)); seen++)
            assert_true(model[e->key >> 32].in && model[e->key >> 32].value == e->value);
        assert_int_equal(seen, n);
    }
}

static void test_remove_while_iterating(void **state)
{
    _cleanup_map_ struct map m;
    size_t pos = 0, seen = 0;

    (void)state;
    map_init(&m, 1000);
    for (uint64_t k = 0; k < 1000; k++)
        assert_int_equal(map_put(&m, k, k), 0);
    for (struct map_entry *e; (e = map_next(&m, &pos)); seen++)
        if (e->key % 2)
            assert_true(map_remove(&m, e->key));
    assert_int_equal(seen, 1000);
    assert_int_equal(m.n, 500);
    for (uint64_t k = 0; k < 1000; k++) {
        uint64_t v;

        assert_int_equal(map_get(&m, k, &v), k % 2 == 0);
    }
}

static int fill_map(void *ctx)
{
    _cleanup_map_ struct map m;

    (void)ctx;
    map_init(&m, 1000);
    for (uint64_t k = 0; k < 1000; k++) {
        int r = map_put(&m, k, k);

        if (r < 0) {
            uint64_t v;

            assert_int_equal(m.n, k);
            assert_true(k == 0 || (map_get(&m, k - 1, &v) && v == k - 1));
            return r;
        }
    }
    return 0;
}

static void test_map_no_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(fill_map, NULL);
}

static void test_strset(void **state)
{
    struct strset *s;
    uint32_t id;
    const char *first;

    (void)state;
    assert_int_equal(strset_new(&s, 5000, 100000), 0);
    assert_int_equal(strset_id(s, "abc", 3, &id), 0);
    assert_int_equal(id, 0);
    first = strset_str(s, 0);
    for (uint32_t i = 0; i < 4000; i++) {
        char text[32];
        size_t n = str_fmt(text, sizeof text, "/tmp/%u", i);

        assert_int_equal(strset_id(s, text, n, &id), 0);
        assert_int_equal(id, i + 1);
        assert_int_equal(strset_id(s, text, n, &id), 0);
        assert_int_equal(id, i + 1);
        assert_string_equal(strset_str(s, id), text);
    }
    assert_ptr_equal(strset_str(s, 0), first); /* strings stay where they are */
    assert_string_equal(first, "abc");
    assert_int_equal(strset_count(s), 4001);
    assert_null(strset_str(s, 4001));
    assert_int_equal(strset_id(s, "abcd", 3, &id), 0); /* only the first 3 bytes count */
    assert_int_equal(id, 0);
    assert_int_equal(strset_id(s, "", 0, &id), 0);
    assert_string_equal(strset_str(s, id), "");
    strset_clear(s);
    assert_int_equal(strset_count(s), 0);
    assert_int_equal(strset_id(s, "x", 1, &id), 0);
    assert_int_equal(id, 0);
    strset_free(s);
    strset_free(NULL);
}

static void test_strset_bounds(void **state)
{
    struct strset *s;
    uint32_t id = 77;

    (void)state;
    assert_int_equal(strset_new(&s, 2, 8), 0);
    assert_int_equal(strset_id(s, "abcdefgh", 8, &id), LT_ELIMIT); /* 9 bytes with its NUL */
    assert_int_equal(id, 77);
    assert_int_equal(strset_id(s, "abc", 3, &id), 0);
    assert_int_equal(strset_id(s, "def", 3, &id), 0);
    assert_int_equal(strset_id(s, "", 0, &id), LT_ELIMIT);
    assert_int_equal(strset_id(s, "abc", 3, &id), 0);
    strset_free(s);
}

static int fill_strset(void *ctx)
{
    struct strset *s;
    int r = strset_new(&s, 300, 1 << 20);
    char text[64] = { 0 };

    (void)ctx;
    for (int i = 0; r == 0 && i < 300; i++) {
        uint32_t id;

        memcpy(text, &i, sizeof i);
        r = strset_id(s, text, sizeof text, &id);
        if (r == 0)
            assert_int_equal(id, i);
        else
            assert_int_equal(strset_count(s), i);
    }
    if (mem_failed() && r == LT_ENOMEM && mem_live_blocks() == *(int64_t *)ctx)
        return r; /* strset_new itself failed: nothing to free */
    strset_free(s);
    return r;
}

static void test_strset_no_memory(void **state)
{
    int64_t before = mem_live_blocks();

    (void)state;
    harness_sweep_allocs(fill_strset, &before);
}

HARNESS_MAIN(CASE(test_put_get_remove), CASE(test_bound), CASE(test_no_allocation_at_full_size),
             CASE(test_against_model), CASE(test_remove_while_iterating), CASE(test_map_no_memory), CASE(test_strset),
             CASE(test_strset_bounds), CASE(test_strset_no_memory))
