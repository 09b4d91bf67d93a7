/* One frame as text: title, totals, a line a process, what is known of the selected one, keys. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "base/units.h"
#include "cmd/top/top.h"

#define SPARK 20
#define LINE_MAX_BYTES 1024
#define FRAME_LINES 7 /* title, totals, blank, heading, two of detail, keys */

/* A line cut to the width; the attribute covers all of it. */
static void put_line(const struct top_view *v, struct buf *out, enum term_color attr, const char *text)
{
    char line[LINE_MAX_BYTES];
    size_t n = str_copy(line, sizeof line, text);
    while (n && str_width(line) > v->width) {
        do
            n--;
        while (n && ((unsigned char)line[n] & 0xc0) == 0x80); /* whole characters */
        line[n] = '\0';
    }
    bool on = attr != TERM_PLAIN && v->colored;
    buf_printf(out, "%s%s%s\n", on ? term_on(attr, true) : "", line, on ? term_off(true) : "");
}

static const char *count(int64_t v, char out[UNITS_TEXT_MAX])
{
    return v == METRIC_NA ? str_copy(out, UNITS_TEXT_MAX, "-"), out : units_count((double)v, out);
}

static const char *bytes(int64_t v, bool known, char out[UNITS_TEXT_MAX])
{
    return known ? units_bytes((double)v, out) : (str_copy(out, UNITS_TEXT_MAX, "-"), out);
}

static void totals(const struct top_view *v, const struct top_rows *rows, struct buf *out)
{
    int64_t sum[METRIC_N];
    size_t processes = 0;
    char line[LINE_MAX_BYTES], a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX];
    for (int m = 0; m < METRIC_N; m++)
        sum[m] = METRIC_NA;
    VEC_EACH(const struct top_row, r, &rows->rows) {
        processes += r->pid != 0;
        for (int m = 0; m < METRIC_N; m++)
            if (r->v[m] != METRIC_NA)
                sum[m] = MAX(sum[m], (int64_t)0) + r->v[m];
    }
    str_fmt(line, sizeof line, "processes %zu  anonymous %s  descriptors %s  threads %s  temp files %s", processes,
            bytes(sum[METRIC_RSS_ANON], sum[METRIC_RSS_ANON] != METRIC_NA, a), count(sum[METRIC_FDS], b),
            count(sum[METRIC_THREADS], c), count(sum[METRIC_TMPFILES], d));
    put_line(v, out, TERM_PLAIN, line);
}

static void process_line(const struct top_view *v, const struct top_row *r, bool selected, struct buf *out)
{
    char line[LINE_MAX_BYTES], spark[3 * SPARK + 1], cpu[16] = "-", pid[16] = "-";
    char a[UNITS_TEXT_MAX], g[UNITS_TEXT_MAX], f[UNITS_TEXT_MAX], s[UNITS_TEXT_MAX], t[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX];
    int64_t anon = r->v[METRIC_RSS_ANON];
    bool grown = anon != METRIC_NA && r->first_anon != METRIC_NA;
    term_sparkline(r->history, r->nhistory, SPARK, spark);
    if (!isnan(r->cpu_pct))
        str_fmt(cpu, sizeof cpu, "%.1f", r->cpu_pct);
    if (r->pid != PID_UNKNOWN)
        str_fmt(pid, sizeof pid, "%d", r->pid);
    str_fmt(line, sizeof line, "%c%7s %6s %9s %9s %6s %5s %5s %4s  %s%*s  %s", selected ? '>' : ' ', pid, cpu, bytes(anon, anon >= 0, a),
            bytes(anon - r->first_anon, grown, g), count(r->v[METRIC_FDS], f), count(r->v[METRIC_SOCKETS], s),
            count(r->v[METRIC_THREADS], t), count(r->v[METRIC_CHILDREN], c), spark, SPARK - (int)str_width(spark), "", r->what);
    put_line(v, out, selected ? TERM_BOLD : TERM_PLAIN, line);
}

static void detail(const struct top_view *v, const struct top_row *r, struct buf *out)
{
    static const enum metric_id shown[2][7] = {
        { METRIC_PIPES, METRIC_FILES, METRIC_ANON_INODES, METRIC_FDS_DELETED, METRIC_CONNECTIONS, METRIC_TCP_CLOSE_WAIT, METRIC_SOCKETS_NO_ROW },
        { METRIC_RSS, METRIC_RSS_SHMEM, METRIC_SWAP, METRIC_ZOMBIES, METRIC_UNIX_SOCKETS, METRIC_TCP_ESTABLISHED, METRIC_TCP_LISTEN },
    };
    char line[LINE_MAX_BYTES], text[UNITS_TEXT_MAX];
    for (size_t l = 0; l < ARRAY_SIZE(shown); l++) {
        size_t n = str_fmt(line, sizeof line, "%s", r->target);
        for (size_t i = 0; i < ARRAY_SIZE(shown[l]); i++) {
            enum metric_id m = shown[l][i];
            bool size = metrics[m].unit == METRIC_UNIT_BYTES;
            n += str_fmt(line + n, sizeof line - n, "  %s %s", metrics[m].name,
                         size ? bytes(r->v[m], r->v[m] >= 0, text) : count(r->v[m], text));
        }
        put_line(v, out, TERM_DIM, line);
    }
}

/* How many process lines fit; the selected one is kept among them. */
static size_t page(struct top_view *v, size_t n)
{
    size_t lines = v->height ? (v->height > FRAME_LINES ? v->height - FRAME_LINES : 1) : n;
    if (v->selected >= n)
        v->selected = n ? n - 1 : 0;
    if (v->selected < v->scroll)
        v->scroll = v->selected;
    if (lines && v->selected >= v->scroll + lines)
        v->scroll = v->selected - lines + 1;
    if (v->scroll + lines > n)
        v->scroll = n > lines ? n - lines : 0;
    return lines;
}

int top_draw(struct top_view *view, const struct top_rows *rows, int64_t now_ns, struct buf *out)
{
    char line[LINE_MAX_BYTES], when[CLOCK_TEXT_MAX];
    size_t shown = 0, at = 0, n = 0, lines;
    VEC_EACH(const struct top_row, r, &rows->rows)
        n += r->pid != 0;
    lines = page(view, n);
    buf_clear(out);
    str_fmt(line, sizeof line, "%s  %s  by %s", view->title, clock_rfc3339(now_ns / NS_PER_S * NS_PER_S, when), top_order_name(view->order));
    put_line(view, out, TERM_BOLD, line);
    totals(view, rows, out);
    str_fmt(line, sizeof line, " %7s %6s %9s %9s %6s %5s %5s %4s  %-*s  %s", "PID", "CPU%", "ANON", "GROWN", "FDS", "SOCK", "THR", "CHLD",
            SPARK, "ANON OVER TIME", "WHAT");
    put_line(view, out, TERM_YELLOW, rows->note);
    put_line(view, out, TERM_CYAN, line);
    const struct top_row *selected = NULL;
    VEC_EACH(const struct top_row, r, &rows->rows) {
        if (!r->pid)
            continue;
        if (at == view->selected)
            selected = r;
        if (at >= view->scroll && shown < lines) {
            process_line(view, r, view->height && at == view->selected, out);
            shown++;
        }
        at++;
    }
    if (!n)
        put_line(view, out, TERM_YELLOW, "no process yet; waiting for one");
    if (view->height && selected) {
        for (size_t fillers = shown; fillers < lines; fillers++)
            buf_putc(out, '\n');
        detail(view, selected, out);
        put_line(view, out, TERM_DIM, "q quit  s sort  up down select");
    }
    return 0;
}
