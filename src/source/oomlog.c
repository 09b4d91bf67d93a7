#include "source/oomlog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

#define RECORD_MAX 8192
#define KEPT_NS (60 * NS_PER_S)

void oomlog_open(struct oomlog *o, const char *path)
{
    memset(o, 0, sizeof *o);
    o->fd = fd_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    if (o->fd >= 0 && lseek(o->fd, 0, SEEK_END) < 0)
        o->fd = fd_close(o->fd);
    if (o->fd < 0)
        o->fd = -1;
}

void oomlog_close(struct oomlog *o)
{
    o->fd = fd_close(o->fd);
}

int32_t oomlog_parse(const char *text, size_t len)
{
    static const char mark[] = "Killed process ";
    const char *p = memmem(text, len, mark, sizeof mark - 1), *end = text + len;
    int64_t pid = 0;

    if (!p)
        return 0;
    for (p += sizeof mark - 1; p < end && *p >= '0' && *p <= '9' && pid < INT32_MAX; p++)
        pid = pid * 10 + (*p - '0');
    /* Anybody may write to the log; the kernel's line goes on with the name in parentheses, or ", UID ...". */
    return p < end && (*p == ' ' || *p == ',') && pid > 0 && pid <= INT32_MAX ? (int32_t)pid : 0;
}

/* "4,1234,5678,-;text": user space writes with facility 1 and above (priority 8 and above), the kernel with 0. */
static int32_t parse_record(const char *record, size_t len)
{
    const char *text = memchr(record, ';', len);
    int priority = 0;

    for (size_t i = 0; i < len && record[i] >= '0' && record[i] <= '9' && priority < 1000; i++)
        priority = priority * 10 + (record[i] - '0');
    return text && priority < 8 ? oomlog_parse(text, (size_t)(record + len - text)) : 0;
}

void oomlog_read(struct oomlog *o)
{
    char record[RECORD_MAX];

    while (o->fd >= 0) {
        ssize_t n = read(o->fd, record, sizeof record);
        int32_t pid;

        if (n < 0 && (errno == EINTR || errno == EPIPE)) /* EPIPE: records were overwritten; go on behind them */
            continue;
        if (n <= 0)
            return;
        pid = parse_record(record, (size_t)n);
        if (!pid)
            continue;
        o->told = true;
        o->kills[o->next].pid = pid;
        o->kills[o->next].read_ns = clock_mono_ns();
        o->next = (o->next + 1) % OOMLOG_KEPT;
    }
}

bool oomlog_took(struct oomlog *o, int32_t pid)
{
    int64_t now = clock_mono_ns();

    oomlog_read(o);
    for (size_t i = 0; i < OOMLOG_KEPT; i++)
        if (o->kills[i].pid == pid && now - o->kills[i].read_ns < KEPT_NS) {
            o->kills[i].pid = 0;
            return true;
        }
    return false;
}
