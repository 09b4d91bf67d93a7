#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/random.h"

static void test_aligned_and_apart(void **state)
{
    struct arena a;
    struct { uint8_t *p; size_t n; } blocks[500];
    struct random rnd = { 5 };

    (void)state;
    arena_init(&a, 1 << 20);
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
        blocks[i].n = random_below(&rnd, 300);
        blocks[i].p = arena_alloc(&a, blocks[i].n);
        assert_non_null(blocks[i].p);
        assert_int_equal((uintptr_t)blocks[i].p % 16, 0);
        memset(blocks[i].p, (int)i, blocks[i].n);
    }
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        for (size_t k = 0; k < blocks[i].n; k++)
            assert_int_equal(blocks[i].p[k], i & 0xff);
    arena_release(&a);
}

static void test_bound(void **state)
{
    struct arena a;

    (void)state;
    arena_init(&a, 100);
    assert_null(arena_alloc(&a, 101));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_null(arena_zalloc(&a, SIZE_MAX / 2, 3));
    assert_non_null(arena_alloc(&a, 96));
    assert_null(arena_alloc(&a, 16));
    arena_reset(&a);
    assert_non_null(arena_alloc(&a, 96));
    arena_release(&a);
    arena_init(&a, SIZE_MAX);
    assert_null(arena_alloc(&a, SIZE_MAX - 64));
    arena_release(&a);
}

static void test_zeroed_and_strings(void **state)
{
    struct arena a;
    static const char raw[3] = { 'x', 'y', 'z' };
    uint8_t *p;

    (void)state;
    arena_init(&a, 100000);
    memset(arena_alloc(&a, 1000), 0xff, 1000);
    arena_reset(&a);
    p = arena_zalloc(&a, 10, 100);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(p[i], 0);
    assert_string_equal(arena_strndup(&a, raw, 3), "xyz");
    assert_string_equal(arena_strndup(&a, "ab", 50), "ab");
    assert_string_equal(arena_strndup(&a, "ab", 0), "");
    arena_release(&a);
}

/* After one tick of the peak size, further ticks of that size allocate nothing. */
static void test_steady_load_allocates_nothing(void **state)
{
    struct arena a;
    uint64_t total = 0;

    (void)state;
    arena_init(&a, 1 << 24);
    for (int tick = 0; tick < 20; tick++) {
        if (tick == 2)
            total = mem_total_allocs();
        for (int i = 0; i < 1000; i++)
            assert_non_null(arena_alloc(&a, (size_t)(i % 90)));
        arena_reset(&a);
        assert_int_equal(a.used, 0);
    }
    assert_int_equal(mem_total_allocs(), total);
    arena_release(&a);
}

static int two_ticks(void *ctx)
{
    struct arena a;
    int r = 0;

    (void)ctx;
    arena_init(&a, 1 << 20);
    for (int tick = 0; tick < 2; tick++) {
        for (int i = 0; i < 300; i++)
            if (!arena_alloc(&a, 100))
                r = LT_ENOMEM;
        arena_reset(&a);
    }
    arena_release(&a);
    return r;
}

static void test_no_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(two_ticks, NULL);
}

HARNESS_MAIN(CASE(test_aligned_and_apart), CASE(test_bound), CASE(test_zeroed_and_strings),
             CASE(test_steady_load_allocates_nothing), CASE(test_no_memory))
