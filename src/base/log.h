/* Progress and warnings on stderr, one line each, "lowtide VERB: text". Errors of a verb are printed by cmd/ alone. */
#ifndef LT_BASE_LOG_H
#define LT_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_QUIET, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_setup(const char *verb, enum log_level level);
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
