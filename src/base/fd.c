#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fd_open(int dirfd, const char *path, int flags, mode_t mode)
{
    int fd;

    do {
        fd = openat(dirfd, path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int fd_close(int fd)
{
    int saved = errno;

    /* Never retried: Linux has let go of the number even when close() says EINTR. */
    if (fd >= 0)
        close(fd);
    errno = saved;
    return -1;
}

/* Reads until size bytes or the end: bytes, or -errno. */
static ssize_t read_upto(int fd, char *buf, size_t size)
{
    size_t got = 0;

    while (got < size) {
        ssize_t n = read(fd, buf + got, size - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

ssize_t fd_read_at(int dirfd, const char *path, char *buf, size_t size)
{
    _cleanup_fd_ int fd = -1;
    ssize_t n;

    if (!size)
        return -EINVAL;
    buf[0] = '\0';
    fd = fd_open(dirfd, path, O_RDONLY | O_NOCTTY, 0);
    if (fd < 0)
        return fd;
    /* The byte the NUL will take shows whether there was more. */
    n = read_upto(fd, buf, size);
    if (n < 0) {
        buf[0] = '\0';
        return n;
    }
    if ((size_t)n == size) {
        buf[size - 1] = '\0';
        return -EFBIG;
    }
    buf[n] = '\0';
    return n;
}

ssize_t fd_pread0(int fd, char *buf, size_t size)
{
    ssize_t n;

    if (!size)
        return -EINVAL;
    do {
        n = pread(fd, buf, size - 1, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        buf[0] = '\0';
        return -errno;
    }
    buf[n] = '\0';
    return n;
}

int fd_write_all(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len) {
        ssize_t n = write(fd, p, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

/* A rename is durable once its folder is: path is cut at its last slash. */
static int sync_folder_of(char *path)
{
    _cleanup_fd_ int fd = -1;
    char *slash = strrchr(path, '/');

    if (slash == path)
        slash++;
    if (slash)
        *slash = '\0';
    fd = fd_open(AT_FDCWD, slash ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    /* Some file systems cannot sync folders and say EINVAL: then rename is all there is. */
    return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

static int write_and_sync(const char *path, const void *data, size_t len)
{
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    int r;

    if (fd < 0)
        return fd;
    r = fd_write_all(fd, data, len);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r < 0)
        unlink(path);
    return r;
}

int fd_write_file(const char *path, const void *data, size_t len)
{
    static atomic_uint serial;
    char temp[PATH_MAX];
    int n, r;

    n = snprintf(temp, sizeof temp, "%s.%d-%u.new", path, (int)getpid(), atomic_fetch_add(&serial, 1));
    if (n < 0 || (size_t)n >= sizeof temp)
        return -ENAMETOOLONG;
    r = write_and_sync(temp, data, len);
    if (r < 0)
        return r;
    if (rename(temp, path) < 0) {
        r = -errno;
        unlink(temp);
        return r;
    }
    return sync_folder_of(temp);
}

static int mkdir_one(const char *path, mode_t mode)
{
    struct stat st;
    int r;

    if (mkdir(path, mode) == 0)
        return 0;
    r = -errno;
    /* EROFS and EACCES come before EEXIST on some systems: what counts is whether the folder is there. */
    if (stat(path, &st) < 0)
        return r;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int fd_mkdir_p(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    size_t len = strlen(path);

    if (!len)
        return -ENOENT;
    if (len >= sizeof part)
        return -ENAMETOOLONG;
    for (size_t i = 1; i < len; i++) {
        int r;

        if (path[i] != '/' || path[i - 1] == '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        r = mkdir_one(part, mode);
        if (r < 0)
            return r;
    }
    return mkdir_one(path, mode);
}
