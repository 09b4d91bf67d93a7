/* Streams a CSV file through one buffer: records are cut and turned into rows in place (csvrecord.c). */
#include "source/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "source/csvrecord.h"

struct reader {
    int fd;
    const struct csv_options *options;
    csv_row_fn fn;
    void *ctx;
    struct csv_report *report;
    struct csv_table table;
    struct csv_record record;
    struct csv_row row;
    bool started;             /* the first record was seen */
    bool skipping;            /* inside a line that is too long */
    size_t from, have;        /* unread text: buffer[from..have) */
    char buffer[CSV_BUFFER + 1]; /* and the '\n' that ends each scan */
};

static void bad_line(struct reader *r, const char *why)
{
    struct csv_report *rep = r->report;

    if (rep->nbad < CSV_BAD_KEPT) {
        rep->bad_lines[rep->nbad].line = rep->lines + 1;
        str_copy(rep->bad_lines[rep->nbad++].why, sizeof rep->bad_lines[0].why, why);
    }
    rep->bad++;
}

/* The first record decides the columns. *ret_is_row: it is itself a row. */
static int start(struct reader *r, enum csv_kind kind, bool *ret_is_row, struct err *err)
{
    struct csv_report *rep = r->report;

    *ret_is_row = csv_is_time(&r->record.cells[0]);
    rep->has_header = !*ret_is_row;
    if (*ret_is_row) {
        csv_table_preset(&r->table, kind);
    } else {
        int res = csv_table_header(&r->table, kind, &r->record, r->options && r->options->skip_unknown, rep, err);
        if (res)
            return res;
    }
    for (size_t i = 0; i < r->table.n; i++) {
        const struct csv_column *col = &r->table.columns[i];
        if (col->type == COLUMN_METRIC)
            rep->columns[col->metric] = true;
        rep->has_pid |= col->type == COLUMN_PID;
        rep->has_start_time |= col->type == COLUMN_START;
    }
    csv_row_blank(&r->row, kind);
    r->started = true;
    return 0;
}

static int take_record(struct reader *r, enum csv_kind kind, struct err *err)
{
    char why[sizeof r->report->bad_lines[0].why];
    bool is_row = true;
    int res;

    if (!r->started && ((res = start(r, kind, &is_row, err)) || !is_row))
        return res;
    if (!csv_table_row(&r->table, &r->record, &r->row, why, sizeof why)) {
        bad_line(r, why);
        return 0;
    }
    r->row.line = r->report->lines + 1;
    r->report->rows++;
    return r->fn(r->ctx, &r->row);
}

/* A record that does not end in the buffer: an overlong one, or one whose quote is never closed. The line it began on is given
 * up; when that line does not end here either, all up to its end is skipped as it comes. */
static void give_up_line(struct reader *r)
{
    char *from = r->buffer + r->from;
    char *nl = memchr(from, '\n', r->have - r->from);
    size_t len = nl ? (size_t)(nl - from) : r->have - r->from;

    bad_line(r, len > CSV_LINE_MAX ? "the line is too long" : "a quote is not closed, or the record is too long");
    r->skipping = !nl;
    r->from = nl ? (size_t)(nl + 1 - r->buffer) : r->have;
    r->report->lines += nl != NULL;
}

/* Drops the rest of an overlong line: false when it goes on behind the buffer. */
static bool skip_rest(struct reader *r)
{
    char *nl = memchr(r->buffer + r->from, '\n', r->have - r->from);

    r->from = nl ? (size_t)(nl + 1 - r->buffer) : r->have;
    r->report->lines += nl != NULL;
    r->skipping = !nl;
    return nl != NULL;
}

/* Takes all records that end in the buffer. At the end of the file the last line needs no line end. */
static int take_records(struct reader *r, enum csv_kind kind, bool eof, struct err *err)
{
    while (r->from < r->have) {
        if (r->skipping && !skip_rest(r))
            return 0;
        if (r->from == r->have)
            return 0;
        r->buffer[r->have] = '\n';
        enum csv_cut cut = csv_cut(r->buffer + r->from, r->buffer + r->have, &r->record);
        if (cut == CSV_MORE) {
            if (!eof && r->have - r->from <= CSV_LINE_MAX)
                return 0;
            give_up_line(r);
            continue;
        }
        size_t next = (size_t)(r->record.next - r->buffer);
        uint64_t lines = r->record.lines;
        if (cut == CSV_BAD) {
            bad_line(r, r->record.why);
        } else if (cut == CSV_GOOD) {
            int res = next - r->from > CSV_LINE_MAX + 1 ? (bad_line(r, "the line is too long"), 0) : take_record(r, kind, err);
            if (res)
                return res;
        }
        r->report->lines += lines;
        r->from = next;
    }
    return 0;
}

/* More text behind what is left: bytes, 0 at the end of the file, or -errno. */
static ssize_t refill(struct reader *r)
{
    memmove(r->buffer, r->buffer + r->from, r->have - r->from);
    r->have -= r->from;
    r->from = 0;
    for (;;) {
        ssize_t n = read(r->fd, r->buffer + r->have, CSV_BUFFER - r->have);
        if (n >= 0) {
            r->have += (size_t)n;
            r->report->bytes += (uint64_t)n;
            return n;
        }
        if (errno != EINTR)
            return -errno;
    }
}

static void skip_byte_order_mark(struct reader *r)
{
    if (r->have - r->from >= 3 && !memcmp(r->buffer + r->from, "\xef\xbb\xbf", 3))
        r->from += 3;
}

/* The end of the file: a last line without line end gets one. */
static int take_tail(struct reader *r, enum csv_kind kind, struct err *err)
{
    if (r->have > r->from && r->buffer[r->have - 1] != '\n' && r->have < CSV_BUFFER)
        r->buffer[r->have++] = '\n';
    return take_records(r, kind, true, err);
}

static int read_all(struct reader *r, enum csv_kind kind, struct err *err)
{
    bool first = true;

    for (;;) {
        ssize_t n = refill(r);
        if (n < 0)
            return err_errno(err, LT_EIO, (int)-n, "cannot read");
        if (n == 0)
            return take_tail(r, kind, err);
        if (first && r->have < 3)
            continue; /* a pipe may give less than the mark */
        if (first)
            skip_byte_order_mark(r);
        first = false;
        int res = take_records(r, kind, false, err);
        if (res)
            return res;
        if (r->options && r->options->progress)
            res = r->options->progress(r->ctx, r->report->bytes);
        if (res)
            return res;
    }
}

int csv_read_fd(int fd, enum csv_kind kind, const struct csv_options *options, csv_row_fn fn, void *ctx,
                struct csv_report *ret_report, struct err *err)
{
    *ret_report = (struct csv_report){ 0 };
    _cleanup_mem_ struct reader *r = mem_alloc(sizeof *r);
    if (!r)
        return err_set(err, LT_ENOMEM, "out of memory");
    memset(r, 0, offsetof(struct reader, buffer));
    r->fd = fd;
    r->options = options;
    r->fn = fn;
    r->ctx = ctx;
    r->report = ret_report;
    return read_all(r, kind, err);
}

int csv_read_file(const char *path, enum csv_kind kind, const struct csv_options *options, csv_row_fn fn, void *ctx,
                  struct csv_report *ret_report, struct err *err)
{
    struct err inner = { 0 };

    *ret_report = (struct csv_report){ 0 };
    if (str_eq(path, "-"))
        return csv_read_fd(STDIN_FILENO, kind, options, fn, ctx, ret_report, err);
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return err_errno(err, fd == -ENOENT ? LT_ENOENT : LT_EIO, -fd, "%s: cannot be opened", path);
    int r = csv_read_fd(fd, kind, options, fn, ctx, ret_report, &inner);
    return r && inner.code ? err_set(err, r, "%s: %s", path, inner.text) : r;
}
