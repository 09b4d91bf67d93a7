/* Short writers: targets, events, and transactions that group them. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define EVENTS_MAX 100000

static int must_write(const struct store *s, struct err *err)
{
    return s->mode != STORE_READ ? 0 : err_set(err, LT_EUSAGE, "store %s: opened for reading only", s->path);
}

int store_begin(struct store *s, struct err *err)
{
    int rc = must_write(s, err);
    if (!rc && s->user_txn)
        rc = err_set(err, LT_EUSAGE, "store %s: a transaction is open already", s->path);
    if (!rc)
        rc = db_begin(s, true, err);
    if (!rc)
        s->user_txn = true;
    return rc;
}

int write_end(struct store *s, int rc, struct err *err)
{
    if (!rc && s->depth == 1)
        rc = import_settle(s, err);
    if (rc)
        rcache_drop(s);
    int rc2 = db_end(s, !rc, rc ? NULL : err);
    return rc ? rc : rc2;
}

int store_end(struct store *s, bool keep, struct err *err)
{
    if (!s->user_txn)
        return err_set(err, LT_EUSAGE, "store %s: no transaction is open", s->path);
    s->user_txn = false;
    int rc = write_end(s, keep ? 0 : LT_EINTR, err);
    return keep ? rc : 0;
}

int write_begin(struct store *s, struct err *err)
{
    int rc = must_write(s, err);
    return rc ? rc : db_begin(s, true, err);
}

/* ---- targets ---- */

static int find_or_make(struct store *s, const char *name, const char *selector, int64_t *ret_id, struct err *err)
{
    char old[TEXT_MAX] = "";
    int rc;
    {
        _cleanup_rows_ struct rows r = {0};
        rc = rows_open(&r, s, STMT_TARGET_FIND, TABLE_TARGET, err, VT(name));
        if (!rc)
            rc = rows_next(&r, err);
        if (rc == 1) {
            *ret_id = rows_int(&r, 0);
            str_copy(old, sizeof old, rows_text(&r, 2));
        }
    }
    if (rc < 0 || (rc == 1 && (!selector[0] || str_eq(old, selector))))
        return rc < 0 ? rc : 0;
    if (rc == 0) {
        rc = db_number(s, STMT_TARGET_LAST, ret_id, err);
        if (rc)
            return rc;
        ++*ret_id;
    }
    return db_put(s, STMT_TARGET_PUT, TABLE_TARGET, err, VI(*ret_id), VT(name), VT(selector));
}

int store_target(struct store *s, const char *name, const char *selector, int64_t *ret_id, struct err *err)
{
    char name_cut[WORD_MAX + 1], selector_cut[TEXT_MAX];
    int64_t id = 0;
    int rc = write_begin(s, err);
    if (rc)
        return rc;
    str_copy(name_cut, sizeof name_cut, name);
    str_copy(selector_cut, sizeof selector_cut, selector ? selector : "");
    rc = find_or_make(s, name_cut, selector_cut, &id, err);
    rc = write_end(s, rc, err);
    if (!rc)
        *ret_id = id;
    return rc;
}

/* ---- events ---- */

static int put_event(struct store *s, int64_t target_id, int64_t ts, const char *kind, const char *text, struct err *err)
{
    int64_t last;
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_EVENT_SAME, TABLE_NONE, err, VI(target_id), VI(ts), VT(kind), VT(text));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc < 0 || rows_int(&r, 0)) /* the same event twice is one: a file may be imported again */
        return rc < 0 ? rc : 0;
    rc = db_number(s, STMT_EVENT_LAST, &last, err);
    if (!rc)
        rc = db_put(s, STMT_EVENT_PUT, TABLE_EVENT, err, VI(last + 1), VI(target_id), VI(ts), VT(kind), VT(text));
    if (!rc && last >= EVENTS_MAX)
        rc = db_run(s, STMT_EVENT_TRIM, err, VI(EVENTS_MAX));
    return rc;
}

int store_put_event(struct store *s, int64_t target_id, int64_t wall_ns, const char *kind, const char *text, struct err *err)
{
    char kind_cut[WORD_MAX + 1], text_cut[TEXT_MAX];
    int rc = write_begin(s, err);
    if (rc)
        return rc;
    str_copy(kind_cut, sizeof kind_cut, kind);
    str_copy(text_cut, sizeof text_cut, text);
    return write_end(s, put_event(s, target_id, ms_of(wall_ns), kind_cut, text_cut, err), err);
}
