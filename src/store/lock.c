/* One watcher a store: it holds a lock on <path>-watch, in which its pid is written. The kernel drops the lock when the
 * watcher dies, whatever the way; the file may stay. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/units.h"
#include "store/parts.h"

static struct flock whole(short type) { return (struct flock){.l_type = type, .l_whence = SEEK_SET}; }

static int32_t pid_in(int fd)
{
    char text[32];
    int64_t pid;
    ssize_t n = fd_pread0(fd, text, sizeof text);
    struct slice line = slice_trim((struct slice){text, n > 0 ? (size_t)n : 0});
    return units_int(line.p, line.len, &pid) || pid <= 0 || pid > INT32_MAX ? 0 : (int32_t)pid;
}

static int lock_path(const char *path, char *out, size_t size)
{
    return str_fmt(out, size, "%s-watch", path) < size ? 0 : LT_ELIMIT;
}

int lock_take(struct store *s, struct err *err)
{
    char path[4200], text[32];
    if (lock_path(s->path, path, sizeof path))
        return err_set(err, LT_EUSAGE, "store %s: the path is too long", s->path);
    /* No link is followed: we may be root in a folder of somebody else's, and the file is emptied below. */
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return file_error(s, err, -fd, "cannot make its lock file");
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
        return err_set(err, LT_EPERM, "store %s: %s is no plain file; remove it or choose another --db", s->path, path);
    struct flock lock = whole(F_WRLCK);
    if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        if (errno != EAGAIN && errno != EACCES)
            return file_error(s, err, errno, "cannot lock");
        return err_set(err, LT_EBUSY, "store %s: process %d is watching into it; stop that one or choose another --db", s->path,
                       pid_in(fd));
    }
    size_t n = str_fmt(text, sizeof text, "%d\n", (int)getpid());
    int rc = ftruncate(fd, 0) < 0 ? -errno : 0;
    if (!rc && pwrite(fd, text, n, 0) < 0)
        rc = -errno;
    /* A full disk must not keep the watcher from starting: the lock holds without the number. */
    if (rc && rc != -ENOSPC && rc != -EDQUOT)
        return file_error(s, err, -rc, "cannot write its lock file");
    s->lock_fd = TAKE_FD(fd);
    return 0;
}

void lock_drop(struct store *s)
{
    if (s->lock_fd >= 0 && ftruncate(s->lock_fd, 0) < 0)
        s->lock_fd = fd_close(s->lock_fd); /* a stale number is harmless: nobody believes it without the lock */
    s->lock_fd = fd_close(s->lock_fd);
}

int32_t lock_holder(const char *path)
{
    char name[4200];
    if (lock_path(path, name, sizeof name))
        return 0;
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, name, O_RDONLY, 0);
    struct flock lock = whole(F_RDLCK);
    if (fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return 0;
    return pid_in(fd);
}
