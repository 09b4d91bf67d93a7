#include "source/netmount.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "source/lines.h"

#define LINE_SIZE 16384 /* overlay mounts have long lines */

static const char *const served[] = { "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs",
                                      "nfs4", "orangefs", "pvfs2", "smb3", "smbfs" };

static bool is_served(struct slice type)
{
    for (size_t i = 0; i < ARRAY_SIZE(served); i++)
        if (slice_eq(type, served[i]))
            return true;
    return type.len > 5 && !memcmp(type.p, "fuse.", 5);
}

/* The next name of a path in `rest`; "" and "." are passed over. */
static bool next_name(struct slice *rest, struct slice *ret)
{
    while (slice_next(rest, '/', ret))
        if (ret->len && !slice_eq(*ret, "."))
            return true;
    return false;
}

/* One character of a name in mountinfo, where blanks and '\' are written "\040": how many bytes it takes there. */
static size_t unescape(struct slice s, char *ret)
{
    *ret = s.p[0];
    if (s.p[0] != '\\' || s.len < 4)
        return 1;
    *ret = (char)((s.p[1] - '0') << 6 | (s.p[2] - '0') << 3 | (s.p[3] - '0'));
    return 4;
}

static bool same_name(struct slice escaped, struct slice name)
{
    size_t i = 0;
    char c;

    for (; escaped.len && i < name.len; i++) {
        size_t n = unescape(escaped, &c);

        if (c != name.p[i])
            return false;
        escaped.p += n;
        escaped.len -= n;
    }
    return !escaped.len && i == name.len;
}

/* Whether the path is the mount point or lies below it. */
static bool is_below(struct slice point, const char *path)
{
    struct slice rest = { path, strlen(path) }, have, want;

    while (next_name(&point, &want))
        if (!next_name(&rest, &have) || !same_name(want, have))
            return false;
    return true;
}

/* "32 23 0:29 ROOT DIR OPTIONS [TAGS...] - TYPE SOURCE SUPER_OPTIONS" */
void netmount_line(const char *line, size_t len, const char *const *paths, size_t n, struct netmount *ret)
{
    struct slice rest = { line, len }, word, point = { 0 }, type = { 0 };

    for (int i = 0; slice_next(&rest, ' ', &word); i++) {
        if (i == 4)
            point = word;
        if (i >= 6 && slice_eq(word, "-")) {
            slice_next(&rest, ' ', &type);
            break;
        }
    }
    if (!type.p || !is_served(type) || slice_eq(point, "/"))
        return;
    ret->must_be_plain = true;
    for (size_t i = 0; i < n && ret->path < 0; i++)
        if (is_below(point, paths[i])) {
            ret->path = (int)i;
            str_fmt(ret->type, sizeof ret->type, "%.*s", (int)type.len, type.p);
            str_printable(ret->type);
        }
}

struct search {
    const char *const *paths;
    size_t n;
    struct netmount *ret;
};

static bool take_line(void *ctx, const char *line, size_t len)
{
    struct search *s = ctx;

    netmount_line(line, len, s->paths, s->n, s->ret);
    return true;
}

int netmount_find(int pid_dirfd, const char *const *paths, size_t n, struct netmount *ret)
{
    char buffer[LINE_SIZE];
    struct netmount found = { .path = -1 };
    struct search s = { paths, n, &found };
    _cleanup_fd_ int fd = fd_open(pid_dirfd, "mountinfo", O_RDONLY, 0);
    int r = fd < 0 ? fd : lines_each(fd, buffer, sizeof buffer, take_line, &s);

    if (r < 0 && r != -ENOENT)
        return r == -ESRCH || r == -EINVAL ? LT_GONE : r == -EACCES || r == -EPERM ? LT_EPERM : LT_EIO;
    *ret = found;
    return 0;
}

bool netmount_is_plain(const char *path)
{
    struct slice rest = { path, strlen(path) }, name;

    while (next_name(&rest, &name))
        if (slice_eq(name, ".."))
            return false;
    return true;
}
