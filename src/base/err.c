#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct error_row {
    int code;
    const char *name;
    const char *sentence;
    int exit_status;
};

static const struct error_row rows[] = {
    { LT_OK, "LT_OK", "success", 0 },
#define X(code, name, text, exit_status) { code, #name, text, exit_status },
    LT_ERRORS(X)
#undef X
};

/* A code outside the table is a bug of the caller; it still gets a name, a sentence and a failing status. */
static const struct error_row unknown = { 0, "LT_E?", "unknown error", 3 };

static const struct error_row *row_of(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return &unknown;
}

const char *err_name(int code)
{
    return row_of(code)->name;
}

const char *err_sentence(int code)
{
    return row_of(code)->sentence;
}

int err_exit_status(int code)
{
    return row_of(code)->exit_status;
}

int (err_set)(struct err *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    err->code = code;
    va_start(ap, fmt);
    if (vsnprintf(err->text, sizeof err->text, fmt, ap) < 0)
        err->text[0] = '\0';
    va_end(ap);
    return code;
}

static int code_of_errno(int errnum, int otherwise)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return LT_EFULL;
    case EACCES:
    case EPERM:
        return LT_EPERM;
    case ESRCH:
        return LT_GONE;
    case ENOMEM:
        return LT_ENOMEM;
    default:
        return otherwise;
    }
}

int (err_errno)(struct err *err, int code, int errnum, const char *fmt, ...)
{
    char reason[128];
    va_list ap;
    int n;

    code = code_of_errno(errnum, code);
    if (!err)
        return code;
    err->code = code;
    va_start(ap, fmt);
    n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    if (n < 0)
        n = 0;
    if ((size_t)n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", strerror_r(errnum, reason, sizeof reason));
    return code;
}
