/* What a process does in its service, from its command line: "uvicorn app:api", "gunicorn: worker [app]", "celery worker". */
#ifndef LT_SOURCE_ROLE_H
#define LT_SOURCE_ROLE_H

#include <stddef.h>

#include "source/sample.h"

/* cmdline: len bytes, arguments each ended by NUL (as /proc/PID/cmdline); comm is used when it is empty.
 *
 * Kept: the program's name (for an interpreter the script's or module's) and the first two plain words behind it. Never
 * kept: options and their values, anything with '=', '@', '://' or a blank in it, and words of which a part between
 * '/', '.' and ':' looks like a key (long, letters and digits mixed): command lines hold secrets. A title set by the
 * program itself (one argument with blanks) is kept as it is, up to the first such word. out is printable. */
void role_of(const char *cmdline, size_t len, const char *comm, char out[ROLE_MAX]);

#endif
