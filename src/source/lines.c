#include "source/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct lines {
    char *buffer;
    size_t size, have;
    bool skipping; /* inside a line that is too long */
    bool (*fn)(void *ctx, const char *line, size_t len);
    void *ctx;
};

/* Hands out the whole lines in the buffer and keeps the rest; false when fn had enough. */
static bool hand_out(struct lines *l)
{
    char *from = l->buffer, *end = from + l->have, *nl;

    for (; (nl = memchr(from, '\n', (size_t)(end - from))); from = nl + 1) {
        bool whole = !l->skipping;
        l->skipping = false;
        if (whole && !l->fn(l->ctx, from, (size_t)(nl - from)))
            return false;
    }
    l->have = (size_t)(end - from);
    if (l->skipping || l->have == l->size) {
        l->skipping = true;
        l->have = 0;
    }
    memmove(l->buffer, from, l->have);
    return true;
}

int lines_each(int fd, char *buffer, size_t size, bool (*fn)(void *ctx, const char *line, size_t len), void *ctx)
{
    struct lines l = { .buffer = buffer, .size = size, .fn = fn, .ctx = ctx };

    for (;;) {
        ssize_t n = read(fd, buffer + l.have, size - l.have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        l.have += (size_t)n;
        if (!hand_out(&l))
            return 0;
    }
    if (l.have && !l.skipping)
        fn(ctx, buffer, l.have);
    return 0;
}
