/* Errors: 0 or a negative LT_E*; the text travels in a trailing `struct err *`, untouched on success.
 *
 * The text is "what: why; what to do" without a trailing newline: cmd/ prints it once, behind
 * "lowtide VERB: ". LT_GONE and LT_TORN are outcomes (the process went; it moved under us), counted, not failures.
 */
#ifndef LT_BASE_ERR_H
#define LT_BASE_ERR_H

#include <stddef.h>

/* code, symbol, sentence, exit status of a verb that ends with it */
#define LT_ERRORS(X) \
    X(-1, LT_EUSAGE, "wrong usage or configuration", 2) \
    X(-2, LT_ENOMEM, "out of memory", 3) \
    X(-3, LT_ELIMIT, "a bounded container is full", 3) \
    X(-4, LT_EIO, "a system call failed", 3) \
    X(-5, LT_EPERM, "not permitted", 3) \
    X(-6, LT_ENOENT, "not found", 3) \
    X(-7, LT_EAMBIG, "more than one match", 2) \
    X(-8, LT_EBUSY, "in use by another process", 3) \
    X(-9, LT_EFULL, "no room on the disk", 3) \
    X(-10, LT_ECORRUPT, "damaged data", 3) \
    X(-11, LT_EVERSION, "written by a newer version", 3) \
    X(-12, LT_EPARSE, "malformed input", 2) \
    X(-13, LT_ENODATA, "not enough data", 3) \
    X(-14, LT_EUNSUPPORTED, "not available here", 3) \
    X(-15, LT_EINTR, "interrupted", 3) \
    X(-20, LT_GONE, "the process is gone", 3) \
    X(-21, LT_TORN, "the process changed while it was read", 3)

enum lt_code {
#define X(code, name, text, exit_status) name = code,
    LT_ERRORS(X)
#undef X
    LT_OK = 0
};

struct err {
    int code;
    char text[512];
};

/* Fill *err (which may be NULL) and return `code`, so that `return err_set(err, LT_EIO, "...")` reads well. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* As err_set, with ": strerror(errnum)" after the text; ENOSPC/EDQUOT become LT_EFULL, EACCES/EPERM LT_EPERM,
 * ESRCH LT_GONE, ENOMEM LT_ENOMEM; anything else is `code`. */
int err_errno(struct err *err, int code, int errnum, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The static analyzer does not look into other files: it is told that the codes above come back, not anything. */
#ifdef __clang_analyzer__
#define err_set(err, code, ...) ((void)(err_set)(err, code, __VA_ARGS__), (code))
#define err_errno(err, code, errnum, ...) ((void)(err_errno)(err, code, errnum, __VA_ARGS__), LT_EIO)
#endif

const char *err_name(int code);     /* "LT_EIO"; "LT_OK" for 0; never NULL */
const char *err_sentence(int code); /* "a system call failed"; never NULL */
int err_exit_status(int code);      /* exit status of a verb that failed so: 2 or 3; 0 for LT_OK */

#endif
