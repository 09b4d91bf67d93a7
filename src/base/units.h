/* Numbers as people type and read them. Parsers take the whole string or fail with LT_EPARSE; no locale is used. */
#ifndef LT_BASE_UNITS_H
#define LT_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

int units_int(const char *s, size_t len, int64_t *ret);        /* decimal, optional sign, no overflow */
int units_double(const char *s, size_t len, double *ret);      /* finite decimal, "C" locale: "nan" and "inf" are errors */
int units_duration(const char *s, int64_t *ret_ns);            /* 200ms 0.2s 5m 8h 7d; a plain number is seconds; > 0 */
int units_size(const char *s, int64_t *ret_bytes);             /* 512MiB 2GB 64k; a plain number is bytes */

#define UNITS_TEXT_MAX 32
const char *units_bytes(double bytes, char out[UNITS_TEXT_MAX]);   /* "312 KB", "1.4 GB" (powers of 1024), sign kept */
const char *units_count(double n, char out[UNITS_TEXT_MAX]);       /* "1,204", "0.25" */
const char *units_time(int64_t ns, char out[UNITS_TEXT_MAX]);      /* "3d 04h", "12m 30s", "0.8s" */

#endif
