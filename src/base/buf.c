#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* What p points at before the first allocation: a C string, shared and never written. */
static char empty[1];

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){ .p = empty, .max = max };
}

void buf_release(struct buf *b)
{
    if (b->cap)
        mem_free(b->p);
    b->p = empty;
    b->len = b->cap = 0;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->cap)
        b->p[0] = '\0';
}

int buf_reserve(struct buf *b, size_t more)
{
    size_t need, cap;
    char *p;

    if (more > b->max || b->len > b->max - more)
        return LT_ELIMIT;
    need = b->len + more + 1;
    if (need == 0)
        return LT_ELIMIT;
    if (need <= b->cap)
        return 0;
    cap = MAX(need, b->cap + b->cap / 2);
    cap = MAX(cap, (size_t)64);
    if (cap - 1 > b->max)
        cap = b->max + 1;
    p = mem_realloc(b->cap ? b->p : NULL, cap);
    if (!p)
        return LT_ENOMEM;
    p[b->len] = '\0';
    b->p = p;
    b->cap = cap;
    return 0;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
    int r;

    if (!len)
        return 0;
    r = buf_reserve(b, len);
    if (r < 0)
        return r;
    memcpy(b->p + b->len, data, len);
    b->len += len;
    b->p[b->len] = '\0';
    return 0;
}

int buf_puts(struct buf *b, const char *s)
{
    return buf_append(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    size_t room = b->cap ? b->cap - b->len : 0;
    va_list again;
    int n, r = 0;

    va_copy(again, ap);
    n = vsnprintf(room ? b->p + b->len : NULL, room, fmt, ap);
    if (n < 0) {
        r = LT_EPARSE;
    } else if ((size_t)n >= room) {
        r = buf_reserve(b, (size_t)n);
        if (r == 0)
            vsnprintf(b->p + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    if (r == 0)
        b->len += (size_t)n;
    else if (room)
        b->p[b->len] = '\0';
    return r;
}

int buf_put_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;

    while (v >= 0x80) {
        bytes[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    bytes[n++] = (uint8_t)v;
    return buf_append(b, bytes, n);
}

int varint_get(const uint8_t *data, size_t len, size_t *pos, uint64_t *ret_v)
{
    uint64_t v = 0;
    size_t at = *pos;

    for (unsigned shift = 0; shift < 64 && at < len; shift += 7) {
        uint8_t byte = data[at++];

        if (shift == 63 && byte > 1)
            return LT_ECORRUPT;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *pos = at;
            *ret_v = v;
            return 0;
        }
    }
    return LT_ECORRUPT;
}
