/* What people and programs read, held against blessed files (BLESS=1 writes them) and against the contract's keys. */
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lib/harness.h"
#include "lib/synth.h"
#include "output/output.h"

struct page { struct series *s; struct analysis *a; struct verdict *v; };

static struct page page_of(const struct synth *c, bool steady)
{
    struct analysis_options o = { .steady = steady };
    struct page p = { .s = synth_series(c) };
    struct event_row event = { 1, p.s->to_ns - 100 * NS_PER_S, "deploy", "v2.1" };

    assert_int_equal(series_event(p.s, &event), 0);

    assert_int_equal(analysis_run(&p.a, p.s, &o), 0);
    assert_int_equal(verdict_decide(&p.v, p.a), 0);
    return p;
}

static void page_release(struct page *p)
{
    verdict_free(p->v);
    analysis_free(p->a);
    series_free(p->s);
}

static struct synth leaky(void)
{
    struct synth c = synth_plain(1);

    c.warm = 8e6;
    c.warm_requests = 300;
    c.noise = 60e3;
    c.rho = 0.9;
    c.pool = 12;
    c.pool_requests = 400;
    c.head_s = 10;
    c.tail_s = 40;
    c.socket_leak = 0.25;
    c.mem_leak = 3000;
    return c;
}

static struct synth healthy(void)
{
    struct synth c = leaky();

    c.socket_leak = c.mem_leak = 0;
    return c;
}

static struct synth restarting(void)
{
    struct synth c = leaky();

    c.seconds = 2390;
    c.restart_s = 400;
    c.socket_leak = 0;
    c.shm_leak = 0.01;
    c.head_s = c.tail_s = 0;
    return c;
}

/* ---- blessed pages -------------------------------------------------------------------------------------------- */

static void write_golden(const char *path, const char *text)
{
    assert_int_equal(fd_write_file(path, text, strlen(text)), 0);
}

static void expect_golden(const char *name, const char *text)
{
    char path[1024];
    _cleanup_mem_ char *want = mem_alloc((size_t)1 << 20);
    ssize_t n;

    assert_non_null(want);
    str_fmt(path, sizeof path, "%s/%s", GOLDEN_DIR, name);
    if (getenv("BLESS"))
        write_golden(path, text);
    n = fd_read_at(AT_FDCWD, path, want, (size_t)1 << 20);
    if (n < 0)
        fail_msg("%s cannot be read; BLESS=1 writes it", path);
    if (!str_eq(want, text))
        fail_msg("%s differs; BLESS=1 writes it. Now:\n%s", path, text);
}

static void check_width(const char *text)
{
    struct slice rest = { text, strlen(text) }, line;

    while (slice_next(&rest, '\n', &line)) {
        char copy[1024];

        str_fmt(copy, sizeof copy, "%.*s", (int)line.len, line.p);
        if (str_width(copy) > 100)
            fail_msg("wider than 100: %s", copy);
        assert_true(line.len == 0 || line.p[line.len - 1] != ' ');
    }
}

static void text_golden(const struct synth *c, bool steady, bool explain, const char *name)
{
    struct page p = page_of(c, steady);
    struct output_options o = { .explain = explain };
    struct buf out;

    setenv("LC_ALL", "C.UTF-8", 1);
    buf_init(&out, (size_t)1 << 20);
    assert_int_equal(output_text(&out, p.v, &o), 0);
    check_width(out.p);
    expect_golden(name, out.p);
    buf_release(&out);
    page_release(&p);
}

static void test_pages(void **state)
{
    struct synth c = leaky();

    (void)state;
    text_golden(&c, true, false, "diagnose-leak.txt");
    text_golden(&c, true, true, "diagnose-leak-explain.txt");
    text_golden(&c, false, false, "diagnose-not-steady.txt");
    c = healthy();
    text_golden(&c, true, false, "diagnose-healthy.txt");
    c = restarting();
    text_golden(&c, true, false, "diagnose-restarts.txt");
    c = leaky();
    c.no_requests = true;
    text_golden(&c, true, false, "diagnose-no-requests.txt");
    c.seconds = 12;
    c.head_s = c.tail_s = 0;
    text_golden(&c, true, false, "diagnose-too-short.txt");
}

/* With colours, the same words: escapes taken out, nothing else differs. */
static void test_colour_changes_no_word(void **state)
{
    struct synth c = leaky();
    struct page p = page_of(&c, true);
    struct buf plain, colored, stripped;

    (void)state;
    buf_init(&plain, (size_t)1 << 20);
    buf_init(&colored, (size_t)1 << 20);
    buf_init(&stripped, (size_t)1 << 20);
    assert_int_equal(output_text(&plain, p.v, &(struct output_options){ 0 }), 0);
    assert_int_equal(output_text(&colored, p.v, &(struct output_options){ .colored = true }), 0);
    for (const char *s = colored.p; *s;) {
        if (*s == '\033') {
            s += strcspn(s, "m") + 1;
            continue;
        }
        buf_putc(&stripped, *s++);
    }
    assert_true(colored.len > plain.len);
    assert_string_equal(stripped.p, plain.p);
    buf_release(&plain);
    buf_release(&colored);
    buf_release(&stripped);
    page_release(&p);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

static bool is_one_of(const json_t *v, const char *names)
{
    struct slice rest = { names, strlen(names) }, part;

    while (slice_next(&rest, '|', &part))
        if (json_is_string(v) && slice_eq(part, json_string_value(v)))
            return true;
    return false;
}

#define VERDICT_NAMES "ok|bounded|retention|step|leak|external|suspect|insufficient"
#define CLASS_NAMES "flat|diurnal|step|bounded|retention|creep|sawtooth|stair|external|count"

static void check_interval(const json_t *o, const char *extra)
{
    const char *const keys[] = { "value", "lo", "hi", extra };
    double v, lo, hi;

    if (json_is_null(o))
        return;
    for (size_t i = 0; i < 3 + (extra != NULL); i++)
        assert_true(json_is_number(json_object_get(o, keys[i])) || json_is_null(json_object_get(o, keys[i])));
    if (json_is_null(json_object_get(o, "value")) || json_is_null(json_object_get(o, "lo")))
        return;
    v = json_number_value(json_object_get(o, "value"));
    lo = json_number_value(json_object_get(o, "lo"));
    hi = json_number_value(json_object_get(o, "hi"));
    assert_true(lo <= v && v <= hi);
}

static void check_time(const json_t *v)
{
    int64_t ns;

    assert_true(json_is_string(v));
    assert_int_equal(clock_parse(json_string_value(v), json_string_length(v), &ns), 0);
    assert_true(json_string_value(v)[json_string_length(v) - 1] == 'Z');
}

static void check_series(const json_t *s)
{
    const json_t *floor = json_object_get(s, "floor"), *step, *day;
    size_t i;

    assert_true(metric_by_name(json_string_value(json_object_get(s, "name")), json_string_length(json_object_get(s, "name"))) >= 0);
    assert_true(is_one_of(json_object_get(s, "unit"), "bytes|count"));
    assert_true(is_one_of(json_object_get(s, "verdict"), VERDICT_NAMES));
    assert_true(is_one_of(json_object_get(s, "class"), CLASS_NAMES));
    assert_true(json_string_length(json_object_get(s, "shape")) > 0);
    check_interval(json_object_get(s, "slope_per_hour"), NULL);
    check_interval(json_object_get(s, "per_1k_requests"), "band");
    assert_true(json_is_boolean(json_object_get(floor, "usable")) && json_is_string(json_object_get(floor, "why")));
    assert_true(json_is_boolean(json_object_get(floor, "returns")) || json_is_null(json_object_get(floor, "returns")));
    json_array_foreach(json_object_get(floor, "days"), i, day)
        assert_int_equal(json_string_length(json_object_get(day, "date")), 10);
    json_array_foreach(json_object_get(s, "steps"), i, step)
        check_time(json_object_get(step, "at"));
}

static void check_lives(const json_t *lives)
{
    const json_t *l;
    size_t i;

    json_array_foreach(lives, i, l) {
        assert_true(json_integer_value(json_object_get(l, "pid")) > 0);
        check_time(json_object_get(l, "start"));
        if (!json_is_null(json_object_get(l, "end")))
            check_time(json_object_get(l, "end"));
        assert_true(json_is_string(json_object_get(l, "cause")));
        assert_true(json_object_get(l, "start_rss") && json_object_get(l, "end_rss"));
        assert_true(json_is_integer(json_object_get(l, "samples")));
    }
    assert_true(i > 0);
}

/* The contract's keys, their kinds and their words. */
static void check_document(const json_t *d)
{
    const json_t *restarts = json_object_get(d, "restarts"), *s;
    size_t i;

    assert_true(json_is_string(json_object_get(d, "target")));
    check_time(json_object_get(d, "from"));
    check_time(json_object_get(d, "to"));
    assert_true(json_is_integer(json_object_get(d, "samples")));
    assert_true(is_one_of(json_object_get(d, "verdict"), VERDICT_NAMES));
    assert_true(is_one_of(json_object_get(d, "class"), CLASS_NAMES));
    assert_true(json_string_length(json_object_get(d, "reason")) > 0);
    assert_true(json_is_string(json_object_get(d, "next")));
    assert_true(json_is_integer(json_object_get(restarts, "count")) && json_is_array(json_object_get(restarts, "dense")));
    assert_true(is_one_of(json_object_get(json_object_get(restarts, "start_values"), "trend"), "rising|flat|unknown"));
    check_lives(json_object_get(d, "lives"));
    json_array_foreach(json_object_get(d, "series"), i, s)
        check_series(s);
    assert_true(i > 0);
}

/* The document as text, into memory of ours: `out` is of this many bytes. */
#define JSON_MAX ((size_t)1 << 20)
static void dump(const json_t *doc, size_t flags, char *out)
{
    size_t n = json_dumpb(doc, out, JSON_MAX - 1, flags);

    assert_true(n > 0 && n < JSON_MAX - 1);
    out[n] = '\0';
}

static void test_json_keeps_the_contract(void **state)
{
    struct synth all[] = { leaky(), healthy(), restarting(), leaky(), leaky() };

    (void)state;
    all[3].no_requests = true;
    all[4].seconds = 3;
    all[4].head_s = all[4].tail_s = 0;
    for (size_t i = 0; i < 2 * ARRAY_SIZE(all); i++) {
        struct page p = page_of(&all[i / 2], i % 2);
        json_t *doc = output_json(p.v, true), *again;
        _cleanup_mem_ char *text = mem_alloc(JSON_MAX);

        assert_true(doc && text);
        dump(doc, JSON_INDENT(2), text);
        assert_true(!strstr(text, "nan") && !strstr(text, "NaN"));
        again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(again);
        check_document(again);
        json_decref(again);
        json_decref(doc);
        page_release(&p);
    }
}

/* Anything at all: most of it missing, rates of nothing and of a million, restarts faster than samples. */
static struct synth odd(uint64_t seed)
{
    struct random r = { seed };
    struct synth c = synth_plain(seed);

    c.seconds = exp(synth_between(&r, 0, 9));
    c.interval_s = c.seconds / exp(synth_between(&r, 0, 7));
    c.rps = synth_uniform(&r) < 0.2 ? 0 : exp(synth_between(&r, -6, 12));
    c.head_s = synth_uniform(&r) < 0.3 ? c.seconds * synth_uniform(&r) : 0;
    c.tail_s = synth_uniform(&r) < 0.3 ? c.seconds * synth_uniform(&r) : 0;
    c.drop = synth_uniform(&r) < 0.5 ? synth_uniform(&r) : 0;
    c.base = synth_uniform(&r) < 0.2 ? 0 : exp(synth_between(&r, 0, 40));
    c.noise = c.base * synth_uniform(&r);
    c.ramp = synth_uniform(&r) < 0.3 ? 10 * synth_uniform(&r) : 0;
    c.fds = floor(exp(synth_between(&r, -3, 14)));
    c.fd_leak = synth_uniform(&r) < 0.5 ? synth_between(&r, 0, 3) : 0;
    c.mem_leak = synth_uniform(&r) < 0.5 ? synth_between(&r, 0, 1e6) : 0;
    c.restart_s = synth_uniform(&r) < 0.3 ? c.seconds / exp(synth_between(&r, 0, 6)) : 0;
    c.no_requests = synth_uniform(&r) < 0.3;
    c.no_cpu = synth_uniform(&r) < 0.3;
    return c;
}

static void test_anything_gives_a_whole_document(void **state)
{
    _cleanup_mem_ char *text = mem_alloc(JSON_MAX);
    size_t judged = 0;

    (void)state;
    assert_non_null(text);
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct synth c = odd(seed);
        struct page p;
        struct buf out;
        json_t *doc;

        if (!synth_has_samples(&c))
            continue;
        p = page_of(&c, seed % 2);
        doc = output_json(p.v, true);
        assert_non_null(doc);
        dump(doc, JSON_INDENT(1), text);
        assert_true(!strstr(text, "nan") && !strstr(text, "NaN") && !strstr(text, "Infinity"));
        check_document(doc);
        buf_init(&out, (size_t)4 << 20);
        assert_int_equal(output_text(&out, p.v, &(struct output_options){ .explain = true }), 0);
        check_width(out.p);
        buf_release(&out);
        json_decref(doc);
        page_release(&p);
        judged++;
    }
    assert_true(judged > 300);
}

static void test_json_page(void **state)
{
    struct synth c = leaky();
    struct page p = page_of(&c, true);
    json_t *doc = output_json(p.v, false);
    _cleanup_mem_ char *text = mem_alloc(JSON_MAX);

    (void)state;
    assert_true(doc && text);
    dump(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(6), text);
    expect_golden("diagnose-leak.json", text);
    json_decref(doc);
    page_release(&p);
}

/* ---- doctor --------------------------------------------------------------------------------------------------- */

static void test_doctor(void **state)
{
    static const char *const missing[] = { "descriptors of process 9: not permitted; run as root or with CAP_SYS_PTRACE", NULL };
    const struct output_change changes[] = { { "peer", "10.0.0.7:443 CLOSE_WAIT", 3, 250 }, { "path", "/var/log/app-#.log", 4, 2 } };
    struct output_doctor d = { 4711, "python app.py", 60, 3, changes, ARRAY_SIZE(changes), missing };
    struct synth c = leaky();
    struct page p = page_of(&c, true);
    struct buf out;
    json_t *doc = output_doctor_json(p.v, &d);

    (void)state;
    setenv("LC_ALL", "C.UTF-8", 1);
    buf_init(&out, (size_t)1 << 20);
    assert_int_equal(output_doctor_text(&out, p.v, &d, &(struct output_options){ 0 }), 0);
    check_width(out.p);
    expect_golden("doctor.txt", out.p);
    check_document(doc);
    assert_int_equal(json_integer_value(json_object_get(doc, "pid")), 4711);
    assert_int_equal(json_array_size(json_object_get(doc, "changes")), 2);
    json_decref(doc);
    buf_release(&out);
    page_release(&p);
}

HARNESS_MAIN(CASE(test_pages), CASE(test_colour_changes_no_word), CASE(test_json_keeps_the_contract), CASE(test_anything_gives_a_whole_document),
             CASE(test_json_page), CASE(test_doctor))
