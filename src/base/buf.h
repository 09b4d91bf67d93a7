/* A bounded byte buffer that grows. Made with its maximum; one byte more is LT_ELIMIT and the buffer is unchanged.
 * Always NUL-terminated behind `len`, so that buf.p is a C string (never NULL after buf_init). */
#ifndef LT_BASE_BUF_H
#define LT_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *p;
    size_t len;
    size_t cap; /* allocated, 0 while p is the static empty string */
    size_t max; /* most bytes of content */
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);             /* frees; the buffer may be used again after buf_init */
void buf_clear(struct buf *b);               /* len = 0, keeps the allocation */
int buf_reserve(struct buf *b, size_t more); /* room for `more` bytes behind len: 0, LT_ELIMIT, LT_ENOMEM */
int buf_append(struct buf *b, const void *data, size_t len);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* LEB128 of an unsigned value: 1-10 bytes. */
int buf_put_varint(struct buf *b, uint64_t v);
/* Reads one varint at *pos of data[0..len); advances *pos; 0 or LT_ECORRUPT (cut short, over 64 bits). */
int varint_get(const uint8_t *data, size_t len, size_t *pos, uint64_t *ret_v);
static inline uint64_t zigzag(int64_t v) { return ((uint64_t)v << 1) ^ -(uint64_t)(v < 0); }
static inline int64_t unzigzag(uint64_t u) { return (int64_t)(u >> 1) ^ -(int64_t)(u & 1); }
uint32_t crc32c(uint32_t crc, const void *data, size_t len); /* Castagnoli; start with crc = 0 */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len); /* the same without the CPU instruction */

#define _cleanup_buf_ __attribute__((cleanup(buf_release)))

#endif
