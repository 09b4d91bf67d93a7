/* The six ways to name a target, parsed (contract.md; selector_check in source.h). */
#ifndef LT_SOURCE_SELECTOR_H
#define LT_SOURCE_SELECTOR_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "source/source.h"

struct selector {
    enum selector_kind kind;
    int32_t pid;          /* SELECT_PID */
    uint16_t port;        /* SELECT_PORT */
    regex_t regex;        /* SELECT_CMD: POSIX extended, anywhere in the command line, arguments joined by blanks */
    const char *name;     /* what stands behind the colon, of `text` */
    char *text;           /* the whole, owned */
};

int selector_parse(struct selector *ret, const char *text, struct err *err); /* 0, LT_EUSAGE, LT_ENOMEM */
void selector_release(struct selector *s);

/* Whether a command line (as procfs_cmdline gives it: len bytes, NULs between arguments) matches; it is changed: NULs become
 * blanks. cmdline[len] must be writable. */
bool selector_matches(const struct selector *s, char *cmdline, size_t len);

#endif
