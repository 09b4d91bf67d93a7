/* Texts that come again and again (endpoints, roles, histogram keys, boot ids) are stored once and named by number. */
#include <string.h>

#include "base/str.h"
#include "store/parts.h"

#define WORDS_MAX 65536
static const char other[] = "(other)"; /* takes the place of every new word once there are too many */

static int find(struct store *s, const char *text, int64_t *ret_id, struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    int rc = rows_open(&r, s, STMT_WORD_FIND, TABLE_WORD, err, VT(text));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1)
        *ret_id = rows_int(&r, 0);
    return rc;
}

int word_find(struct store *s, const char *text, int64_t *ret_id, struct err *err)
{
    int rc = find(s, text, ret_id, err);
    return rc < 0 ? rc : rc ? 0 : err_set(err, LT_ENOENT, "store %s: nothing is called '%s'", s->path, text);
}

int word_id(struct store *s, const char *text, int64_t *ret_id, struct err *err)
{
    char cut[WORD_MAX + 1];
    int64_t last;
    str_copy(cut, sizeof cut, text);
    int rc = find(s, cut, ret_id, err);
    if (rc)
        return rc < 0 ? rc : 0;
    rc = db_number(s, STMT_WORD_LAST, &last, err);
    if (rc)
        return rc;
    if (last >= WORDS_MAX && !str_eq(cut, other))
        return word_id(s, other, ret_id, err);
    rc = db_put(s, STMT_WORD_PUT, TABLE_WORD, err, VI(last + 1), VT(cut));
    if (!rc)
        *ret_id = last + 1;
    return rc;
}

int word_text(struct store *s, int64_t id, char out[WORD_MAX + 1], struct err *err)
{
    _cleanup_rows_ struct rows r = {0};
    str_copy(out, WORD_MAX + 1, "?");
    int rc = rows_open(&r, s, STMT_WORD_GET, TABLE_WORD, err, VI(id));
    if (!rc)
        rc = rows_next(&r, err);
    if (rc == 1)
        str_copy(out, WORD_MAX + 1, rows_text(&r, 1));
    return rc < 0 ? rc : 0;
}
