/* import: a CSV of samples, requests or events into the store.
 *
 * Written in chunks, each one transaction: Ctrl-C, a full disk or a kill leave whole chunks. Importing the same file again
 * changes nothing, so the way on from there is to run the same command again.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/import.h"
#include "source/csv.h"
#include "store/store.h"

#define TARGET_NAME_MAX 64
#define PROGRESS_MIN_BYTES (8 << 20) /* smaller files are done before anybody looks */

static const char *const kind_names[] = { [CSV_CURVE] = "curve", [CSV_REQUESTS] = "requests", [CSV_EVENTS] = "events" };

/* ---- which kind ----------------------------------------------------------------------------------------------- */

static int kind_by_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++)
        if (str_eq(kind_names[i], name))
            return (int)i;
    return -1;
}

static bool has_column(const char *line, size_t len, const char *name)
{
    struct slice rest = { line, len }, cell;
    while (slice_next(&rest, ',', &cell)) {
        cell = slice_trim(cell);
        if (cell.len >= 2 && cell.p[0] == '"') {
            cell.p++;
            cell.len -= 2;
        }
        if (cell.len == strlen(name) && !strncasecmp(cell.p, name, cell.len))
            return true;
    }
    return false;
}

/* Without a header: five numbers are a curve; else the second cell is an endpoint (seven cells) or a kind (three). */
static int guess_by_cells(const char *line, size_t len)
{
    struct slice rest = { line, len }, cell;
    size_t n = 0, numbers = 0;
    double v;
    while (slice_next(&rest, ',', &cell)) {
        cell = slice_trim(cell);
        numbers += !units_double(cell.p, cell.len, &v);
        n++;
    }
    return n == 5 && numbers >= 4 ? CSV_CURVE : n == 7 ? CSV_REQUESTS : n == 3 && numbers < 3 ? CSV_EVENTS : -1;
}

int import_guess(const char *text, size_t len)
{
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
        text += 3;
        len -= 3;
    }
    while (len && strchr("\r\n \t", *text)) {
        text++;
        len--;
    }
    const char *end = memchr(text, '\n', len);
    size_t n = end ? (size_t)(end - text) : len;
    if (has_column(text, n, "endpoint"))
        return CSV_REQUESTS;
    if (has_column(text, n, "kind") && has_column(text, n, "text"))
        return CSV_EVENTS;
    if (has_column(text, n, "ts") || has_column(text, n, "epoch_seconds"))
        return CSV_CURVE;
    return guess_by_cells(text, n);
}

static int find_kind(const struct args *args, int fd, enum csv_kind *ret, struct err *err)
{
    const char *name = args_str(args, "kind");
    char head[4096];
    if (name) {
        *ret = (enum csv_kind)kind_by_name(name);
        return 0;
    }
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0 && errno != ESPIPE)
        return cmd_errno(err, errno, args->pos[1], "name a CSV file that can be read");
    if (n < 0)
        return err_set(err, LT_EUSAGE, "%s: a pipe does not show its kind beforehand; add --kind curve, requests or events", args->pos[1]);
    int kind = import_guess(head, (size_t)n);
    if (n && kind < 0)
        return err_set(err, LT_EPARSE, "%s: its first line is of no known kind; add --kind curve, requests or events", args->pos[1]);
    *ret = n ? (enum csv_kind)kind : CSV_CURVE;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static int on_row(void *ctx, const struct csv_row *row)
{
    struct importer *im = ctx;
    if (cmd_stopped())
        return LT_EINTR;
    return importer_row(im, row);
}

/* Between buffers, so that a line without end can be stopped too. */
static int on_progress(void *ctx, uint64_t bytes)
{
    struct importer *im = ctx;
    char done[UNITS_TEXT_MAX];
    if (im->show_of > 0)
        fprintf(stderr, "\r\033[K%3.0f %%  %s", 100.0 * (double)bytes / (double)im->show_of, units_bytes((double)bytes, done));
    return cmd_stopped() ? LT_EINTR : 0;
}

static int64_t size_to_show(int fd, const struct args *args)
{
    struct stat st;
    bool wanted = !args->quiet && isatty(STDERR_FILENO) && !fstat(fd, &st) && S_ISREG(st.st_mode);
    return wanted && st.st_size >= PROGRESS_MIN_BYTES ? st.st_size : 0;
}

/* The header's errors: the reader does not know the file's name. */
static void name_file(struct err *err, const char *path)
{
    struct err why = *err;
    err_set(err, why.code, "%s: %s", path, why.text);
}

static int read_all(struct importer *im, int fd, const struct args *args, struct csv_report *report, struct err *err)
{
    const struct csv_options options = { .skip_unknown = args_flag(args, "skip-unknown"), .progress = on_progress };
    im->show_of = size_to_show(fd, args);
    int r = csv_read_fd(fd, im->kind, &options, on_row, im, report, err);
    if (!r)
        r = importer_flush(im);
    if (im->show_of)
        fputs("\r\033[K", stderr);
    if (r == LT_EINTR)
        return err_set(err, r, "%s: stopped after %llu rows were written; run the same command again, nothing is counted twice",
                       args->pos[1], (unsigned long long)im->written);
    if (r && im->err.code)
        *err = im->err;
    else if (r == LT_EPARSE)
        name_file(err, args->pos[1]);
    return r;
}

/* ---- the answer ----------------------------------------------------------------------------------------------- */

static void say_bad_lines(const char *file, const struct csv_report *rep)
{
    for (size_t i = 0; i < rep->nbad; i++)
        log_warn("%s:%llu: %s; the line is left out", file, (unsigned long long)rep->bad_lines[i].line, rep->bad_lines[i].why);
    if (rep->bad > rep->nbad)
        log_warn("%s: %llu more bad lines are left out", file, (unsigned long long)(rep->bad - rep->nbad));
    if (*rep->skipped)
        log_warn("%s: columns passed over: %s", file, rep->skipped);
}

static json_t *report_json(const struct args *args, const struct importer *im, const struct csv_report *rep)
{
    json_t *bad = json_array();
    for (size_t i = 0; i < rep->nbad; i++)
        json_array_append_new(bad, json_pack("{s:I, s:s}", "line", (json_int_t)rep->bad_lines[i].line, "why", rep->bad_lines[i].why));
    return json_pack("{s:o, s:o, s:s, s:I, s:I, s:o, s:o, s:o}", "target", cmd_json_text(args->pos[0]), "file",
                     cmd_json_text(args->pos[1]), "kind",
                     kind_names[im->kind], "rows", (json_int_t)im->written, "bad", (json_int_t)rep->bad, "bad_lines", bad, "from",
                     cmd_json_time(im->from_ns), "to", cmd_json_time(im->to_ns));
}

static int answer(const struct args *args, const struct importer *im, const struct csv_report *rep, struct err *err)
{
    char rows[UNITS_TEXT_MAX], from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];
    say_bad_lines(args->pos[1], rep);
    if (!im->written && rep->bad)
        return err_set(err, LT_EPARSE, "%s: all %llu lines are bad; correct the file or --kind", args->pos[1], (unsigned long long)rep->bad);
    if (!im->written)
        return err_set(err, LT_ENODATA, "%s: holds no rows; nothing was imported", args->pos[1]);
    if (args->json)
        return cmd_print_json(report_json(args, im, rep), err);
    if (!args->quiet)
        printf("%s: %s rows of %s, %s to %s, %llu bad lines\n", args->pos[0], units_count((double)im->written, rows),
               kind_names[im->kind], clock_rfc3339(im->from_ns, from), clock_rfc3339(im->to_ns, to), (unsigned long long)rep->bad);
    return 0;
}

/* ---- the verb ------------------------------------------------------------------------------------------------- */

static int open_file(const char *path, struct err *err)
{
    int fd = str_eq(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : fd_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return cmd_errno(err, str_eq(path, "-") ? errno : -fd, path, "name a CSV file that can be read");
    return fd;
}

/* Nothing is made, no store and no target, before the file has given a row. */
static int import_fd(const struct args *args, int fd, struct err *err)
{
    struct csv_report report = { 0 };
    _cleanup_mem_ struct importer *im = mem_zalloc(1, sizeof *im);
    enum csv_kind kind = CSV_CURVE;
    if (!im)
        return err_set(err, LT_ENOMEM, "the import: no memory for it; free some and try again");
    int r = find_kind(args, fd, &kind, err);
    if (r)
        return r;
    importer_init(im, kind, args);
    cmd_signal_fd();
    r = read_all(im, fd, args, &report, err);
    int c = importer_release(im, r ? NULL : err);
    r = r ? r : c;
    return r ? r : answer(args, im, &report, err);
}

/* Every answer shows the name: what would steer a terminal, or is no text, is refused before anything is made. */
static int check_name(const char *name, struct err *err)
{
    char copy[TARGET_NAME_MAX];
    size_t len = str_copy(copy, sizeof copy, name);
    str_printable(copy);
    if (len && len < sizeof copy && str_eq(copy, name))
        return 0;
    return err_set(err, LT_EUSAGE, "TARGET: not a name of 1 to %d printable bytes; choose another", TARGET_NAME_MAX - 1);
}

static int import_run(const struct args *args, struct err *err)
{
    int r = check_name(args->pos[0], err);
    if (r)
        return r;
    int fd = open_file(args->pos[1], err);
    if (fd < 0)
        return fd;
    r = import_fd(args, fd, err);
    fd_close(fd);
    return r;
}

static const struct cmd_pos import_pos[] = { { "TARGET", "target", false, false }, { "FILE", "file", false, false }, { 0 } };
static const struct opt import_opts[] = {
    { .name = "kind", .type = OPT_CHOICE, .arg = "curve|requests|events", .help = "What the file holds; else its first line tells." },
    { .name = "skip-unknown", .type = OPT_FLAG, .help = "Pass over columns of unknown names instead of refusing the file." },
    { 0 },
};
static const char *const import_examples[] = {
    "lowtide import api curve.csv", "Samples that a shell loop or another tool took.",
    "lowtide import api requests.csv --kind requests", "Request counts by endpoint, so growth can be divided by them.",
    "lowtide import api - --kind events < events.csv", "Releases and other events, from standard input.",
    NULL,
};

const struct cmd cmd_import = {
    .name = "import",
    .brief = "bring samples, request counts or events from a CSV file",
    .description =
        "A curve has a column ts (epoch seconds or RFC 3339) and any of pid, start_time, rss_kb, rss_bytes and the names of the "
        "series; without a header it is epoch_seconds,rss_kb,fds,threads,children. Rows that name no pid are one process, whose pid is shown as \"-\" "
        "(null in JSON). Requests are "
        "ts,endpoint,version,stream,outcome,n,pid, of which all but ts, endpoint and n may be missing under a header. Events are "
        "ts,kind,text.\n"
        "\n"
        "Bad lines are counted, the first ten are named by number, and the others are imported. Importing a file again changes "
        "nothing. A file of any size takes little memory: it is written in chunks, and after an interruption the same command "
        "completes it. FILE may be - for standard input.",
    .examples = import_examples,
    .pos = import_pos,
    .opts = import_opts,
    .run = import_run,
};
