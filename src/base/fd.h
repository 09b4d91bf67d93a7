/* File descriptors: always O_CLOEXEC, closed by scope, short reads handled. The only place that calls open(2). */
#ifndef LT_BASE_FD_H
#define LT_BASE_FD_H

#include <stddef.h>
#include <sys/types.h>

int fd_open(int dirfd, const char *path, int flags, mode_t mode); /* fd, or -errno; adds O_CLOEXEC, retries EINTR */
int fd_close(int fd);                                             /* -1 allowed; returns -1; keeps errno */
/* Reads the file relative to dirfd whole, into buf[0..size-1), NUL-terminated: bytes read, or -errno.
 * -EFBIG when it is longer than size-1 (buf then holds the beginning). */
ssize_t fd_read_at(int dirfd, const char *path, char *buf, size_t size);
/* One pread at 0 of a kept /proc fd, NUL-terminated: bytes, or -errno (-ESRCH: the process is gone). */
ssize_t fd_pread0(int fd, char *buf, size_t size);
int fd_write_all(int fd, const void *data, size_t len);           /* 0 or -errno */
/* Writes path whole and durable (temp file in the same folder, fsync, rename), mode 0600: 0 or -errno. */
int fd_write_file(const char *path, const void *data, size_t len);
int fd_mkdir_p(const char *path, mode_t mode);                    /* 0 or -errno; existing folders are fine */

static inline void fd_closep(int *fd) { *fd = fd_close(*fd); }
#define _cleanup_fd_ __attribute__((cleanup(fd_closep)))
#define TAKE_FD(fd) ({ int *_fp = &(fd); int _v = *_fp; *_fp = -1; _v; })

#endif
