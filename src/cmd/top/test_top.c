/* Rows, their order, and a frame as text. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/top/top.h"
#include "lib/harness.h"

static struct top_row *add(struct top_rows *t, int64_t id, int32_t pid, const char *role)
{
    struct life_info info = { .key.pid = pid };
    str_copy(info.role, sizeof info.role, role);
    return top_rows_add(t, id, &info, "api");
}

static void sample(struct top_row *r, int64_t second, int64_t anon, int64_t fds, int64_t cpu_ns)
{
    struct sample s;
    sample_blank(&s);
    s.v[METRIC_RSS_ANON] = anon;
    s.v[METRIC_FDS] = fds;
    s.v[METRIC_CPU_NS] = cpu_ns;
    top_row_sample(r, second * NS_PER_S, s.v);
}

static void fill(struct top_rows *t)
{
    top_rows_init(t);
    sample(add(t, 1, 100, "master"), 1, 10 << 20, 5, 0);
    sample(add(t, 2, 101, "worker \xe6\xb5\x8b\xe8\xaf\x95 with a long name of its own that does not fit"), 1, 20 << 20, 9, 0);
    sample(add(t, 3, 0, ""), 1, METRIC_NA, METRIC_NA, METRIC_NA);
    sample(top_rows_find(t, 1), 2, 60 << 20, 6, NS_PER_S / 2);
}

static void test_rows(void **state)
{
    struct top_rows t;
    (void)state;
    fill(&t);
    struct top_row *r = top_rows_find(&t, 1);
    assert_true(r->cpu_pct > 49.9 && r->cpu_pct < 50.1);
    assert_int_equal(r->v[METRIC_RSS_ANON] - r->first_anon, 50 << 20);
    assert_int_equal(r->nhistory, 2);
    assert_true(isnan(top_rows_find(&t, 2)->cpu_pct));
    for (int i = 0; i < 3 * TOP_HISTORY; i++)
        sample(r, 3 + i, i, 1, NS_PER_S);
    assert_int_equal(r->nhistory, TOP_HISTORY);
    assert_true(r->history[TOP_HISTORY - 1] > r->history[0]);
    top_rows_remove(&t, 1);
    assert_null(top_rows_find(&t, 1));
    assert_int_equal(top_rows_find(&t, 2)->pid, 101);
    top_rows_release(&t);
}

static int32_t first_by(struct top_rows *t, enum top_order order)
{
    top_rows_sort(t, order);
    assert_int_equal(top_rows_find(t, 1)->pid, 100); /* ids lead to their rows in any order */
    return ((struct top_row *)t->rows.items)->pid;
}

static void test_order(void **state)
{
    struct top_rows t;
    (void)state;
    fill(&t);
    assert_int_equal(first_by(&t, TOP_BY_ANON), 100);
    assert_int_equal(first_by(&t, TOP_BY_GROWN), 100);
    assert_int_equal(first_by(&t, TOP_BY_FDS), 101);
    assert_int_equal(first_by(&t, TOP_BY_CPU), 100);
    top_rows_release(&t);
}

static void each_line_fits(const struct buf *frame, size_t width, size_t height)
{
    struct slice rest = { frame->p, frame->len }, line;
    char text[2048];
    size_t n = 0;
    while (slice_next(&rest, '\n', &line)) {
        str_fmt(text, sizeof text, "%.*s", (int)line.len, line.p);
        assert_true(str_width(text) <= width);
        n += rest.p != NULL;
    }
    if (height)
        assert_true(n <= height);
}

static void test_frame(void **state)
{
    struct top_view v = { .title = "api", .width = 100 };
    struct top_rows t;
    struct buf out;
    (void)state;
    fill(&t);
    buf_init(&out, 1 << 20);
    top_rows_sort(&t, TOP_BY_ANON);
    top_draw(&v, &t, INT64_C(1796070637) * NS_PER_S, &out);
    assert_non_null(strstr(out.p, "api  2026-11-30T20:30:37Z  by anon\n"));
    assert_non_null(strstr(out.p, "processes 2  anonymous 80.0 MB  descriptors 15  threads -"));
    assert_non_null(strstr(out.p, "     100   50.0   60.0 MB   50.0 MB      6     -     -    -"));
    assert_null(strstr(out.p, "\033["));
    assert_null(strstr(out.p, "quit"));
    each_line_fits(&out, 100, 0);
    buf_release(&out);
    top_rows_release(&t);
}

static void test_small_screens(void **state)
{
    struct top_rows t;
    struct buf out;
    (void)state;
    fill(&t);
    for (int i = 0; i < 50; i++)
        sample(add(&t, 10 + i, 200 + i, "w"), 1, i, i, 0);
    buf_init(&out, 1 << 20);
    for (size_t w = 1; w < 130; w += 7) {
        for (size_t h = 8; h < 70; h += 3) {
            struct top_view v = { .title = "api", .width = w, .height = h, .selected = 1000 };
            top_draw(&v, &t, 0, &out);
            assert_int_equal(v.selected, 51);
            each_line_fits(&out, w, h);
        }
    }
    buf_release(&out);
    top_rows_release(&t);
}

static void test_nothing_to_show(void **state)
{
    struct top_view v = { .title = "api", .width = 80, .height = 24 };
    struct top_rows t;
    struct buf out;
    (void)state;
    top_rows_init(&t);
    buf_init(&out, 1 << 20);
    top_draw(&v, &t, 0, &out);
    assert_non_null(strstr(out.p, "no process yet"));
    buf_release(&out);
    top_rows_release(&t);
}

HARNESS_MAIN(CASE(test_rows), CASE(test_order), CASE(test_frame), CASE(test_small_screens), CASE(test_nothing_to_show))
