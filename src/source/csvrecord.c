#include "source/csvrecord.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#define VALUE_MAX (INT64_C(1) << 62)

/* ---- cells ------------------------------------------------------------------------------------------------------ */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The closing quote of the cell whose text begins at p; NULL when there is none before end. */
static char *closing_quote(char *p, const char *end, struct csv_cell *cell, uint64_t *lines)
{
    for (; p < end; p++) {
        if (*p == '\n')
            ++*lines;
        if (*p != '"')
            continue;
        if (p[1] != '"') /* p[1] is readable: at worst *end */
            return p;
        cell->doubled = true;
        p++;
    }
    return NULL;
}

/* A quoted cell from its opening quote: returns where its separator is; NULL with *ret_cut CSV_MORE or CSV_BAD. */
static char *cut_quoted(char *p, char *end, struct csv_cell *cell, struct csv_record *r, enum csv_cut *ret_cut)
{
    char *q = closing_quote(p + 1, end, cell, &r->lines);

    cell->p = p + 1;
    if (!q) {
        *ret_cut = CSV_MORE;
        return NULL;
    }
    cell->len = (size_t)(q - p) - 1;
    for (q++; is_blank(*q) || (*q == '\r' && q < end && q[1] == '\n'); q++)
        ;
    if (*q == ',' || *q == '\n')
        return q;
    r->why = "text after a closing quote";
    *ret_cut = CSV_BAD;
    return NULL;
}

static char *cut_plain(char *p, struct csv_cell *cell)
{
    char *q = p;

    while (*q != ',' && *q != '\n')
        q++;
    char *last = q;
    if (*q == '\n' && last > p && last[-1] == '\r')
        last--;
    while (last > p && is_blank(last[-1]))
        last--;
    cell->p = p;
    cell->len = (size_t)(last - p);
    return q;
}

/* A bad record: the line it began on is given up, the rest is read on. */
static enum csv_cut give_up(char *from, char *end, struct csv_record *ret)
{
    char *nl = memchr(from, '\n', (size_t)(end - from));

    if (!nl)
        return CSV_MORE;
    ret->next = nl + 1;
    ret->lines = 1;
    return CSV_BAD;
}

enum csv_cut csv_cut(char *p, char *end, struct csv_record *ret)
{
    char *from = p;
    size_t n = 0;

    ret->lines = 1;
    ret->why = NULL;
    for (;; p++) {
        struct csv_cell spare, *cell = n < CSV_COLUMNS ? &ret->cells[n] : &spare;
        enum csv_cut cut = CSV_GOOD;
        while (is_blank(*p))
            p++;
        cell->doubled = false;
        p = *p == '"' ? cut_quoted(p, end, cell, ret, &cut) : cut_plain(p, cell);
        n++;
        if (cut == CSV_BAD)
            return give_up(from, end, ret);
        if (cut == CSV_MORE || p == end)
            return CSV_MORE;
        if (*p == '\n')
            break;
    }
    ret->ncells = n;
    ret->next = p + 1;
    return n == 1 && ret->cells[0].len == 0 ? CSV_EMPTY : CSV_GOOD;
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* Where the reason for a bad line is put. */
struct complaint {
    char *text;
    size_t size;
};

static bool complain(const struct complaint *c, const char *name, const struct csv_cell *cell, const char *what)
{
    char shown[40];

    str_fmt(shown, sizeof shown, "%.*s", (int)MIN(cell->len, (size_t)32), cell->p);
    str_printable(shown);
    str_fmt(c->text, c->size, "%s: '%s' %s", name, shown, what);
    return false;
}

/* Up to 18 digits and nothing else: what nearly all cells are. */
static bool plain_digits(const struct csv_cell *c, int64_t *ret)
{
    int64_t v = 0;

    if (c->len == 0 || c->len > 18)
        return false;
    for (size_t i = 0; i < c->len; i++) {
        unsigned d = (unsigned)(c->p[i] - '0');
        if (d > 9)
            return false;
        v = v * 10 + d;
    }
    *ret = v;
    return true;
}

/* A number >= 0, times factor, at most VALUE_MAX. */
static bool read_value(const struct csv_cell *c, const char *name, int64_t factor, int64_t *ret, const struct complaint *why)
{
    int64_t v;
    double d;

    if (plain_digits(c, &v) && v <= VALUE_MAX / factor) {
        *ret = v * factor;
        return true;
    }
    if (units_double(c->p, c->len, &d))
        return complain(why, name, c, "is not a number");
    if (d < 0)
        return complain(why, name, c, "is below 0");
    if (d * (double)factor > (double)VALUE_MAX)
        return complain(why, name, c, "is too large");
    *ret = llround(d * (double)factor);
    return true;
}

static bool read_time(const struct csv_cell *c, const char *name, int64_t *ret, const struct complaint *why)
{
    int64_t v;

    if (c->len <= 10 && plain_digits(c, &v) && v <= INT64_MAX / NS_PER_S) {
        *ret = v * NS_PER_S;
        return true;
    }
    if (c->len == 0)
        return complain(why, name, c, "is empty: a line needs a time");
    if (clock_parse(c->p, c->len, &v) || v < 0)
        return complain(why, name, c, "is no time (epoch seconds or RFC 3339)");
    *ret = v;
    return true;
}

bool csv_is_time(const struct csv_cell *c)
{
    int64_t v;

    return c->len > 0 && clock_parse(c->p, c->len, &v) == 0;
}

static bool read_pid(const struct csv_cell *c, const char *name, int32_t *ret, const struct complaint *why)
{
    int64_t v = 0;

    if (c->len && (!plain_digits(c, &v) || v > INT32_MAX))
        return complain(why, name, c, "is no process id");
    *ret = (int32_t)v;
    return true;
}

/* Ends the cell's text in place: the byte behind it is a separator, quote or blank already used. */
static const char *read_text(struct csv_cell *c)
{
    if (c->doubled) {
        size_t n = 0;
        for (size_t i = 0; i < c->len; i++) {
            c->p[n++] = c->p[i];
            i += c->p[i] == '"' && i + 1 < c->len;
        }
        c->len = n;
        c->doubled = false;
    }
    c->p[c->len] = '\0';
    str_printable(c->p);
    return c->p;
}

static bool read_needed_text(struct csv_cell *c, const char *name, const char **ret, const struct complaint *why)
{
    if (c->len == 0)
        return complain(why, name, c, "is empty");
    *ret = read_text(c);
    return true;
}

static bool read_stream(const struct csv_cell *c, const char *name, int *ret, const struct complaint *why)
{
    static const struct { const char *text; int value; } words[] = { { "", -1 }, { "0", 0 }, { "1", 1 }, { "false", 0 }, { "true", 1 } };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strlen(words[i].text) == c->len && !strncasecmp(words[i].text, c->p, c->len)) {
            *ret = words[i].value;
            return true;
        }
    return complain(why, name, c, "is not 0, 1, true or false");
}

static bool read_outcome(const struct csv_cell *c, const char *name, const char **ret, const struct complaint *why)
{
    static const char *const words[] = { "ok", "cancelled", "client_error", "upstream_error", "timeout", "error" };

    *ret = words[0];
    for (size_t i = 0; c->len && i < ARRAY_SIZE(words); i++)
        if (strlen(words[i]) == c->len && !memcmp(words[i], c->p, c->len)) {
            *ret = words[i];
            return true;
        }
    return c->len == 0 || complain(why, name, c, "is no outcome (ok, cancelled, client_error, upstream_error, timeout, error)");
}

static bool read_metric(const struct csv_column *col, const struct csv_cell *c, int64_t v[METRIC_N], const struct complaint *why)
{
    if (c->len == 0) {
        v[col->metric] = METRIC_NA;
        return true;
    }
    return read_value(c, col->name, col->factor, &v[col->metric], why);
}

static bool read_count(const struct csv_column *col, const struct csv_cell *c, int64_t *ret, const struct complaint *why)
{
    return c->len ? read_value(c, col->name, 1, ret, why) : complain(why, col->name, c, "is empty");
}

static int64_t *ts_of(struct csv_row *row, enum csv_kind kind)
{
    return kind == CSV_CURVE ? &row->curve.ts_ns : kind == CSV_REQUESTS ? &row->request.ts_ns : &row->event.ts_ns;
}

static bool read_cell(const struct csv_table *t, const struct csv_column *col, struct csv_cell *c, struct csv_row *row,
                      const struct complaint *why)
{
    switch (col->type) {
    case COLUMN_TS: return read_time(c, col->name, ts_of(row, t->kind), why);
    case COLUMN_METRIC: return read_metric(col, c, row->curve.v, why);
    case COLUMN_PID: return read_pid(c, col->name, t->kind == CSV_CURVE ? &row->curve.pid : &row->request.pid, why);
    case COLUMN_START:
        row->curve.start_ns = CLOCK_INVALID;
        return c->len == 0 || read_time(c, col->name, &row->curve.start_ns, why);
    case COLUMN_ENDPOINT: return read_needed_text(c, col->name, &row->request.endpoint, why);
    case COLUMN_VERSION: row->request.version = read_text(c); return true;
    case COLUMN_STREAM: return read_stream(c, col->name, &row->request.stream, why);
    case COLUMN_OUTCOME: return read_outcome(c, col->name, &row->request.outcome, why);
    case COLUMN_N: return read_count(col, c, &row->request.n, why);
    case COLUMN_KIND: return read_needed_text(c, col->name, &row->event.kind, why);
    case COLUMN_TEXT: row->event.text = read_text(c); return true;
    case COLUMN_SKIP: break;
    }
    return true;
}

bool csv_table_row(const struct csv_table *t, struct csv_record *r, struct csv_row *row, char *why, size_t size)
{
    const struct complaint complaint = { why, size };

    if (r->ncells != t->n) {
        str_fmt(why, size, "%zu cell(s) where the file has %zu columns", r->ncells, t->n);
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        struct csv_cell *cell = &r->cells[i];
        bool text = t->columns[i].type >= COLUMN_ENDPOINT; /* a number with a NUL in it is none; text would be cut there */
        size_t len = cell->len;
        bool nul = text && memchr(cell->p, '\0', len);
        bool good = !nul && read_cell(t, &t->columns[i], cell, row, &complaint);
        if (nul || (!good && memchr(cell->p, '\0', len)))
            str_fmt(why, size, "%s: a NUL byte", t->columns[i].name);
        if (!good)
            return false;
    }
    return true;
}

void csv_row_blank(struct csv_row *row, enum csv_kind kind)
{
    *row = (struct csv_row){ 0 };
    if (kind == CSV_CURVE) {
        row->curve.start_ns = CLOCK_INVALID;
        for (int i = 0; i < METRIC_N; i++)
            row->curve.v[i] = METRIC_NA;
    } else if (kind == CSV_REQUESTS) {
        row->request.version = "";
        row->request.outcome = "ok";
        row->request.stream = -1;
    } else {
        row->event.text = "";
    }
}
