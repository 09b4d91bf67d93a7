#include "source/folder.h"

#include <dirent.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

void folder_init(struct folder *f, int fd)
{
    f->fd = fd;
    f->got = f->at = 0;
}

int folder_rewind(struct folder *f)
{
    f->got = f->at = 0;
    return lseek(f->fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

int folder_next(struct folder *f, struct folder_entry *ret)
{
    const struct dirent64 *e;

    if (f->at >= f->got) {
        f->at = 0;
        f->got = syscall(SYS_getdents64, f->fd, f->buf, sizeof f->buf);
        if (f->got < 0) {
            f->got = 0;
            return -errno;
        }
        if (f->got == 0)
            return 0;
    }
    e = (const struct dirent64 *)(const void *)(f->buf + f->at);
    f->at += e->d_reclen;
    ret->ino = e->d_ino;
    ret->name = e->d_name;
    return 1;
}

int32_t folder_pid(const char *name)
{
    int32_t v = 0;
    int digits = 0;

    if (name[0] == '0')
        return 0;
    for (; *name >= '0' && *name <= '9' && digits < 9; name++, digits++)
        v = v * 10 + (*name - '0');
    return *name ? 0 : v;
}
