/* The curves are what their labels say, and the same for the same seed; the figures are what the books say. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "score.h"

#define CASES 3

static struct curve *make(enum family_id f, unsigned number, bool no_leak)
{
    struct curve *c = curve_make(&(struct curve_options){ 11, f, number, 7, 300, no_leak });

    assert_non_null(c);
    return c;
}

static uint32_t crc_of(const struct curve *c)
{
    uint32_t crc = crc32c(0, c->requests, c->nbins * ENDPOINTS_MAX * sizeof *c->requests);

    for (size_t i = 0; i < c->nrows; i++) { /* by member: a row has padding */
        crc = crc32c(crc, &c->rows[i].ts_ns, sizeof c->rows[i].ts_ns);
        crc = crc32c(crc, c->rows[i].v, sizeof c->rows[i].v);
    }
    return crc;
}

static void test_same_seed_same_bytes(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILY_N; f++) {
        struct curve *a = make((enum family_id)f, 1, false), *other = make((enum family_id)f, 2, false);
        struct curve *b = make((enum family_id)f, 1, false);

        assert_int_equal(crc_of(a), crc_of(b));
        assert_int_not_equal(crc_of(a), crc_of(other));
        curve_free(a);
        curve_free(b);
        curve_free(other);
    }
}

/* Whole numbers only: these are the same on every machine, whatever its C library. */
static void test_draws_are_fixed(void **state)
{
    struct stream s = stream_of(&(struct curve_options){ .seed = 1, .family = FAMILY_OU, .number = 7 }, 3);
    uint32_t crc = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = (uint64_t)(draw(&s) * 0x1p53);

        crc = crc32c(crc, &v, sizeof v);
    }
    assert_int_equal(crc, 0x5fb48aff); /* also computed by a second program, not in C */
}

static double requests_from(const struct curve *c, double from_s)
{
    double n = 0;

    for (size_t b = (size_t)(from_s / c->bin_s); b < c->nbins; b++)
        for (size_t e = 0; e < c->endpoints; e++)
            n += c->requests[b * ENDPOINTS_MAX + e];
    return n;
}

/* What was leaked by the end of every life, summed: the curve against itself with nothing leaked. */
static double leaked(const struct curve *c, const struct curve *clean, enum value_id v)
{
    double sum = 0;

    assert_int_equal(c->nrows, clean->nrows);
    for (size_t i = 0; i < c->nrows; i++)
        if (i + 1 == c->nrows || c->rows[i + 1].life != c->rows[i].life)
            sum += (double)(c->rows[i].v[v] - clean->rows[i].v[v]);
    return sum;
}

static void check_memory(enum family_id f, unsigned number)
{
    struct curve *c = make(f, number, false), *clean = make(f, number, true);
    double got = leaked(c, clean, V_HEAP), want = c->label.kb_per_1k * 1024 / 1000 * requests_from(c, c->label.onset_s);

    assert_true(c->label.leak && c->label.per_week >= 0.08);
    /* gaps take the ends of lives away; a life is not seen to its very end */
    if (c->label.modifier != MODIFIER_GAPS && !(fabs(got - want) <= 0.05 * want))
        fail_msg("%s %u: leaked %g, label says %g", family_name(f), number, got, want);
    curve_free(c);
    curve_free(clean);
}

static void test_memory_leaks_are_as_labelled(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILY_N; f++)
        for (unsigned i = 0; i < CASES; i++)
            if ((family_truth((enum family_id)f) == TRUTH_CREEP || f == FAMILY_SAW_DAILY || f == FAMILY_SAW_MAXREQ))
                check_memory((enum family_id)f, i);
}

static void test_count_leaks_are_as_labelled(void **state)
{
    static const struct { enum family_id f; enum value_id v; } of[] = { { FAMILY_FD, V_FDS }, { FAMILY_THREAD, V_THREADS },
        { FAMILY_CHILD, V_CHILDREN }, { FAMILY_CONNECTION, V_CONNECTIONS }, { FAMILY_TMPFILE, V_TMPFILES } };

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(of); k++)
        for (unsigned i = 0; i < CASES; i++) {
            struct curve *c = make(of[k].f, i, false), *clean = make(of[k].f, i, true);
            double got = leaked(c, clean, of[k].v), want = c->label.count_per_request * requests_from(c, 0);

            assert_true(c->label.leak && got > 10 && fabs(got - want) < 5 * sqrt(want) + 0.02 * want);
            assert_true(leaked(c, clean, V_HEAP) == 0);
            curve_free(c);
            curve_free(clean);
        }
}

static void test_oom_saws_die_of_memory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10 * CASES; i++) {
        struct curve *c = make(FAMILY_SAW_OOM, i, false);

        if (c->nlives < 4 || c->nlives > 20)
            fail_msg("case %u: %zu lives", i, c->nlives);
        for (size_t l = 0; l + 1 < c->nlives; l++)
            assert_true(c->lives[l].oom && c->lives[l].end_ns == c->lives[l + 1].start_ns);
        curve_free(c);
    }
}

/* Outside the process: nothing within a life, more at every start. */
static void test_external_starts_rise(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        struct curve *c = make(FAMILY_EXT_BASE, i, false), *clean = make(FAMILY_EXT_BASE, i, true);
        double last = 0;

        assert_true(c->nlives >= 6 && c->label.class == TRUTH_EXTERNAL);
        for (size_t r = 1; r < c->nrows; r++) {
            double more = (double)(c->rows[r].v[V_HEAP] - clean->rows[r].v[V_HEAP]);

            if (c->rows[r].life == c->rows[r - 1].life)
                assert_true(fabs(more - last) <= 2);
            else
                assert_true(more > last);
            last = more;
        }
        curve_free(c);
        curve_free(clean);
    }
}

/* As many rises as the label's leak has jumps, and none of the seven days without one. */
static void test_stairs_go_on(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++) {
        struct curve *c = make(FAMILY_STAIR, i, false), *clean = make(FAMILY_STAIR, i, true);
        double last = 0, risen_ns = 0;
        size_t rises = 0;

        for (size_t r = 0; r < c->nrows; r++) {
            double more = (double)(c->rows[r].v[V_HEAP] - clean->rows[r].v[V_HEAP]), at = (double)(c->rows[r].ts_ns - c->rows[0].ts_ns);

            if (more > last + 2) {
                assert_true(at - risen_ns < 2.2 * DAY_S * 1e9);
                rises++;
                risen_ns = at;
            }
            last = fmax(last, more);
        }
        assert_true(rises >= 6 && rises <= 28 && risen_ns > 5.5 * DAY_S * 1e9);
        curve_free(c);
        curve_free(clean);
    }
}

static double lowest(const struct curve *c, double from_s, double to_s)
{
    int64_t begin = c->lives[0].start_ns;
    double least = INFINITY;

    for (size_t i = 0; i < c->nrows; i++) {
        double t = (double)(c->rows[i].ts_ns - begin) / 1e9;

        if (t >= from_s && t < to_s && c->lives[c->rows[i].life].ppid == 0)
            least = fmin(least, (double)c->rows[i].v[V_HEAP]);
    }
    return least;
}

static void test_healthy_ones_do_not_leak(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILY_N; f++)
        for (unsigned i = 0; i < CASES && !truth_is_leak(family_truth((enum family_id)f)); i++) {
            struct curve *c = make((enum family_id)f, i, false), *clean = make((enum family_id)f, i, true);
            double before = lowest(c, 5 * DAY_S, 6 * DAY_S), after = lowest(c, 6 * DAY_S, 7 * DAY_S);

            assert_true(!c->label.leak && isnan(c->label.onset_s) && c->label.kb_per_1k == 0);
            assert_int_equal(crc_of(c), crc_of(clean));
            if (c->label.class != TRUTH_STEP && isfinite(before) && isfinite(after) && after > before * 1.1)
                fail_msg("%s %u: the floor rose from %g to %g", family_name((enum family_id)f), i, before, after);
            curve_free(c);
            curve_free(clean);
        }
}

static void test_series_is_the_curve(void **state)
{
    struct curve *c = make(FAMILY_FLAT, 0, false);
    struct series *s = detect_series(c, &(struct detect_options){ 0 });
    struct series *cut = detect_series(c, &(struct detect_options){ .cut_s = 2 * DAY_S, .no_heap = true, .no_requests = true });

    (void)state;
    assert_int_equal(c->label.modifier, MODIFIER_NONE);
    assert_int_equal(s->sum.n, c->nrows);
    for (size_t i = 0; i < c->nrows; i++) {
        assert_true(s->sum.col[METRIC_RSS_ANON].mid[i] == (double)c->rows[i].v[V_RSS]);
        assert_true(s->sum.col[METRIC_TMPFILES].mid[i] == (double)c->rows[i].v[V_TMPFILES]);
    }
    if (fabs(s->requests - requests_from(c, 300)) > 1) /* the window begins with the first sample */
        fail_msg("%g requests, not %g", s->requests, requests_from(c, 300));
    assert_int_equal(cut->sum.n, 2 * 288 - 1); /* what was read before the cut */
    assert_true(cut->sum.col[METRIC_HEAP_USED].n == 0 && isnan(cut->requests));
    series_free(s);
    series_free(cut);
    curve_free(c);
}

/* Wilson 1927; 81 of 263 is Newcombe's example (1998). */
static void test_wilson(void **state)
{
    struct ratio w = wilson(81, 263);

    (void)state;
    assert_true(fabs(w.lo - 0.2553) < 5e-5 && fabs(w.hi - 0.3662) < 5e-5);
    w = wilson(0, 20);
    assert_true(w.lo == 0 && fabs(w.hi - 0.1611) < 5e-5);
    w = wilson(29, 29);
    assert_true(fabs(w.hi - 1) < 1e-9 && fabs(w.lo - 0.8830) < 5e-5);
    assert_true(isnan(wilson(0, 0).value));
}

static void test_baselines_see_the_obvious(void **state)
{
    struct curve *c = make(FAMILY_CREEP_TIME, 0, false);
    struct series *s;
    bool says[BASELINE_N];
    int64_t begin = c->lives[0].start_ns;

    (void)state;
    for (size_t i = 0; i < c->nrows; i++)
        c->rows[i].v[V_RSS] = 1000000000 + (c->rows[i].ts_ns - begin) / 1000000;
    s = detect_series(c, &(struct detect_options){ 0 });
    baselines(s, says);
    assert_true(says[BASELINE_FIRST_LAST] && says[BASELINE_BUCKET] && says[BASELINE_MANN_KENDALL] && says[BASELINE_THEIL_SEN]);
    assert_true(says[BASELINE_EBB] && !says[BASELINE_OLS_1H] && !says[BASELINE_PREDICT]);
    series_free(s);
    for (size_t i = 0; i < c->nrows; i++)
        c->rows[i].v[V_RSS] = 1000000000;
    s = detect_series(c, &(struct detect_options){ 0 });
    baselines(s, says);
    for (int b = 0; b < BASELINE_N; b++)
        assert_false(says[b]);
    series_free(s);
    curve_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_seed_same_bytes), cmocka_unit_test(test_draws_are_fixed),
        cmocka_unit_test(test_memory_leaks_are_as_labelled), cmocka_unit_test(test_count_leaks_are_as_labelled),
        cmocka_unit_test(test_oom_saws_die_of_memory), cmocka_unit_test(test_external_starts_rise), cmocka_unit_test(test_stairs_go_on),
        cmocka_unit_test(test_healthy_ones_do_not_leak), cmocka_unit_test(test_series_is_the_curve), cmocka_unit_test(test_wilson),
        cmocka_unit_test(test_baselines_see_the_obvious),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
