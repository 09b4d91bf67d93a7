/* Strings: bounded formatting and slices. strcpy, strcat, sprintf, strtok, atoi, gets, strncpy are banned. */
#ifndef LT_BASE_STR_H
#define LT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

struct slice { const char *p; size_t len; }; /* not owned, not NUL-terminated */

bool str_eq(const char *a, const char *b);
bool str_starts(const char *s, const char *prefix);
size_t str_copy(char *dst, size_t size, const char *src);             /* always NUL-terminated; bytes of src */
size_t str_fmt(char *dst, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4))); /* truncates safely */
bool slice_eq(struct slice a, const char *b);
struct slice slice_trim(struct slice s);
/* Splits at the next sep: returns the part before it and moves *rest behind it; false when *rest is spent (p == NULL). */
bool slice_next(struct slice *rest, char sep, struct slice *ret_part);
/* Digit runs become '#': "/tmp/job-123/x7.wav" -> "/tmp/job-#/x#.wav". out is NUL-terminated, cut at size-1. */
size_t str_fold_digits(const char *s, size_t len, char *out, size_t size);
/* Control bytes and invalid UTF-8 become '?': what other processes named may be printed safely. In place. */
void str_printable(char *s);
/* Cells of text on a terminal (UTF-8; wide East Asian counts 2, control 0). */
size_t str_width(const char *s);

#endif
