/* CSV files people bring (contract.md): curves, requests, events; streamed, so a file of any size takes CSV_BUFFER bytes.
 *
 * Form: RFC 4180 quotes (a quoted cell may hold commas, line ends, and "" for "), LF or CRLF, an optional UTF-8 byte order mark,
 * empty lines skipped, blanks around cells dropped. Times: epoch seconds with fraction, or RFC 3339.
 *
 * Header: the first line is one unless its first cell is a time. Names are taken without case.
 *   curve    ts (or epoch_seconds); any of pid, start_time, rss_kb, rss_bytes, and every metric name of base/metric.h.
 *            Without header: epoch_seconds,rss_kb,fds,threads,children, exactly these five.
 *   requests ts, endpoint, n; any of version, stream, outcome, pid. Without header: ts,endpoint,version,stream,outcome,n,pid.
 *   events   ts, kind, text. Without header: these three.
 * A column of no known name, the same column twice, two columns for one value (rss_kb and rss_bytes), or a needed one missing
 * is LT_EPARSE, and all such names are listed: a name spelt wrong must not become a hole in the data. With
 * `skip_unknown`, unknown ones are passed over instead, and named in the report.
 *
 * Cells: an empty measured cell is METRIC_NA. Measured values are decimal numbers >= 0 (fractions are rounded); NaN, inf,
 * negative, over 2^62, and anything else is a bad line: counted, the first CSV_BAD_KEPT are kept with line number and reason,
 * the others are read on. So are lines with more or fewer cells than columns, without a time, with a quote that is never
 * closed or closed in mid-cell, a NUL byte, or longer than CSV_LINE_MAX. After an unclosed quote reading goes on at the line
 * after the one it opened on. Duplicates and disorder are passed on as they come.
 */
#ifndef LT_SOURCE_CSV_H
#define LT_SOURCE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/metric.h"

#define CSV_BAD_KEPT 10
#define CSV_LINE_MAX (64 * 1024)      /* most bytes of one line (record) */
#define CSV_BUFFER (512 * 1024)
#define CSV_COLUMNS 128

enum csv_kind { CSV_CURVE, CSV_REQUESTS, CSV_EVENTS };

struct csv_curve {
    int64_t ts_ns;
    int64_t start_ns;      /* CLOCK_INVALID when not given */
    int32_t pid;           /* 0 when not given */
    int64_t v[METRIC_N];   /* METRIC_NA where not given */
};

/* Strings are NUL-terminated, printable (str_printable), and live until the callback returns. */
struct csv_request {
    int64_t ts_ns;
    const char *endpoint;  /* never empty */
    const char *version;   /* "" when not given */
    const char *outcome;   /* one of the six of the contract; "ok" when not given */
    int stream;            /* 0, 1; -1 when not given */
    int32_t pid;           /* 0 when not given */
    int64_t n;             /* >= 0 */
};

struct csv_event {
    int64_t ts_ns;
    const char *kind;      /* any word; never empty */
    const char *text;
};

/* One good line; only the member of the file's kind is set. Returns 0 to go on; anything else stops and is returned. */
struct csv_row {
    uint64_t line;         /* number in the file, from 1: of the record's first line */
    union {
        struct csv_curve curve;
        struct csv_request request;
        struct csv_event event;
    };
};
typedef int (*csv_row_fn)(void *ctx, const struct csv_row *row);

struct csv_options {
    bool skip_unknown;                            /* unknown columns are passed over */
    int (*progress)(void *ctx, uint64_t bytes);   /* may be NULL; after each buffer, rows or not: what is not 0 stops */
};

struct csv_report {
    uint64_t bytes, lines;       /* read; lines: physical ones, empty ones too */
    uint64_t rows;               /* good ones, passed on */
    uint64_t bad;                /* bad ones, not passed on */
    size_t nbad;                 /* of them kept here */
    struct csv_bad { uint64_t line; char why[120]; } bad_lines[CSV_BAD_KEPT];
    bool has_header;
    bool columns[METRIC_N];      /* curve: which metrics the file has */
    bool has_pid, has_start_time;
    char skipped[256];           /* unknown columns passed over, "a, b" */
};

/* Reads all of fd (a file, a pipe). ctx is passed to fn and progress; options may be NULL. *ret_report is filled whatever is
 * returned. 0 (also when every line is bad: the caller looks at rows and bad); LT_EPARSE for an unusable header;
 * LT_EIO, LT_ENOMEM; or what fn returned. */
int csv_read_fd(int fd, enum csv_kind kind, const struct csv_options *options, csv_row_fn fn, void *ctx,
                struct csv_report *ret_report, struct err *err);
/* The same for a file by name; "-" is standard input. LT_ENOENT, LT_EPERM name it. */
int csv_read_file(const char *path, enum csv_kind kind, const struct csv_options *options, csv_row_fn fn, void *ctx,
                  struct csv_report *ret_report, struct err *err);

#endif
