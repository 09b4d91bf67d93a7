#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/csv.h"

#define ROWS 64

/* What was read, kept by value. */
struct got {
    enum csv_kind kind;
    size_t n;
    struct csv_row rows[ROWS];
    char texts[ROWS][3][64];
    int stop_after;          /* 0: never */
    struct csv_report rep;
    struct err err;
};

static void keep_texts(struct got *g, const struct csv_row *row)
{
    if (g->kind == CSV_REQUESTS) {
        str_copy(g->texts[g->n][0], 64, row->request.endpoint);
        str_copy(g->texts[g->n][1], 64, row->request.version);
        str_copy(g->texts[g->n][2], 64, row->request.outcome);
    } else if (g->kind == CSV_EVENTS) {
        str_copy(g->texts[g->n][0], 64, row->event.kind);
        str_copy(g->texts[g->n][1], 64, row->event.text);
    }
}

static int keep(void *ctx, const struct csv_row *row)
{
    struct got *g = ctx;

    if (g->n < ROWS) {
        g->rows[g->n] = *row;
        keep_texts(g, row);
        g->n++;
    }
    return g->stop_after && (int)g->rep.rows == g->stop_after ? 42 : 0;
}

static int read_bytes(struct got *g, enum csv_kind kind, const char *text, size_t len, const struct csv_options *options)
{
    char path[300];

    memset(g, 0, offsetof(struct got, stop_after));
    g->kind = kind;
    g->err = (struct err){ 0 };
    str_fmt(path, sizeof path, "%s/file.csv", harness_tmpdir());
    int fd = fd_open(AT_FDCWD, path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, len), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    int r = csv_read_fd(fd, kind, options, keep, g, &g->rep, &g->err);
    close(fd);
    return r;
}

static int read_text(struct got *g, enum csv_kind kind, const char *text)
{
    g->stop_after = 0;
    return read_bytes(g, kind, text, strlen(text), NULL);
}

static void assert_bad(const struct got *g, size_t i, uint64_t line, const char *why)
{
    assert_true(i < g->rep.nbad);
    assert_int_equal(g->rep.bad_lines[i].line, line);
    if (!strstr(g->rep.bad_lines[i].why, why))
        fail_msg("line %llu: '%s' does not say '%s'", (unsigned long long)line, g->rep.bad_lines[i].why, why);
}

static struct got g;

static void test_curve_without_header(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_CURVE, "1700000000,1000,10,3,1\n1700000030.5,1001,11,3,0"), 0);
    assert_int_equal(g.n, 2);
    assert_false(g.rep.has_header);
    assert_true(g.rows[0].curve.ts_ns == 1700000000 * NS_PER_S);
    assert_int_equal(g.rows[0].curve.v[METRIC_RSS], 1000 * 1024);
    assert_int_equal(g.rows[0].curve.v[METRIC_FDS], 10);
    assert_int_equal(g.rows[0].curve.v[METRIC_THREADS], 3);
    assert_int_equal(g.rows[0].curve.v[METRIC_CHILDREN], 1);
    assert_int_equal(g.rows[0].curve.v[METRIC_RSS_ANON], METRIC_NA);
    assert_int_equal(g.rows[0].curve.pid, 0);
    assert_true(g.rows[0].curve.start_ns == CLOCK_INVALID);
    assert_true(g.rows[1].curve.ts_ns == 1700000030 * NS_PER_S + NS_PER_S / 2);
    assert_int_equal(g.rows[1].line, 2);
    assert_int_equal(g.rep.lines, 2);
    assert_true(g.rep.columns[METRIC_RSS] && !g.rep.columns[METRIC_RSS_ANON]);
}

static void test_curve_with_header(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_CURVE,
                               "\xef\xbb\xbfTS , pid,start_time,rss_anon,\"heap_used\",connections,tmpfiles\r\n"
                               "2026-01-01T00:00:00Z,7,2025-12-31T23:00:00Z,4096, 12.6 ,,3\r\n"
                               "\r\n"
                               "2026-01-01 01:00:30+01:00,7,,8192,\"5\" ,2,3\r\n"), 0);
    assert_int_equal(g.n, 2);
    assert_int_equal(g.rep.bad, 0);
    assert_true(g.rep.has_header && g.rep.has_pid && g.rep.has_start_time);
    assert_int_equal(g.rows[0].line, 2);
    assert_int_equal(g.rows[1].line, 4);
    assert_int_equal(g.rows[0].curve.pid, 7);
    assert_true(g.rows[0].curve.ts_ns - g.rows[0].curve.start_ns == 3600 * NS_PER_S);
    assert_true(g.rows[1].curve.start_ns == CLOCK_INVALID);
    assert_true(g.rows[1].curve.ts_ns - g.rows[0].curve.ts_ns == 30 * NS_PER_S);
    assert_int_equal(g.rows[0].curve.v[METRIC_HEAP_USED], 13);
    assert_int_equal(g.rows[0].curve.v[METRIC_CONNECTIONS], METRIC_NA);
    assert_int_equal(g.rows[1].curve.v[METRIC_CONNECTIONS], 2);
    assert_int_equal(g.rows[1].curve.v[METRIC_HEAP_USED], 5);
    assert_int_equal(g.rows[1].curve.v[METRIC_TMPFILES], 3);
}

/* Every metric of the table can be imported under its own name. */
static void test_every_metric_is_a_column(void **state)
{
    (void)state;
    for (int i = 0; i < METRIC_N; i++) {
        char text[128];
        str_fmt(text, sizeof text, "ts,%s\n1,5\n", metrics[i].name);
        assert_int_equal(read_text(&g, CSV_CURVE, text), 0);
        assert_int_equal(g.n, 1);
        assert_int_equal(g.rows[0].curve.v[i], 5);
    }
}

static void test_bad_lines_are_counted_and_named(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_CURVE,
                               "ts,rss_bytes,fds\n"
                               "100,NaN,1\n"                    /* 2 */
                               "101,-5,1\n"                     /* 3 */
                               "102,9999999999999999999,1\n"    /* 4 */
                               "103,1e3,1\n"                    /* 5: good */
                               "104,12,1,1\n"                   /* 6 */
                               "105,12\n"                       /* 7 */
                               ",12,1\n"                        /* 8 */
                               "yesterday,12,1\n"               /* 9 */
                               "106,abc,1\n"                    /* 10 */
                               "107,\"12\"x,1\n"                /* 11 */
                               "108,0x10,1\n"                   /* 12 */
                               "109,inf,1\n"                    /* 13 */
                               "110,7,1\n"                      /* 14 */
                               "110,7,1\n"                      /* 15: a duplicate, passed on */
                               "90,7,1\n"), 0);                 /* 16: out of order, passed on */
    assert_int_equal(g.rep.bad, 11);
    assert_int_equal(g.rep.rows + g.rep.bad, 15);
    assert_int_equal(g.rows[0].curve.v[METRIC_RSS], 1000);
    assert_int_equal(g.rep.nbad, CSV_BAD_KEPT);
    assert_bad(&g, 0, 2, "rss_bytes: 'NaN' is not a number");
    assert_bad(&g, 1, 3, "'-5' is below 0");
    assert_bad(&g, 2, 4, "too large");
    assert_true(g.rows[g.n - 1].curve.ts_ns == 90 * NS_PER_S);
    assert_true(g.rows[g.n - 2].curve.ts_ns == 110 * NS_PER_S && g.rows[g.n - 3].curve.ts_ns == 110 * NS_PER_S);
    assert_int_equal(g.rep.lines, 16);
}

static void test_wrong_number_of_cells(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_CURVE, "ts,fds\n1,2,3\n1\n1,2\n"), 0);
    assert_int_equal(g.n, 1);
    assert_bad(&g, 0, 2, "3 cell(s) where the file has 2 columns");
    assert_bad(&g, 1, 3, "1 cell(s)");
}

/* A value left over from a bad line must not show in the next one. */
static void test_bad_line_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_CURVE, "ts,pid,start_time,fds,threads\n1,7,1,5,x\n2,,,,1\n"), 0);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.rows[0].curve.pid, 0);
    assert_true(g.rows[0].curve.start_ns == CLOCK_INVALID);
    assert_int_equal(g.rows[0].curve.v[METRIC_FDS], METRIC_NA);
}

static void test_unusable_headers(void **state)
{
    static const struct { enum csv_kind kind; const char *text, *says; } cases[] = {
        { CSV_CURVE, "ts,rss_mb,fds,colour\n1,2,3,4\n", "rss_mb, colour" },
        { CSV_CURVE, "ts,rss_kb,rss_bytes\n1,2,3\n", "more than once: rss_bytes" },
        { CSV_CURVE, "ts,fds,FDS\n", "more than once: fds" },
        { CSV_CURVE, "rss_kb,fds\n", "missing: ts" },
        { CSV_CURVE, "ts,pid\n", "at least one measured column" },
        { CSV_CURVE, "ts,fds,\n", "(no name)" },
        { CSV_REQUESTS, "ts,path,n\n", "path" },
        { CSV_REQUESTS, "ts,version\n", "missing: endpoint, n" },
        { CSV_EVENTS, "ts,text\n", "missing: kind" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(read_text(&g, cases[i].kind, cases[i].text), LT_EPARSE);
        if (!strstr(g.err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", g.err.text, cases[i].says);
        assert_int_equal(g.n, 0);
    }
}

static void test_unknown_columns_can_be_passed_over(void **state)
{
    const struct csv_options options = { .skip_unknown = true };
    static const char text[] = "host,ts,fds,colour\na,1,2,\"x,y\"\n";

    (void)state;
    assert_int_equal(read_bytes(&g, CSV_CURVE, text, sizeof text - 1, &options), 0);
    assert_int_equal(g.n, 1);
    assert_int_equal(g.rows[0].curve.v[METRIC_FDS], 2);
    assert_string_equal(g.rep.skipped, "host, colour");
}

static void test_too_many_unknown_names(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 100000);
    buf_puts(&b, "ts,fds");
    for (int i = 0; i < 60; i++)
        buf_printf(&b, ",nonsense_column_%d", i);
    buf_puts(&b, "\n");
    assert_int_equal(read_text(&g, CSV_CURVE, b.p), LT_EPARSE);
    assert_non_null(strstr(g.err.text, "nonsense_column_0"));
    assert_non_null(strstr(g.err.text, "..."));
    buf_clear(&b);
    for (int i = 0; i <= CSV_COLUMNS; i++)
        buf_puts(&b, "a,");
    buf_puts(&b, "\n");
    assert_int_equal(read_text(&g, CSV_CURVE, b.p), LT_EPARSE);
    assert_non_null(strstr(g.err.text, "at most"));
    buf_release(&b);
}

static void test_requests(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_REQUESTS,
                               "ts,endpoint,version,stream,outcome,n,pid\n"
                               "100,/v1/chat,1.2,true,cancelled,3,77\n"
                               "130,\"/a,b \"\"q\"\"\",,,,4,\n"
                               "130,,1,1,ok,4,1\n"
                               "130,/x,1,maybe,ok,4,1\n"
                               "130,/x,1,1,fine,4,1\n"
                               "130,/x,1,1,ok,,1\n"
                               "130,/x,1,1,ok,1,-1\n"), 0);
    assert_int_equal(g.n, 2);
    assert_string_equal(g.texts[0][0], "/v1/chat");
    assert_string_equal(g.texts[0][1], "1.2");
    assert_string_equal(g.texts[0][2], "cancelled");
    assert_int_equal(g.rows[0].request.stream, 1);
    assert_int_equal(g.rows[0].request.n, 3);
    assert_int_equal(g.rows[0].request.pid, 77);
    assert_string_equal(g.texts[1][0], "/a,b \"q\"");
    assert_string_equal(g.texts[1][1], "");
    assert_string_equal(g.texts[1][2], "ok");
    assert_int_equal(g.rows[1].request.stream, -1);
    assert_bad(&g, 0, 4, "endpoint: '' is empty");
    assert_bad(&g, 1, 5, "stream: 'maybe'");
    assert_bad(&g, 2, 6, "outcome: 'fine'");
    assert_bad(&g, 3, 7, "n: '' is empty");
    assert_bad(&g, 4, 8, "pid: '-1'");
    assert_int_equal(read_text(&g, CSV_REQUESTS, "ts,endpoint,n\n100,/a,1\n"), 0); /* only the needed ones */
    assert_int_equal(g.n, 1);
    assert_string_equal(g.texts[0][1], "");
    assert_int_equal(read_text(&g, CSV_REQUESTS, "100,/a,v,0,ok,2,1\n"), 0);       /* no header */
    assert_int_equal(g.rows[0].request.n, 2);
}

static void test_events(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_EVENTS,
                               "ts,kind,text\n"
                               "100,deploy,\"two\nlines, a comma\"\n"
                               "101,note,bell\x07 and set x=\"1\"\n"
                               "102,,x\n"
                               "103,restart,\n"), 0);
    assert_int_equal(g.n, 3);
    assert_string_equal(g.texts[0][1], "two?lines, a comma");
    assert_string_equal(g.texts[1][1], "bell? and set x=\"1\"");
    assert_int_equal(g.rows[1].line, 4);
    assert_bad(&g, 0, 5, "kind: '' is empty");
    assert_int_equal(g.rows[2].line, 6);
    assert_int_equal(read_text(&g, CSV_EVENTS, "100,deploy,v2\n"), 0);
    assert_string_equal(g.texts[0][0], "deploy");
}

static void test_unclosed_quote_costs_one_line(void **state)
{
    (void)state;
    assert_int_equal(read_text(&g, CSV_EVENTS, "1,a,b\n2,a,\"b\n3,a,c\n4,a,d\n"), 0);
    assert_int_equal(g.n, 3);
    assert_bad(&g, 0, 2, "quote");
    assert_int_equal(g.rows[1].line, 3);
    assert_int_equal(g.rows[2].line, 4);
    /* A quote of a later line closes it, and text follows: bad as well, and the later line is read for itself. */
    assert_int_equal(read_text(&g, CSV_EVENTS, "1,a,\"b\n2,\"a\",c\n3,a,d\n"), 0);
    assert_int_equal(g.n, 2);
    assert_bad(&g, 0, 1, "text after a closing quote");
    assert_int_equal(g.rows[0].line, 2);
}

static void test_nul_bytes(void **state)
{
    static const char text[] = "1,a,b\0c\n2,a\0,b\n3,a,b\n";
    static const char curve[] = "1,2\0,3,4,5\n1,2,3,4,5\n";

    (void)state;
    assert_int_equal(read_bytes(&g, CSV_EVENTS, text, sizeof text - 1, NULL), 0);
    assert_int_equal(g.n, 1);
    assert_bad(&g, 0, 1, "NUL");
    assert_bad(&g, 1, 2, "NUL");
    assert_int_equal(read_bytes(&g, CSV_CURVE, curve, sizeof curve - 1, NULL), 0);
    assert_int_equal(g.n, 1);
    assert_bad(&g, 0, 1, "NUL");
}

static void test_long_lines(void **state)
{
    struct buf b;
    char *junk = mem_alloc(3 * CSV_BUFFER);

    (void)state;
    memset(junk, 'x', 3 * CSV_BUFFER);
    buf_init(&b, 16 << 20);
    buf_puts(&b, "1,a,before\n2,a,");
    buf_append(&b, junk, 3 * CSV_BUFFER);       /* longer than the buffer */
    buf_puts(&b, "\n3,a,between\n4,a,");
    buf_append(&b, junk, CSV_LINE_MAX + 1);     /* fits the buffer */
    buf_puts(&b, "\n5,a,after\n6,a,\"");
    buf_append(&b, junk, 2 * CSV_LINE_MAX);     /* and a quote */
    buf_puts(&b, "\"\n7,a,end");
    assert_int_equal(read_text(&g, CSV_EVENTS, b.p), 0);
    assert_int_equal(g.n, 4);
    assert_int_equal(g.rep.bad, 3);
    assert_bad(&g, 0, 2, "too long");
    assert_bad(&g, 1, 4, "too long");
    assert_bad(&g, 2, 6, "too long");
    assert_int_equal(g.rows[3].line, 7);
    assert_int_equal(g.rep.lines, 7);
    buf_release(&b);
    mem_free(junk);
}

static void test_empty_files(void **state)
{
    static const char *const texts[] = { "", "\n", "\r\n\r\n", "\xef\xbb\xbf", "\xef", "ts,fds\n", "ts,fds" };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        int r = read_text(&g, CSV_CURVE, texts[i]);
        if (r && i != 4) /* half a byte order mark is a column of no name */
            fail_msg("case %zu: %s", i, g.err.text);
        assert_int_equal(g.n, 0);
        assert_int_equal(g.rep.bad, 0);
    }
}

static void test_callback_stops(void **state)
{
    (void)state;
    g.stop_after = 2;
    static const char text[] = "1,1,1,1,1\n2,1,1,1,1\n3,1,1,1,1\n";
    assert_int_equal(read_bytes(&g, CSV_CURVE, text, sizeof text - 1, NULL), 42);
    assert_int_equal(g.n, 2);
    g.stop_after = 0;
}

static void test_file_errors(void **state)
{
    (void)state;
    assert_int_equal(csv_read_file("/nonexistent/x.csv", CSV_CURVE, NULL, keep, &g, &g.rep, &g.err), LT_ENOENT);
    assert_non_null(strstr(g.err.text, "/nonexistent/x.csv"));
    assert_int_equal(csv_read_file("/", CSV_CURVE, NULL, keep, &g, &g.rep, &g.err), LT_EIO); /* a folder */
    assert_non_null(strstr(g.err.text, "/: cannot read"));
}

/* The text comes through a pipe in pieces of every size: the result must not depend on where they end. */
struct feed {
    int fd;
    size_t piece;
    const char *text;
};

static void *feed(void *ctx)
{
    struct feed *f = ctx;
    size_t len = strlen(f->text);

    for (size_t at = 0; at < len; at += f->piece)
        if (write(f->fd, f->text + at, MIN(f->piece, len - at)) < 0)
            break;
    close(f->fd);
    return NULL;
}

static void test_pieces_of_every_size(void **state)
{
    static const char text[] = "\xef\xbb\xbfts,kind,text\r\n1,a,\"x \"\"y\"\"\r\nz\"\r\n\r\n2,b,plain\r\n3,\"c\" ,\"d\"\n4,e,\"open\n5,f,\"g\" h\n6,i,j";
    static struct got whole;

    (void)state;
    assert_int_equal(read_text(&whole, CSV_EVENTS, text), 0);
    assert_int_equal(whole.n, 4);
    for (size_t piece = 1; piece < 20; piece++) {
        int p[2];
        pthread_t thread;
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        struct feed f = { p[1], piece, text };
        memset(&g, 0, sizeof g);
        g.kind = CSV_EVENTS;
        assert_int_equal(pthread_create(&thread, NULL, feed, &f), 0);
        assert_int_equal(csv_read_fd(p[0], CSV_EVENTS, NULL, keep, &g, &g.rep, &g.err), 0);
        pthread_join(thread, NULL);
        close(p[0]);
        assert_int_equal(g.n, whole.n);
        assert_memory_equal(g.texts, whole.texts, sizeof g.texts);
        assert_memory_equal(&g.rep, &whole.rep, sizeof g.rep);
        for (size_t i = 0; i < g.n; i++)
            assert_int_equal(g.rows[i].line, whole.rows[i].line);
    }
}

static int count_rows(void *ctx, const struct csv_row *row)
{
    uint64_t *last = ctx;

    assert_int_equal(row->line, *last + 1);
    *last = row->line;
    return 0;
}

/* Far more than the buffer: each row arrives once, in order, and nothing is allocated on the way. */
static void test_many_buffers(void **state)
{
    char path[300], line[64];
    struct csv_report rep;
    uint64_t last = 0;
    const uint64_t n = 200000;
    struct buf b;

    (void)state;
    buf_init(&b, 64 << 20);
    for (uint64_t i = 0; i < n; i++)
        buf_append(&b, line, str_fmt(line, sizeof line, "%llu,%llu,1,2,3\n", 1000000000ULL + i, 100000ULL + i % 977));
    str_fmt(path, sizeof path, "%s/big.csv", harness_tmpdir());
    assert_int_equal(fd_write_file(path, b.p, b.len), 0);
    buf_release(&b);
    uint64_t before = mem_total_allocs();
    assert_int_equal(csv_read_file(path, CSV_CURVE, NULL, count_rows, &last, &rep, NULL), 0);
    assert_int_equal(mem_total_allocs() - before, 1);
    assert_int_equal(last, n);
    assert_int_equal(rep.rows, n);
    assert_int_equal(rep.lines, n);
}

static int read_little(void *ctx)
{
    struct csv_report rep;
    int p[2];

    (void)ctx;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    close(p[1]);
    int r = csv_read_fd(p[0], CSV_CURVE, NULL, keep, &g, &rep, NULL);
    close(p[0]);
    return r;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    harness_sweep_allocs(read_little, NULL);
}

HARNESS_MAIN(CASE(test_curve_without_header), CASE(test_curve_with_header), CASE(test_every_metric_is_a_column),
             CASE(test_bad_lines_are_counted_and_named), CASE(test_wrong_number_of_cells), CASE(test_bad_line_leaves_nothing),
             CASE(test_unusable_headers), CASE(test_unknown_columns_can_be_passed_over), CASE(test_too_many_unknown_names),
             CASE(test_requests), CASE(test_events), CASE(test_unclosed_quote_costs_one_line), CASE(test_nul_bytes),
             CASE(test_long_lines), CASE(test_empty_files), CASE(test_callback_stops), CASE(test_file_errors),
             CASE(test_pieces_of_every_size), CASE(test_many_buffers), CASE(test_out_of_memory))
