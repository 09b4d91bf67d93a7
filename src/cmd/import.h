/* The verb import: what becomes of the rows of a CSV file (importer.c); the verb itself is import.c. */
#ifndef LT_CMD_IMPORT_H
#define LT_CMD_IMPORT_H

#include "base/map.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "source/csv.h"

struct importer {
    enum csv_kind kind;
    const struct args *args;
    struct store *store;     /* opened when the first chunk is written */
    int64_t target_id;
    struct vec rows;         /* struct import_curve: the curve rows of this chunk */
    struct map sums;         /* requests so far, by hash of their key */
    struct strset *endpoints;
    bool in_transaction;
    uint64_t written, chunk; /* rows committed; rows of the open chunk */
    int64_t from_ns, to_ns;
    int64_t show_of;         /* bytes of the file when progress is shown, else 0 */
    struct err err;          /* what went wrong while a row was taken */
};

void importer_init(struct importer *im, enum csv_kind kind, const struct args *args);
int importer_row(struct importer *im, const struct csv_row *row);   /* im->err says what went wrong */
int importer_flush(struct importer *im);                            /* commits the chunk */
int importer_release(struct importer *im, struct err *err);         /* an open chunk is dropped */

/* The kind of a file by its beginning: an enum csv_kind, or -1. */
int import_guess(const char *text, size_t len);

#endif
