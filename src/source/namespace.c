#include "source/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#define OWN_DIR "/proc/thread-self"

/* Link text "net:[4026531840]". */
static int inode_at(int dirfd, const char *path, uint64_t *ret, struct err *err)
{
    char link[64];
    ssize_t n = readlinkat(dirfd, path, link, sizeof link - 1);

    if (n < 0)
        return errno == ENOENT ? err_set(err, LT_GONE, "%s: the process is gone", path)
                               : err_errno(err, LT_EIO, errno, "%s: cannot be read (needs CAP_SYS_PTRACE)", path);
    link[n] = '\0';
    const char *open = strchr(link, '[');
    char *end = NULL;
    if (!open)
        return err_set(err, LT_EIO, "%s: no inode in '%s'", path, link);
    *ret = strtoull(open + 1, &end, 10);
    return *end == ']' ? 0 : err_set(err, LT_EIO, "%s: no inode in '%s'", path, link);
}

int namespace_inode(int pid_dirfd, const char *which, uint64_t *ret, struct err *err)
{
    char path[32];

    str_fmt(path, sizeof path, "ns/%s", which);
    return inode_at(pid_dirfd, path, ret, err);
}

int namespace_own_inode(const char *which, uint64_t *ret, struct err *err)
{
    char path[64];

    str_fmt(path, sizeof path, OWN_DIR "/ns/%s", which);
    return inode_at(AT_FDCWD, path, ret, err);
}

static int type_of(const char *which)
{
    return str_eq(which, "net") ? CLONE_NEWNET : CLONE_NEWIPC;
}

static void go_back(int own, const char *which)
{
    if (setns(own, type_of(which)) == 0)
        return;
    log_warn("cannot go back to our own %s namespace: %s; ending, since all that is read from here on would be wrong", which,
             strerror(errno));
    abort();
}

int namespace_run(int pid_dirfd, const char *which, int (*fn)(void *ctx), void *ctx, struct err *err)
{
    char path[64];
    uint64_t own_ino, its_ino;
    int r;

    if ((r = namespace_own_inode(which, &own_ino, err)) || (r = namespace_inode(pid_dirfd, which, &its_ino, err)))
        return r;
    if (own_ino == its_ino)
        return fn(ctx);
    str_fmt(path, sizeof path, OWN_DIR "/ns/%s", which);
    _cleanup_fd_ int own = fd_open(AT_FDCWD, path, O_RDONLY, 0);
    if (own < 0)
        return err_errno(err, LT_EIO, -own, "our own %s namespace", which);
    str_fmt(path, sizeof path, "ns/%s", which);
    _cleanup_fd_ int its = fd_open(pid_dirfd, path, O_RDONLY, 0);
    if (its < 0)
        return err_errno(err, its == -ENOENT ? LT_GONE : LT_EIO, -its, "the %s namespace of the process", which);
    if (setns(its, type_of(which)) < 0)
        return err_errno(err, LT_EIO, errno, "the %s namespace of the process cannot be entered (needs CAP_SYS_ADMIN)", which);
    r = fn(ctx);
    go_back(own, which);
    return r;
}
