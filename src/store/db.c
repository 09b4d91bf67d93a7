#include "store/db.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "store/parts.h"

const struct table tables[TABLE_N] = {
    [TABLE_NONE] = {"", 0},
#define X(id, name, columns) [TABLE_##id] = {name, columns},
    STORE_TABLES(X)
#undef X
};

static const char *const sql[STMT_N] = {
#define X(id, text) [STMT_##id] = text,
    STORE_STATEMENTS(X)
#undef X
};

struct val val_text(const char *s) { return (struct val){.type = VAL_TEXT, .p = s, .len = strlen(s)}; }

/* ---- errors ---- */

static int code_of(struct store *s, int rc)
{
    int sys = s->db ? sqlite3_system_errno(s->db) : 0;
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return LT_EBUSY;
    case SQLITE_FULL:
        return LT_EFULL;
    case SQLITE_NOMEM:
        return LT_ENOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT: /* our keys are unique by construction: only a damaged index says otherwise */
    case SQLITE_ERROR:      /* our statements are fixed: only a damaged schema makes one wrong */
        return LT_ECORRUPT;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return LT_EPERM;
    case SQLITE_CANTOPEN:
        return sys == EACCES || sys == EPERM || sys == EROFS ? LT_EPERM : LT_EIO;
    case SQLITE_IOERR:
        return rc == SQLITE_IOERR_NOMEM ? LT_ENOMEM : sys == ENOSPC || sys == EDQUOT ? LT_EFULL : LT_EIO;
    default:
        return LT_EIO;
    }
}

static const char *advice(int code)
{
    switch (code) {
    case LT_EBUSY: return "another process is writing; try again";
    case LT_EFULL: return "make room on the disk";
    case LT_ECORRUPT: return "see 'lowtide store verify'";
    case LT_EPERM: return "run as the user who owns it, or choose another --db";
    case LT_ENOMEM: return "free some memory";
    default: return "check the disk";
    }
}

int db_error(struct store *s, int rc, struct err *err)
{
    int code = code_of(s, rc);
    return err_set(err, code, "store %s: %s; %s", s->path, s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(rc), advice(code));
}

/* ---- checksums ---- */

static uint32_t crc_int(uint32_t crc, int64_t v)
{
    uint8_t b[8];
    for (int i = 0; i < 8; i++)
        b[i] = (uint8_t)((uint64_t)v >> (8 * i));
    return crc32c(crc, b, sizeof b);
}

uint32_t row_crc(enum table_id table, const struct val *v, size_t n)
{
    uint32_t crc = crc_int(0, table);
    for (size_t i = 0; i < n; i++) {
        crc = crc_int(crc, v[i].type == VAL_INT ? v[i].i : (int64_t)v[i].len);
        if (v[i].type != VAL_INT)
            crc = crc32c(crc, v[i].p, v[i].len);
    }
    return crc;
}

bool rows_sound(const struct rows *r, enum table_id table)
{
    struct val v[16];
    size_t n = (size_t)tables[table].columns - 1;
    for (size_t i = 0; i < n; i++) {
        int c = (int)i;
        switch (sqlite3_column_type(r->st, c)) {
        case SQLITE_INTEGER:
            v[i] = VI(sqlite3_column_int64(r->st, c));
            break;
        case SQLITE_TEXT:
        case SQLITE_BLOB: {
            size_t len;
            const void *p = rows_blob(r, c, &len);
            v[i] = VB(p, len);
            break;
        }
        default:
            return false; /* no column is ever NULL or a float */
        }
    }
    return sqlite3_column_int64(r->st, (int)n) == (int32_t)row_crc(table, v, n);
}

/* ---- statements ---- */

static int bind(sqlite3_stmt *st, const struct val *v, size_t n)
{
    int rc = SQLITE_OK;
    n = MIN(n, (size_t)sqlite3_bind_parameter_count(st)); /* scans of whole tables give all of them the same bounds */
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        int at = (int)i + 1;
        if (v[i].type == VAL_INT)
            rc = sqlite3_bind_int64(st, at, v[i].i);
        else if (v[i].type == VAL_TEXT)
            rc = sqlite3_bind_text64(st, at, v[i].p, v[i].len, SQLITE_STATIC, SQLITE_UTF8);
        else
            rc = sqlite3_bind_blob64(st, at, v[i].len ? v[i].p : "", v[i].len, SQLITE_STATIC);
    }
    return rc;
}

/* The kept statement, or a fresh one (own) while a caller further up is walking the kept one. */
static int take(struct store *s, enum stmt_id id, sqlite3_stmt **ret, bool *ret_own, struct err *err)
{
    sqlite3_stmt *st = s->stmts[id];
    *ret_own = s->stmt_taken[id];
    if (st && !*ret_own) {
        s->stmt_taken[id] = true;
        *ret = st;
        return 0;
    }
    int rc = sqlite3_prepare_v3(s->db, sql[id], -1, *ret_own ? 0 : SQLITE_PREPARE_PERSISTENT, &st, NULL);
    if (rc != SQLITE_OK)
        return db_error(s, rc, err);
    if (!*ret_own) {
        s->stmts[id] = st;
        s->stmt_taken[id] = true;
    }
    *ret = st;
    return 0;
}

int rows_open_n(struct rows *r, struct store *s, enum stmt_id id, enum table_id table, const struct val *v, size_t n, struct err *err)
{
    *r = (struct rows){.s = s, .id = id, .table = table};
    int rc = take(s, id, &r->st, &r->own, err);
    if (rc)
        return rc;
    rc = bind(r->st, v, n);
    if (rc != SQLITE_OK) {
        rc = db_error(s, rc, err);
        rows_close(r);
        return rc;
    }
    return 0;
}

int rows_next(struct rows *r, struct err *err)
{
    for (;;) {
        int rc = sqlite3_step(r->st);
        if (rc == SQLITE_DONE)
            return 0;
        if (rc != SQLITE_ROW)
            return db_error(r->s, rc, err);
        if (r->table == TABLE_NONE || rows_sound(r, r->table))
            return 1;
        store_lost(r->s, "row %lld of table %s has a wrong checksum", (long long)rows_int(r, 0), tables[r->table].name);
    }
}

void rows_close(struct rows *r)
{
    if (!r->st)
        return;
    if (r->own) {
        sqlite3_finalize(r->st);
    } else {
        sqlite3_reset(r->st);
        sqlite3_clear_bindings(r->st);
        r->s->stmt_taken[r->id] = false;
    }
    r->st = NULL;
}

const uint8_t *rows_blob(const struct rows *r, int c, size_t *ret_len)
{
    const void *p = sqlite3_column_blob(r->st, c);
    *ret_len = p ? (size_t)sqlite3_column_bytes(r->st, c) : 0;
    return p ? p : (const uint8_t *)"";
}

const char *rows_text(const struct rows *r, int c)
{
    const char *p = (const char *)sqlite3_column_text(r->st, c);
    return p ? p : "";
}

int db_run_n(struct store *s, enum stmt_id id, enum table_id table, const struct val *v, size_t n, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open_n(&r, s, id, TABLE_NONE, v, n, err);
    if (rc)
        return rc;
    if (table != TABLE_NONE) {
        rc = sqlite3_bind_int64(r.st, (int)n + 1, (int32_t)row_crc(table, v, n));
        if (rc != SQLITE_OK)
            return db_error(s, rc, err);
    }
    while ((rc = rows_next(&r, err)) > 0)
        ;
    return rc;
}

int db_number(struct store *s, enum stmt_id id, int64_t *ret, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open_n(&r, s, id, TABLE_NONE, NULL, 0, err);
    if (!rc)
        rc = rows_next(&r, err);
    if (rc < 0)
        return rc;
    *ret = rc ? rows_int(&r, 0) : 0;
    return 0;
}

void db_finalize(struct store *s)
{
    for (int i = 0; i < STMT_N; i++) {
        sqlite3_finalize(s->stmts[i]);
        s->stmts[i] = NULL;
    }
}

/* ---- transactions ---- */

int db_begin(struct store *s, bool write, struct err *err)
{
    if (s->depth == 0) {
        s->poisoned = false;
        int rc = db_run_n(s, write ? STMT_BEGIN_WRITE : STMT_BEGIN_READ, TABLE_NONE, NULL, 0, err);
        if (rc)
            return rc;
    }
    s->depth++;
    return 0;
}

int db_end(struct store *s, bool keep, struct err *err)
{
    s->poisoned |= !keep;
    if (--s->depth > 0)
        return 0;
    int rc = 0;
    if (!s->poisoned)
        rc = db_run_n(s, STMT_COMMIT, TABLE_NONE, NULL, 0, err);
    /* SQLite ends a transaction by itself after some errors; ending it twice would be one. */
    if ((s->poisoned || rc) && !sqlite3_get_autocommit(s->db))
        db_run_n(s, STMT_ROLLBACK, TABLE_NONE, NULL, 0, NULL);
    return rc;
}
