/* The lines of a text of any length, through a fixed buffer. */
#ifndef LT_SOURCE_LINES_H
#define LT_SOURCE_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* Calls fn for each line (without its end; a last one without '\n' too) until it returns false. Lines longer than the buffer are
 * passed over. 0 or -errno of read(2). */
int lines_each(int fd, char *buffer, size_t size, bool (*fn)(void *ctx, const char *line, size_t len), void *ctx);

#endif
