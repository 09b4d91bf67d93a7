/* One record of a CSV text cut into cells, and cells turned into values of a row. The inside of csv.c. */
#ifndef LT_SOURCE_CSVRECORD_H
#define LT_SOURCE_CSVRECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/csv.h"

struct csv_cell {
    char *p;
    size_t len;
    bool doubled;             /* holds "" that stand for " */
};

struct csv_record {
    size_t ncells;            /* in the text; those above CSV_COLUMNS are not kept */
    struct csv_cell cells[CSV_COLUMNS];
    char *next;               /* where the next record begins */
    uint64_t lines;           /* physical lines it took */
    const char *why;          /* of CSV_BAD */
};

enum csv_cut { CSV_GOOD, CSV_EMPTY, CSV_MORE, CSV_BAD };

/* Cuts the record at p. *end is a '\n' of the caller's, not of the text. CSV_MORE: the record does not end before end. After
 * CSV_BAD next is the line after the one the record began on. The text is not changed. */
enum csv_cut csv_cut(char *p, char *end, struct csv_record *ret);

enum csv_column_type { /* those from COLUMN_ENDPOINT on are text */
    COLUMN_SKIP, COLUMN_TS, COLUMN_PID, COLUMN_START, COLUMN_METRIC, COLUMN_N, COLUMN_ENDPOINT, COLUMN_VERSION, COLUMN_STREAM,
    COLUMN_OUTCOME, COLUMN_KIND, COLUMN_TEXT
};

struct csv_column {
    enum csv_column_type type;
    int metric;               /* of COLUMN_METRIC */
    int64_t factor;           /* 1024 for kB */
    char name[40];
};

struct csv_table {
    enum csv_kind kind;
    size_t n;
    struct csv_column columns[CSV_COLUMNS];
};

/* The columns of a file with this header, or of one without. LT_EPARSE says what is wrong with it. */
int csv_table_header(struct csv_table *t, enum csv_kind kind, const struct csv_record *header, bool skip_unknown,
                     struct csv_report *report, struct err *err);
void csv_table_preset(struct csv_table *t, enum csv_kind kind);

/* Fills row (which begins as csv_row_blank left it) from the record; false with the reason in why. Strings in row point into
 * the text, which is changed. */
bool csv_table_row(const struct csv_table *t, struct csv_record *r, struct csv_row *row, char *why, size_t size);
void csv_row_blank(struct csv_row *row, enum csv_kind kind);

bool csv_is_time(const struct csv_cell *c);

#endif
