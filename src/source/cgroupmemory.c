/* Bytes, limits and OOM kills of a group, from the files of v1 and v2. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/metric.h"
#include "base/str.h"
#include "base/units.h"
#include "source/cgroup.h"

#define V1_NO_LIMIT (INT64_C(1) << 62) /* v1 shows "none" as the largest multiple of a page below 2^63 */

int cgroup_parse_limit(const char *text, size_t len, int64_t *ret)
{
    struct slice s = slice_trim((struct slice){ text, len });
    int64_t v;

    if (slice_eq(s, "max")) {
        *ret = METRIC_NA;
        return 0;
    }
    if (s.len == 20 && s.p[0] >= '0' && s.p[0] <= '9') { /* 2^64 - 1 of very old v1 kernels */
        *ret = METRIC_NA;
        return 0;
    }
    if (units_int(s.p, s.len, &v) || v < 0)
        return LT_EPARSE;
    *ret = v >= V1_NO_LIMIT ? METRIC_NA : v;
    return 0;
}

/* The number behind "key " at the start of a line. */
static int64_t keyed(const char *text, const char *key)
{
    struct slice rest = { text, strlen(text) }, line, word;
    int64_t v;

    while (slice_next(&rest, '\n', &line))
        if (slice_next(&line, ' ', &word) && slice_eq(word, key) && line.p && units_int(line.p, line.len, &v) == 0 && v >= 0)
            return v;
    return METRIC_NA;
}

/* One small file of the group at dir[0..len): bytes, or -errno. */
static ssize_t read_file(const char *dir, size_t len, const char *name, char *text, size_t size)
{
    char path[CGROUP_PATH_MAX + 64];

    str_fmt(path, sizeof path, "%.*s/%s", (int)len, dir, name);
    return fd_read_at(AT_FDCWD, path, text, size);
}

static int64_t read_number(const char *dir, size_t len, const char *name)
{
    char text[64];
    int64_t v;
    ssize_t n = read_file(dir, len, name, text, sizeof text);

    return n < 0 || cgroup_parse_limit(text, (size_t)n, &v) ? METRIC_NA : v;
}

/* The length of dir without its last part; not below the mount. */
static size_t parent_len(const struct cgroup *g, size_t len)
{
    while (len > g->mount_len && g->dir[len - 1] != '/')
        len--;
    return len > g->mount_len ? len - 1 : g->mount_len;
}

static const struct names {
    const char *bytes, *limit, *events;
} names[] = {
    [1] = { "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control" },
    [2] = { "memory.current", "memory.max", "memory.events" },
};

int cgroup_memory(const struct cgroup *g, struct cgroup_memory *ret, struct err *err)
{
    const struct names *f = &names[g->version];
    struct cgroup_memory m = { METRIC_NA, METRIC_NA, METRIC_NA, false };
    char text[1024];
    size_t at = strlen(g->dir);

    if (access(g->dir, F_OK) < 0)
        return err_set(err, LT_GONE, "cgroup %s: the group is gone", g->path);
    while ((m.bytes = read_number(g->dir, at, f->bytes)) == METRIC_NA && at > g->mount_len)
        at = parent_len(g, at);
    if (m.bytes == METRIC_NA)
        at = strlen(g->dir);
    m.above = at != strlen(g->dir);
    if (m.bytes != METRIC_NA && read_file(g->dir, at, f->events, text, sizeof text) >= 0)
        m.oom_kills = keyed(text, "oom_kill");
    for (;; at = parent_len(g, at)) {
        int64_t limit = read_number(g->dir, at, f->limit);
        if (limit != METRIC_NA && (m.limit == METRIC_NA || limit < m.limit))
            m.limit = limit;
        if (at <= g->mount_len)
            break;
    }
    *ret = m;
    return 0;
}
