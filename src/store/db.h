/* The store's door to SQLite: statements prepared once, values bound by type, errors named, every row checksummed.
 *
 * Rows. Each table's last column is `crc`: CRC-32C over the table's number and all other columns, the row id included. A row is
 * written with the values in table order, and the crc is appended here; a row is read with the same columns in the same
 * order, and rows_next() steps over those whose crc does not match, counting them in store->lost_rows.
 */
#ifndef LT_STORE_DB_H
#define LT_STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/sql.h"
#include "store/store.h"

enum stmt_id {
#define X(id, sql) STMT_##id,
    STORE_STATEMENTS(X)
#undef X
    STMT_N
};

/* Tables by the number that seeds their checksum (FORMAT.md: append only), with their number of columns, crc included. */
#define STORE_TABLES(X) \
    X(META, "meta", 3) X(WORD, "word", 3) X(TARGET, "target", 4) X(LIFE, "life", 8) X(SWEEP, "sweep", 4) \
    X(CHUNK, "chunk", 6) X(EVENT, "event", 6) X(GAP, "gap", 5) X(RSERIES, "rseries", 9) X(REQUEST, "request", 3) \
    X(HIST, "hist", 6) X(KEY, "hkey", 3)

enum table_id {
    TABLE_NONE,
#define X(id, name, columns) TABLE_##id,
    STORE_TABLES(X)
#undef X
    TABLE_N
};

struct table { const char *name; int columns; };
extern const struct table tables[TABLE_N];

enum val_type { VAL_INT, VAL_TEXT, VAL_BLOB };
struct val { enum val_type type; int64_t i; const void *p; size_t len; };
#define VI(x) ((struct val){.type = VAL_INT, .i = (int64_t)(x)})
#define VT(s) val_text(s)
#define VB(ptr, n) ((struct val){.type = VAL_BLOB, .p = (ptr), .len = (n)})
struct val val_text(const char *s);

uint32_t row_crc(enum table_id table, const struct val *v, size_t n);

/* One statement's rows. `table`: TABLE_NONE for rows without a crc. */
struct rows { struct store *s; sqlite3_stmt *st; enum stmt_id id; enum table_id table; bool own; };
int rows_open_n(struct rows *r, struct store *s, enum stmt_id id, enum table_id table, const struct val *v, size_t n, struct err *err);
#define rows_open(r, s, id, table, err, ...) \
    rows_open_n(r, s, id, table, (const struct val[]){__VA_ARGS__}, sizeof((const struct val[]){__VA_ARGS__}) / sizeof(struct val), err)
int rows_next(struct rows *r, struct err *err); /* 1: a row, 0: the end, < 0: LT_E* */
void rows_close(struct rows *r);
bool rows_sound(const struct rows *r, enum table_id table); /* whether the current row's crc is that of its other columns */
#define _cleanup_rows_ __attribute__((cleanup(rows_close)))

static inline int64_t rows_int(const struct rows *r, int c) { return sqlite3_column_int64(r->st, c); }
const char *rows_text(const struct rows *r, int c);                       /* never NULL */
const uint8_t *rows_blob(const struct rows *r, int c, size_t *ret_len);   /* never NULL */

/* Runs a statement to its end. For a table, the crc of the values is bound behind them. */
int db_run_n(struct store *s, enum stmt_id id, enum table_id table, const struct val *v, size_t n, struct err *err);
#define db_run(s, id, err, ...) db_run_n(s, id, TABLE_NONE, (const struct val[]){__VA_ARGS__}, \
                                         sizeof((const struct val[]){__VA_ARGS__}) / sizeof(struct val), err)
#define db_put(s, id, table, err, ...) db_run_n(s, id, table, (const struct val[]){__VA_ARGS__}, \
                                                sizeof((const struct val[]){__VA_ARGS__}) / sizeof(struct val), err)
/* The first column of the first row of a statement without parameters or with one. */
int db_number(struct store *s, enum stmt_id id, int64_t *ret, struct err *err);

/* Transactions, nested by count: the outermost begins and ends. After a failure inside, db_end(s, false) rolls back. */
int db_begin(struct store *s, bool write, struct err *err);
int db_end(struct store *s, bool keep, struct err *err);

/* Error of SQLite's last call, as LT_E* with text "store PATH: why; what to do". */
int db_error(struct store *s, int rc, struct err *err);
void db_finalize(struct store *s); /* drops all prepared statements */

#endif
