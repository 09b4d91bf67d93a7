/* Time. One type: int64_t nanoseconds. Wall time is ns since 1970 UTC; CLOCK_INVALID means "no time". */
#ifndef LT_BASE_CLOCK_H
#define LT_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define CLOCK_INVALID INT64_MIN

int64_t clock_wall_ns(void);
int64_t clock_mono_ns(void);     /* CLOCK_MONOTONIC */
int64_t clock_boot_ns(void);     /* CLOCK_BOOTTIME: the clock of /proc/PID/stat's starttime */
int64_t clock_cpu_ns(void);      /* CPU time of this process */

#define CLOCK_TEXT_MAX 40
/* RFC 3339 UTC, "2026-11-30T20:30:37Z"; with ms when the ns are not whole seconds. Returns out. */
const char *clock_rfc3339(int64_t wall_ns, char out[CLOCK_TEXT_MAX]);
/* Reads RFC 3339 (Z or +hh:mm, 'T' or ' '), or epoch seconds with fraction: 0 or LT_EPARSE. The whole of s[0..len). */
int clock_parse(const char *s, size_t len, int64_t *ret_wall_ns);

#endif
