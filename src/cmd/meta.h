/* Help and man pages: what is said of the verbs, all of it from their tables. */
#ifndef LT_CMD_META_H
#define LT_CMD_META_H

#include <stdio.h>

#include "base/buf.h"
#include "cmd/cmd.h"

/* `lowtide --help`, `lowtide --version`: 0 when one of them was asked for, else LT_EUSAGE. */
int help_without_verb(size_t n, const char *const *words, struct err *err);
void help_main(FILE *out);
void help_verb(const struct cmd *cmd, FILE *out);

/* The verb whose name is the n words; LT_EUSAGE suggests the nearest. Hidden verbs are not found. */
int meta_find_verb(const char *const *words, size_t n, const struct cmd **ret, struct err *err);

/* Names of things every verb shares, for help and the man page of lowtide itself; both end with a NULL name. */
struct meta_item { const char *name, *text; };
extern const struct meta_item meta_selectors[], meta_exits[], meta_values[];
#define META_BRIEF "find, locate and stop resource leaks in services that run for weeks"

#endif
