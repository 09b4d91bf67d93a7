/* Temp folders: resumable walks, one per folder (device and inode). */
#include "source/tmpdir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "source/netmount.h"

#define DENTS_SIZE 2048
#define CLOCK_EVERY 64       /* entries between two looks at the clock */
#define LINKS_MAX 65536      /* files of more than one name remembered in a walk */

/* One open folder of a walk. */
struct level {
    int fd;
    int pos, len;            /* of dents: read, filled */
    bool empty;              /* no entry was seen yet */
    char dents[DENTS_SIZE] __attribute__((aligned(8)));
};

struct folder {
    uint64_t dev, ino;
    bool wanted;             /* in this round */
    bool walked;             /* in this round */
    bool done;               /* a walk has ended: `last` is valid */
    int depth;               /* open levels, 0: no walk under way */
    int64_t entries;
    struct map links;        /* inodes of files with more than one name, seen in this walk */
    int64_t ended_ns;
    struct tmpdir_count now, last;
    struct level levels[TMPDIR_DEPTH];
};

struct tmpdirs {
    int64_t budget_ns;
    size_t n;
    struct folder *folders[TMPDIR_FOLDERS];
};

struct dent64 {
    uint64_t ino;
    int64_t off;
    uint16_t reclen;
    uint8_t type;
    char name[];
};

int tmpdirs_new(struct tmpdirs **ret, int64_t budget_ns)
{
    struct tmpdirs *t = mem_zalloc(1, sizeof *t);

    if (!t)
        return LT_ENOMEM;
    t->budget_ns = budget_ns > 0 ? budget_ns : TMPDIR_BUDGET_NS;
    *ret = t;
    return 0;
}

static void close_levels(struct folder *f)
{
    while (f->depth)
        fd_close(f->levels[--f->depth].fd);
}

static void folder_free(struct folder *f)
{
    close_levels(f);
    map_release(&f->links);
    mem_free(f);
}

void tmpdirs_free(struct tmpdirs *t)
{
    if (!t)
        return;
    while (t->n)
        folder_free(t->folders[--t->n]);
    mem_free(t);
}

void tmpdirs_round(struct tmpdirs *t)
{
    for (size_t i = t->n; i-- > 0;) {
        struct folder *f = t->folders[i];
        if (!f->wanted) {
            folder_free(f);
            t->folders[i] = t->folders[--t->n];
            continue;
        }
        f->wanted = f->walked = false;
    }
}

/* ---- one folder ------------------------------------------------------------------------------------------------- */

static int stat_at(int dirfd, const char *name, unsigned flags, struct statx *ret)
{
    return statx(dirfd, name, (int)(AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | AT_SYMLINK_NOFOLLOW | flags),
                 STATX_TYPE | STATX_INO | STATX_NLINK | STATX_BLOCKS, ret);
}

static uint64_t dev_of(const struct statx *st)
{
    return makedev(st->stx_dev_major, st->stx_dev_minor);
}

static void count_one(struct folder *f, int64_t blocks)
{
    f->now.files++;
    f->now.bytes += blocks * 512;
}

static void push_level(struct folder *f, int fd)
{
    struct level *l = &f->levels[f->depth++];

    l->fd = fd;
    l->pos = l->len = 0;
    l->empty = true;
}

static void enter(struct folder *f, int dirfd, const char *name)
{
    if (f->depth == TMPDIR_DEPTH) {
        f->now.partial = true;
        return;
    }
    int fd = fd_open(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NOATIME, 0);
    if (fd == -EPERM) /* O_NOATIME is for the owner and root */
        fd = fd_open(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd >= 0)
        push_level(f, fd);
    else if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP) /* those: replaced since it was looked at */
        f->now.partial = true;
}

/* A file with more names counts at the first one met. */
static bool seen_before(struct folder *f, const struct statx *st)
{
    uint64_t key = st->stx_ino ^ dev_of(st) << 40, one;

    if (st->stx_nlink < 2)
        return false;
    if (map_get(&f->links, key, &one))
        return true;
    if (map_put(&f->links, key, 1))
        f->now.partial = true;
    return false;
}

/* Something mounted here is not in the folder: another file system, or another place of this one (a bind mount). Where the
 * kernel does not say (before 5.8), another device of a folder tells; files of an overlay have devices of their own. */
static bool is_mount(const struct folder *f, const struct statx *st)
{
    if (st->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
        return st->stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return S_ISDIR(st->stx_mode) && dev_of(st) != f->dev;
}

static void take_entry(struct folder *f, int dirfd, const char *name)
{
    struct statx st;

    if (stat_at(dirfd, name, 0, &st) < 0) {
        f->now.partial |= errno != ENOENT;
        return;
    }
    if (is_mount(f, &st))
        return;
    if (S_ISDIR(st.stx_mode))
        enter(f, dirfd, name);
    else if (!seen_before(f, &st))
        count_one(f, (int64_t)st.stx_blocks);
}

/* A folder was read to its end: an empty one below the top counts as a file. */
static void leave(struct folder *f)
{
    struct level *l = &f->levels[f->depth - 1];
    struct statx st;

    if (l->empty && f->depth > 1 && stat_at(l->fd, "", AT_EMPTY_PATH, &st) == 0)
        count_one(f, (int64_t)st.stx_blocks);
    fd_close(l->fd);
    f->depth--;
}

static bool is_dot(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* The next entry of the innermost folder; NULL at its end. */
static const char *next_entry(struct folder *f)
{
    struct level *l = &f->levels[f->depth - 1];

    for (;;) {
        if (l->pos == l->len) {
            long n = syscall(SYS_getdents64, l->fd, l->dents, sizeof l->dents);
            if (n <= 0) {
                f->now.partial |= n < 0 && errno != ENOENT;
                return NULL;
            }
            l->pos = 0;
            l->len = (int)n;
        }
        const struct dent64 *d = (const struct dent64 *)(const void *)(l->dents + l->pos);
        l->pos += d->reclen;
        if (!is_dot(d->name)) {
            l->empty = false;
            return d->name;
        }
    }
}

static void end_walk(struct folder *f)
{
    close_levels(f);
    f->last = f->now;
    f->done = true;
    f->ended_ns = clock_mono_ns();
}

/* Goes on with the walk under way until it ends or the time is spent. */
static void go_on(struct folder *f, int64_t deadline_ns)
{
    for (unsigned i = 1; f->depth; i++) {
        const char *name = next_entry(f);
        if (!name) {
            leave(f);
        } else if (++f->entries > TMPDIR_ENTRIES) {
            f->now.partial = true;
            break;
        } else {
            take_entry(f, f->levels[f->depth - 1].fd, name);
        }
        if (i % CLOCK_EVERY == 0 && clock_mono_ns() > deadline_ns && f->depth)
            return;
    }
    end_walk(f);
}

static void walk(struct folder *f, int dirfd, int64_t budget_ns)
{
    if (f->walked)
        return;
    f->walked = true;
    if (!f->depth) {
        f->now = (struct tmpdir_count){ 0 };
        f->entries = 0;
        map_clear(&f->links);
        enter(f, dirfd, ".");
    }
    go_on(f, clock_mono_ns() + budget_ns);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

static struct folder *find_folder(struct tmpdirs *t, const struct statx *st)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->folders[i]->dev == dev_of(st) && t->folders[i]->ino == st->stx_ino)
            return t->folders[i];
    return NULL;
}

static int make_folder(struct tmpdirs *t, const struct statx *st, struct folder **ret, struct err *err)
{
    struct folder *f;

    if (t->n == TMPDIR_FOLDERS)
        return err_set(err, LT_ELIMIT, "temp folders: more than %d; the others are not counted", TMPDIR_FOLDERS);
    f = mem_zalloc(1, sizeof *f);
    if (!f)
        return err_set(err, LT_ENOMEM, "temp folders: out of memory");
    f->dev = dev_of(st);
    f->ino = st->stx_ino;
    map_init(&f->links, LINKS_MAX);
    *ret = t->folders[t->n++] = f;
    return 0;
}

/* The path inside the target's root: links in it lead no further than that root. */
static int open_in_root(int root, const char *path, bool plain)
{
    struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
    if (plain && !netmount_is_plain(path))
        return -ELOOP;
    if (plain)
        how.resolve |= RESOLVE_NO_SYMLINKS;
    long fd = syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd < 0 ? -errno : (int)fd;
}

/* Adds one folder to ret; what was added before (device and inode in seen[0..nseen)) is left out. */
static int add_folder(struct tmpdirs *t, int root, const char *path, bool plain, struct folder **seen, size_t *nseen, struct tmpdir_count *ret,
                      struct err *err)
{
    struct statx st;
    struct folder *f;
    _cleanup_fd_ int fd = open_in_root(root, path, plain);

    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    if (fd == -ELOOP && plain)
        return err_set(err, LT_EUNSUPPORTED, "temp folder %s: not counted: its name has links in it, which might lead to one of the network or "
                       "FUSE file systems that are mounted; give its real path", path);
    if (fd < 0 || stat_at(fd, "", AT_EMPTY_PATH, &st) < 0)
        return err_errno(err, LT_EIO, fd < 0 ? -fd : errno, "temp folder %s", path);
    f = find_folder(t, &st);
    if (!f) {
        int r = make_folder(t, &st, &f, err);
        if (r)
            return r;
    }
    for (size_t i = 0; i < *nseen; i++)
        if (seen[i] == f)
            return 0;
    seen[(*nseen)++] = f;
    f->wanted = true;
    walk(f, fd, t->budget_ns);
    const struct tmpdir_count *c = f->done ? &f->last : &f->now;
    ret->files += c->files;
    ret->bytes += c->bytes;
    ret->partial |= c->partial;
    ret->at_least |= !f->done;
    ret->age_ns = MAX(ret->age_ns, f->done && f->depth ? clock_mono_ns() - f->ended_ns : INT64_C(0));
    return 0;
}

/* Whether paths[i] lies below another of them, by name. */
static bool inside_another(const char *const *paths, size_t n, size_t i)
{
    for (size_t j = 0; j < n; j++) {
        size_t len = strlen(paths[j]);
        while (len > 1 && paths[j][len - 1] == '/')
            len--;
        if (j == i || strncmp(paths[i], paths[j], len) || paths[i][len] != '/')
            continue;
        if (paths[i][len + strspn(paths[i] + len, "/")]) /* "/a/" is "/a" itself: left to the inode */
            return true;
    }
    return false;
}

int tmpdirs_count(struct tmpdirs *t, int pid_dirfd, const char *const *paths, size_t n, struct tmpdir_count *ret,
                  struct err *err)
{
    struct tmpdir_count sum = { 0 };
    struct folder *seen[TMPDIR_FOLDERS];
    struct netmount where;
    size_t nseen = 0;
    _cleanup_fd_ int root = fd_open(pid_dirfd, "root", O_PATH | O_DIRECTORY, 0);

    if (root == -ENOENT || root == -ESRCH)
        return err_set(err, LT_GONE, "temp folders: the process is gone");
    if (root < 0)
        return err_errno(err, LT_EIO, -root, "temp folders: cannot look into the root of the process (needs CAP_SYS_PTRACE)");
    int r = netmount_find(pid_dirfd, paths, n, &where);
    if (r)
        return err_set(err, r, "temp folders: mount table: %s", err_sentence(r));
    if (where.path >= 0)
        return err_set(err, LT_EUNSUPPORTED, "temp folder %s: not counted: it lies on a network or FUSE file system (%s), whose server, when dead, "
                       "would hold up the sampler", paths[where.path], where.type);
    for (size_t i = 0; i < n; i++) {
        if (inside_another(paths, n, i))
            continue;
        r = add_folder(t, root, paths[i], where.must_be_plain, seen, &nseen, &sum, err);
        if (r)
            return r;
    }
    *ret = sum;
    return 0;
}
