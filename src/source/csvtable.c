/* The columns of the three kinds of CSV files: names, what each needs, and headers against them. */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "source/csvrecord.h"

/* Columns other than metrics. */
static const struct known {
    enum csv_kind kind;
    const char *name;
    enum csv_column_type type;
    bool needed;
} known[] = {
    { CSV_CURVE, "ts", COLUMN_TS, true },
    { CSV_CURVE, "epoch_seconds", COLUMN_TS, false },
    { CSV_CURVE, "pid", COLUMN_PID, false },
    { CSV_CURVE, "start_time", COLUMN_START, false },
    { CSV_REQUESTS, "ts", COLUMN_TS, true },
    { CSV_REQUESTS, "endpoint", COLUMN_ENDPOINT, true },
    { CSV_REQUESTS, "version", COLUMN_VERSION, false },
    { CSV_REQUESTS, "stream", COLUMN_STREAM, false },
    { CSV_REQUESTS, "outcome", COLUMN_OUTCOME, false },
    { CSV_REQUESTS, "n", COLUMN_N, true },
    { CSV_REQUESTS, "pid", COLUMN_PID, false },
    { CSV_EVENTS, "ts", COLUMN_TS, true },
    { CSV_EVENTS, "kind", COLUMN_KIND, true },
    { CSV_EVENTS, "text", COLUMN_TEXT, true },
};

/* Files without a header. */
static const char *const presets[][8] = {
    [CSV_CURVE] = { "epoch_seconds", "rss_kb", "fds", "threads", "children" },
    [CSV_REQUESTS] = { "ts", "endpoint", "version", "stream", "outcome", "n", "pid" },
    [CSV_EVENTS] = { "ts", "kind", "text" },
};

/* Names of metrics with their unit behind: the metric is the same. */
static const struct { const char *name; const char *metric; int64_t factor; } spellings[] = {
    { "rss_kb", "rss", 1024 },
    { "rss_bytes", "rss", 1 },
};

static bool find_metric(const char *name, struct csv_column *col)
{
    col->factor = 1;
    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++)
        if (str_eq(name, spellings[i].name)) {
            name = spellings[i].metric;
            col->factor = spellings[i].factor;
            break;
        }
    col->metric = metric_by_name(name, strlen(name));
    col->type = COLUMN_METRIC;
    return col->metric >= 0;
}

/* Fills col->type by col->name; false when no column bears that name. */
static bool find_column(enum csv_kind kind, struct csv_column *col)
{
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].kind == kind && str_eq(known[i].name, col->name)) {
            col->type = known[i].type;
            return true;
        }
    if (kind == CSV_CURVE && find_metric(col->name, col))
        return true;
    col->type = COLUMN_SKIP;
    return false;
}

void csv_table_preset(struct csv_table *t, enum csv_kind kind)
{
    *t = (struct csv_table){ .kind = kind };
    for (; presets[kind][t->n]; t->n++) {
        struct csv_column *col = &t->columns[t->n];
        str_copy(col->name, sizeof col->name, presets[kind][t->n]);
        find_column(kind, col);
    }
}

static void read_name(const struct csv_cell *cell, struct csv_column *col)
{
    size_t n = MIN(cell->len, sizeof col->name - 1);

    for (size_t i = 0; i < n; i++)
        col->name[i] = (char)tolower((unsigned char)cell->p[i]);
    col->name[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if (!col->name[i])
            col->name[i] = '?';
    str_printable(col->name);
}

static bool same_value(const struct csv_column *a, const struct csv_column *b)
{
    return a->type != COLUMN_SKIP && a->type == b->type && (a->type != COLUMN_METRIC || a->metric == b->metric);
}

/* Names in a list; what does not fit ends in "...". */
struct names {
    char text[256];
    size_t n, len;
};

static void names_add(struct names *l, const char *name)
{
    if (l->len + strlen(name) + sizeof ", ..." > sizeof l->text) {
        if (l->len + sizeof ", ..." <= sizeof l->text && l->n && !strstr(l->text, "..."))
            l->len += str_fmt(l->text + l->len, sizeof l->text - l->len, ", ...");
        l->n++;
        return;
    }
    l->len += str_fmt(l->text + l->len, sizeof l->text - l->len, "%s%s", l->n ? ", " : "", *name ? name : "(no name)");
    l->n++;
}

static void find_double(const struct csv_table *t, struct names *ret)
{
    for (size_t i = 1; i < t->n; i++)
        for (size_t j = 0; j < i; j++)
            if (same_value(&t->columns[i], &t->columns[j])) {
                names_add(ret, t->columns[i].name);
                break;
            }
}

static bool has_type(const struct csv_table *t, enum csv_column_type type)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->columns[i].type == type)
            return true;
    return false;
}

static void find_missing(const struct csv_table *t, struct names *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].kind == t->kind && known[i].needed && !has_type(t, known[i].type))
            names_add(ret, known[i].name);
    if (t->kind == CSV_CURVE && !has_type(t, COLUMN_METRIC))
        names_add(ret, "at least one measured column (rss_kb, fds, ...)");
}

int csv_table_header(struct csv_table *t, enum csv_kind kind, const struct csv_record *header, bool skip_unknown,
                     struct csv_report *report, struct err *err)
{
    struct names unknown = { 0 }, twice = { 0 }, missing = { 0 };

    *t = (struct csv_table){ .kind = kind };
    if (header->ncells > CSV_COLUMNS)
        return err_set(err, LT_EPARSE, "header: %zu columns; at most %d can be read", header->ncells, CSV_COLUMNS);
    for (; t->n < header->ncells; t->n++) {
        read_name(&header->cells[t->n], &t->columns[t->n]);
        if (!find_column(kind, &t->columns[t->n]))
            names_add(&unknown, t->columns[t->n].name);
    }
    find_double(t, &twice);
    find_missing(t, &missing);
    if (unknown.n && !skip_unknown)
        return err_set(err, LT_EPARSE, "header: unknown column%s: %s; rename or remove", unknown.n > 1 ? "s" : "", unknown.text);
    if (twice.n)
        return err_set(err, LT_EPARSE, "header: given more than once: %s; keep one of each", twice.text);
    if (missing.n)
        return err_set(err, LT_EPARSE, "header: missing: %s", missing.text);
    str_copy(report->skipped, sizeof report->skipped, unknown.text);
    return 0;
}
