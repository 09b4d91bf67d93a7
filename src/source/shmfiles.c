#include "source/shmfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "source/netmount.h"

#define DENTS_SIZE 16384
#define PROBES 4096
#define FOLDER "/dev/shm/"

struct dent64 {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

/* Calls fn with each name in the folder until it returns other than 0: that, or -errno. */
static int each_name(int dirfd, int (*fn)(void *ctx, const char *name), void *ctx)
{
    char dents[DENTS_SIZE] __attribute__((aligned(8)));

    for (;;) {
        long n = syscall(SYS_getdents64, dirfd, dents, sizeof dents);
        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (long at = 0; at < n;) {
            const struct dent64 *d = (const struct dent64 *)(const void *)(dents + at);
            int r = fn(ctx, d->name);
            if (r)
                return r;
            at += d->reclen;
        }
    }
}

int shm_files_where(int pid_dirfd, struct netmount *ret)
{
    static const char *const path[] = { FOLDER };

    return netmount_find(pid_dirfd, path, 1, ret);
}

/* Its /dev/shm: fd, or -errno; -EREMOTE: looking there might never end. Links in the way lead no further than its root. */
static int open_folder(int pid_dirfd, const struct netmount *where)
{
    struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    _cleanup_fd_ int root = fd_open(pid_dirfd, "root", O_PATH | O_DIRECTORY, 0);

    if (root < 0)
        return root == -ENOENT ? -ESRCH : root;
    if (where->path >= 0)
        return -EREMOTE;
    if (where->must_be_plain)
        how.resolve |= RESOLVE_NO_SYMLINKS;
    long fd = syscall(SYS_openat2, root, FOLDER, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

struct files_pass {
    int folder;
    int links;      /* /proc/PID/fd, of shm_files_open */
    unsigned left;  /* links still to be read */
    unsigned names; /* looked at */
    shm_file_fn fn;
    void *ctx;
    int code;       /* what fn returned */
};

/* 1 when fn stopped. */
static int take_name(void *ctx, const char *name)
{
    struct files_pass *p = ctx;
    struct statx st;

    if (statx(p->folder, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_UID | STATX_INO | STATX_BLOCKS, &st) < 0 ||
        !S_ISREG(st.stx_mode))
        return 0;
    struct shm_file f = { .key = st.stx_ino ^ (uint64_t)makedev(st.stx_dev_major, st.stx_dev_minor) << 40, .uid = st.stx_uid,
                          .bytes = (int64_t)st.stx_blocks * 512 };
    p->code = p->fn(p->ctx, &f);
    return p->code != 0;
}

static int take_entry(void *ctx, const char *name)
{
    struct files_pass *p = ctx;

    if (p->names++ < SHM_NAMES)
        return take_name(p, name);
    p->code = LT_ELIMIT;
    return 1;
}

static int take_link(void *ctx, const char *fd_name)
{
    struct files_pass *p = ctx;
    char link[512];

    if (fd_name[0] == '.')
        return 0;
    if (p->left-- == 0)
        return 1;
    ssize_t n = readlinkat(p->links, fd_name, link, sizeof link - 1);
    if (n < 0)
        return 0;
    link[n] = '\0';
    const char *name = link + sizeof FOLDER - 1;
    if (!str_starts(link, FOLDER) || strchr(name, '/')) /* deleted ones are not found by name, and not in the folder */
        return 0;
    return take_name(p, name);
}

static int fail(int errnum, const char *what, struct err *err)
{
    if (errnum == ESRCH)
        return err_set(err, LT_GONE, "POSIX shared memory: the process is gone");
    if (errnum == EREMOTE || errnum == ELOOP)
        return err_set(err, LT_EUNSUPPORTED, "/dev/shm lies on a network or FUSE file system: its segments are not counted, since a dead "
                       "server would hold up the sampler");
    return err_errno(err, errnum == ENOSYS ? LT_EUNSUPPORTED : LT_EIO, errnum, "POSIX shared memory: cannot read %s", what);
}

int shm_files_each(int pid_dirfd, const struct netmount *where, shm_file_fn fn, void *ctx, struct err *err)
{
    _cleanup_fd_ int folder = open_folder(pid_dirfd, where);
    struct files_pass p = { .folder = folder, .fn = fn, .ctx = ctx };

    if (folder == -ENOENT || folder == -ENOTDIR)
        return 0;
    int r = folder < 0 ? folder : each_name(folder, take_entry, &p);
    if (p.code == LT_ELIMIT)
        return err_set(err, p.code, "/dev/shm holds more than %d files: its segments are not counted", SHM_NAMES);
    if (p.code)
        return err_set(err, p.code, "POSIX shared memory: %s", err_sentence(p.code));
    return r < 0 ? fail(-r, FOLDER, err) : 0;
}

int shm_files_open(int pid_dirfd, const struct netmount *where, unsigned probes, shm_file_fn fn, void *ctx, struct err *err)
{
    _cleanup_fd_ int folder = open_folder(pid_dirfd, where);
    struct files_pass p = { .folder = folder, .left = probes ? probes : PROBES, .fn = fn, .ctx = ctx };

    if (folder == -ENOENT || folder == -ENOTDIR)
        return 0;
    if (folder < 0)
        return fail(-folder, FOLDER, err);
    _cleanup_fd_ int links = fd_open(pid_dirfd, "fd", O_RDONLY | O_DIRECTORY, 0);
    p.links = links;
    int r = links < 0 ? (links == -ENOENT ? -ESRCH : links) : each_name(links, take_link, &p);
    if (p.code)
        return err_set(err, p.code, "POSIX shared memory: %s", err_sentence(p.code));
    return r < 0 ? fail(-r, "/proc/PID/fd", err) : 0;
}
