/* Texts that come again and again are stored once and named by number: words (endpoints, roles, boot ids) and, in a table of
 * their own, the keys of histograms. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define WORDS_MAX 65536
#define WORD_SHARE 4096          /* bytes of the disk budget for each word: together they stay below an eighth of it */
static const char other[] = "(other)"; /* takes the place of every new text once there are too many */

int64_t words_max(const struct store *s) { return MIN((int64_t)WORDS_MAX, s->config.disk_budget_bytes / WORD_SHARE); }
int64_t keys_max(const struct store *s) { return words_max(s) / 2; }

/* 1: found. */
static int find(struct store *s, enum stmt_id id, enum table_id table, struct val what, int64_t *ret_id, char *ret_text, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, id, table, err, what);
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1 && ret_id)
        *ret_id = rows_int(&r, 0);
    if (rc == 1 && ret_text)
        str_copy(ret_text, WORD_MAX + 1, rows_text(&r, 1));
    return rc;
}

static int text_by_id(struct store *s, enum stmt_id stmt, enum table_id table, int64_t id, char out[WORD_MAX + 1], struct err *err)
{
    str_copy(out, WORD_MAX + 1, "?");
    return MIN(find(s, stmt, table, VI(id), NULL, out, err), 0);
}

/* ---- words ---- */

int word_find(struct store *s, const char *text, int64_t *ret_id, struct err *err)
{
    int rc = find(s, STMT_WORD_FIND, TABLE_WORD, VT(text), ret_id, NULL, err);
    return rc < 0 ? rc : rc ? 0 : err_set(err, LT_ENOENT, "store %s: nothing is called '%s'", s->path, text);
}

/* Requests leave half to lives, whose roles are named by few; without its boot id a life would not be found again. */
static int64_t bound(const struct store *s, enum word_use use)
{
    int64_t max = words_max(s);
    return use == WORD_REQUEST ? max / 2 : use == WORD_LIFE ? max : 2 * max;
}

int word_id(struct store *s, enum word_use use, const char *text, int64_t *ret_id, struct err *err)
{
    char cut[WORD_MAX + 1];
    int64_t last;
    str_copy(cut, sizeof cut, text);
    int rc = find(s, STMT_WORD_FIND, TABLE_WORD, VT(cut), ret_id, NULL, err);
    if (rc)
        return rc < 0 ? rc : 0;
    rc = db_number(s, STMT_WORD_LAST, &last, err);
    if (rc)
        return rc;
    if (last >= bound(s, use) && !str_eq(cut, other))
        return word_id(s, use, other, ret_id, err);
    rc = db_put(s, STMT_WORD_PUT, TABLE_WORD, err, VI(last + 1), VT(cut));
    if (!rc)
        *ret_id = last + 1;
    return rc;
}

int word_text(struct store *s, int64_t id, char out[WORD_MAX + 1], struct err *err)
{
    return text_by_id(s, STMT_WORD_GET, TABLE_WORD, id, out, err);
}

/* ---- keys of histograms ---- */

static int make_key(struct store *s, const char *text, int64_t *ret_id, struct err *err)
{
    int rc = db_number(s, STMT_KEY_LAST, ret_id, err);
    if (!rc)
        rc = db_put(s, STMT_KEY_PUT, TABLE_KEY, err, VI(++*ret_id), VT(text));
    if (!rc)
        s->w.nkeys++;
    return rc;
}

int key_id(struct store *s, const char *text, int64_t *ret_id, struct err *err)
{
    char cut[WORD_MAX + 1];
    str_copy(cut, sizeof cut, text);
    int rc = find(s, STMT_KEY_FIND, TABLE_KEY, VT(cut), ret_id, NULL, err);
    if (rc == 0 && s->w.nkeys < 0)
        rc = db_number(s, STMT_KEY_COUNT, &s->w.nkeys, err);
    if (rc == 0 && s->w.nkeys >= keys_max(s) && !str_eq(cut, other)) {
        rc = key_id(s, other, ret_id, err);
        return rc ? rc : 1;
    }
    if (rc == 0)
        rc = make_key(s, cut, ret_id, err);
    if (rc < 0)
        return rc;
    keys_used(s, *ret_id);
    return 0;
}

int key_text(struct store *s, int64_t id, char out[WORD_MAX + 1], struct err *err)
{
    return text_by_id(s, STMT_KEY_GET, TABLE_KEY, id, out, err);
}
