/* Which group a process, a path, a unit is, and who is in it. What is mounted where: cgroupmount.c; memory: cgroupmemory.c. */
#include "source/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"
#include "source/lines.h"

#define CGROUP_TEXT 8192        /* /proc/PID/cgroup: a line a hierarchy */
#define PIDS_BUFFER 8192
#define PIDS_DEPTH 8
#define UNIT_DEPTH 6

/* ---- texts ------------------------------------------------------------------------------------------------------ */

/* Whether the comma-separated `list` has the word. */
static bool list_has(struct slice list, const char *word)
{
    struct slice part;

    while (slice_next(&list, ',', &part))
        if (slice_eq(part, word))
            return true;
    return false;
}

/* "4:memory:/a/b", "0::/a/b" */
int cgroup_parse(const char *text, size_t len, const char *want, char out[CGROUP_PATH_MAX])
{
    struct slice rest = { text, len }, line, id, controllers;

    while (slice_next(&rest, '\n', &line)) {
        if (line.len == 0)
            continue;
        if (!slice_next(&line, ':', &id) || !line.p || !slice_next(&line, ':', &controllers) || !line.p)
            return LT_EPARSE;
        if (*want ? !list_has(controllers, want) : !slice_eq(id, "0") || controllers.len)
            continue;
        if (line.len == 0 || line.len >= CGROUP_PATH_MAX || line.p[0] != '/' || memchr(line.p, '\0', line.len))
            return LT_EPARSE;
        memcpy(out, line.p, line.len);
        out[line.len] = '\0';
        return 0;
    }
    return LT_ENOENT;
}

/* ---- which group ------------------------------------------------------------------------------------------------ */

/* dir + (path - root): the part of the hierarchy that is mounted is `root`. */
static int resolve(const struct cgroup_mount *m, int version, const char *path, struct cgroup *ret, struct err *err)
{
    size_t root_len = str_eq(m->root, "/") ? 0 : strlen(m->root);
    const char *below = path + root_len;

    if (strncmp(path, m->root, root_len) || (*below != '/' && *below != '\0') || strstr(below, "/.."))
        return err_set(err, LT_EUNSUPPORTED, "cgroup %s: lies outside what is mounted at %s (%s); run on the host to see it", path,
                       m->dir, m->root);
    if (strlen(m->dir) + strlen(below) >= CGROUP_PATH_MAX)
        return err_set(err, LT_ELIMIT, "cgroup %s: the path is too long", path);
    ret->version = version;
    str_copy(ret->path, sizeof ret->path, path);
    ret->mount_len = strlen(m->dir);
    str_fmt(ret->dir, sizeof ret->dir, "%s%s", m->dir, str_eq(below, "/") ? "" : below);
    return 0;
}

/* The v1 memory hierarchy decides where it is mounted; else the unified one. */
static const struct cgroup_mount *memory_mount(const struct cgroup_mounts *m, int *ret_version)
{
    *ret_version = m->memory.dir[0] ? 1 : 2;
    return m->memory.dir[0] ? &m->memory : m->v2.dir[0] ? &m->v2 : NULL;
}

int cgroup_of(const struct cgroup_mounts *m, int pid_dirfd, struct cgroup *ret, struct err *err)
{
    char text[CGROUP_TEXT], path[CGROUP_PATH_MAX];
    int version, r;
    const struct cgroup_mount *mount = memory_mount(m, &version);
    ssize_t n = fd_read_at(pid_dirfd, "cgroup", text, sizeof text);

    if (n == -ENOENT || n == -ESRCH)
        return err_set(err, LT_GONE, "cgroup: the process is gone");
    if (n < 0)
        return err_errno(err, LT_EIO, (int)-n, "cgroup: cannot read /proc/PID/cgroup");
    if (!mount)
        return err_set(err, LT_EUNSUPPORTED, "cgroup: no memory hierarchy is mounted");
    r = cgroup_parse(text, (size_t)n, version == 1 ? "memory" : "", path);
    if (r)
        return err_set(err, r == LT_ENOENT ? LT_EUNSUPPORTED : r, "cgroup: /proc/PID/cgroup has no %s line",
                       version == 1 ? "memory" : "unified");
    return resolve(mount, version, path, ret, err);
}

static bool is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int try_below(const struct cgroup_mount *m, int version, const char *path, struct cgroup *ret)
{
    char dir[CGROUP_PATH_MAX];

    if (!m->dir[0] || strstr(path, "/.."))
        return LT_ENOENT;
    size_t n = str_fmt(dir, sizeof dir, "%s/%s", m->dir, path);
    while (n > 1 && n < sizeof dir && dir[n - 1] == '/')
        dir[--n] = '\0';
    if (n + 1 >= sizeof dir || !is_folder(dir))
        return LT_ENOENT;
    *ret = (struct cgroup){ .version = version, .mount_len = strlen(m->dir) };
    str_copy(ret->dir, sizeof ret->dir, dir);
    str_fmt(ret->path, sizeof ret->path, "/%s", path);
    return 0;
}

int cgroup_at(const struct cgroup_mounts *m, const char *path, struct cgroup *ret, struct err *err)
{
    const struct { const struct cgroup_mount *mount; int version; } where[] = { { &m->v2, 2 }, { &m->memory, 1 }, { &m->systemd, 1 } };

    for (size_t i = 0; i < ARRAY_SIZE(where); i++) { /* a folder below a mount, as the user sees it */
        size_t n = strlen(where[i].mount->dir);
        if (n && !strncmp(path, where[i].mount->dir, n) && path[n] == '/' &&
            try_below(where[i].mount, where[i].version, path + n + strspn(path + n, "/"), ret) == 0)
            return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(where); i++)
        if (try_below(where[i].mount, where[i].version, path + strspn(path, "/"), ret) == 0)
            return 0;
    return err_set(err, LT_ENOENT, "cgroup %s: no such group; see the folders below /sys/fs/cgroup", path);
}

/* ---- members ---------------------------------------------------------------------------------------------------- */

struct pids_walk {
    struct vec *pids;
    int depth;
    int code;                    /* of vec_append */
};

static bool add_pid(void *ctx, const char *line, size_t len)
{
    struct pids_walk *w = ctx;
    int64_t v;
    int32_t pid;

    if (units_int(line, len, &v) || v <= 0 || v > INT32_MAX)
        return true;
    pid = (int32_t)v;
    w->code = vec_append(w->pids, &pid);
    return w->code == 0;
}

/* The pids in dirfd, however many. A group removed meanwhile, or a threaded one (which lists none), has none. */
static int pids_here(int dirfd, struct pids_walk *w)
{
    char buffer[PIDS_BUFFER];
    _cleanup_fd_ int fd = fd_open(dirfd, "cgroup.procs", O_RDONLY, 0);

    if (fd < 0)
        return fd == -ENOENT || fd == -EOPNOTSUPP ? 0 : LT_EIO;
    int r = lines_each(fd, buffer, sizeof buffer, add_pid, w);
    if (r == -ENODEV || r == -EOPNOTSUPP)
        return 0;
    return r < 0 ? LT_EIO : w->code;
}

/* Calls fn for each folder in dirfd, with its name; a negative return stops. fdopendir allocates inside libc. */
static int each_folder(int dirfd, int (*fn)(void *ctx, int dirfd, const char *name), void *ctx)
{
    int fd = fd_open(dirfd, ".", O_RDONLY | O_DIRECTORY, 0), r = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;

    if (!d) {
        fd_close(fd);
        return 0;
    }
    while (r >= 0 && (e = readdir(d)))
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            r = fn(ctx, dirfd, e->d_name);
    closedir(d);
    return MIN(r, 0);
}

static int pids_below(void *ctx, int dirfd, const char *name)
{
    struct pids_walk *w = ctx;
    _cleanup_fd_ int fd = fd_open(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
    int r;

    if (fd < 0)
        return 0; /* gone meanwhile */
    if ((r = pids_here(fd, w)) || w->depth >= PIDS_DEPTH)
        return r;
    w->depth++;
    r = each_folder(fd, pids_below, w);
    w->depth--;
    return r;
}

int cgroup_pids(const struct cgroup *g, bool deep, struct vec *pids, struct err *err)
{
    struct pids_walk w = { .pids = pids, .depth = 1 };
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, g->dir, O_RDONLY | O_DIRECTORY, 0);
    int r;

    if (fd < 0)
        return fd == -ENOENT ? err_set(err, LT_GONE, "cgroup %s: the group is gone", g->path)
                             : err_errno(err, LT_EIO, -fd, "cgroup %s", g->path);
    r = pids_here(fd, &w);
    if (r == 0 && deep)
        r = each_folder(fd, pids_below, &w);
    return r ? err_set(err, r, "cgroup %s: %s", g->path, err_sentence(r)) : 0;
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

struct unit_search {
    const char *name;
    int depth;
    size_t found;
    char at[CGROUP_PATH_MAX];    /* path of the folder being looked at, below the mount */
    char first[CGROUP_PATH_MAX];
};

static int look_for_unit(void *ctx, int dirfd, const char *name)
{
    struct unit_search *s = ctx;
    size_t len = strlen(s->at);

    if (len + strlen(name) + 2 > sizeof s->at)
        return 0;
    str_fmt(s->at + len, sizeof s->at - len, "/%s", name);
    if (str_eq(name, s->name)) {
        if (s->found++ == 0)
            str_copy(s->first, sizeof s->first, s->at);
    } else if (s->depth < UNIT_DEPTH) {
        _cleanup_fd_ int fd = fd_open(dirfd, name, O_RDONLY | O_DIRECTORY, 0);
        s->depth++;
        if (fd >= 0)
            each_folder(fd, look_for_unit, s);
        s->depth--;
    }
    s->at[len] = '\0';
    return 0;
}

static int unit_in(const struct cgroup_mount *m, int version, const char *name, struct cgroup *ret, struct err *err)
{
    char path[CGROUP_PATH_MAX];
    struct unit_search s = { .name = name, .depth = 1 };

    str_fmt(path, sizeof path, "system.slice/%s", name);
    if (try_below(m, version, path, ret) == 0)
        return 0;
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, m->dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0)
        each_folder(fd, look_for_unit, &s);
    if (s.found > 1)
        return err_set(err, LT_EAMBIG, "unit %s: %zu groups bear that name, %s is one; name the one you mean with cgroup:PATH", name,
                       s.found, s.first);
    return s.found ? try_below(m, version, s.first + 1, ret) : LT_ENOENT;
}

int cgroup_unit(const struct cgroup_mounts *m, const char *name, struct cgroup *ret, struct err *err)
{
    const struct { const struct cgroup_mount *mount; int version; } where[] = { { &m->systemd, 1 }, { &m->v2, 2 } };
    char full[256];

    if (!*name || strchr(name, '/'))
        return err_set(err, LT_EUSAGE, "unit '%s': no unit has such a name", name);
    str_fmt(full, sizeof full, strchr(name, '.') ? "%s" : "%s.service", name);
    for (size_t i = 0; i < ARRAY_SIZE(where); i++) {
        int r = where[i].mount->dir[0] ? unit_in(where[i].mount, where[i].version, full, ret, err) : LT_ENOENT;
        if (r != LT_ENOENT)
            return r;
    }
    return err_set(err, LT_ENOENT, "unit %s: not running (no cgroup of that name)", full);
}

/* ---- shared ----------------------------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);

    return n >= m && str_eq(s + n - m, suffix);
}

bool cgroup_is_shared(const struct cgroup *g, const struct cgroup *own)
{
    const char *base = strrchr(g->path, '/');

    base = base ? base + 1 : g->path;
    if (!*base || str_eq(g->path, "/") || strlen(g->dir) <= g->mount_len)
        return true;
    if (own && str_eq(own->dir, g->dir))
        return true;
    return ends_with(base, ".slice") || str_eq(base, "init.scope") || (str_starts(base, "session-") && ends_with(base, ".scope")) ||
           (str_starts(base, "user@") && ends_with(base, ".service"));
}
