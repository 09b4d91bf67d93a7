/* Which cgroup hierarchies are mounted, where, and what part of them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "source/cgroup.h"
#include "source/lines.h"

#define MOUNTINFO_LINE 16384

static bool exists(const char *dir, const char *name)
{
    char path[CGROUP_PATH_MAX + 64];

    str_fmt(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* "\040" and the like stand for blanks, tabs, line ends and backslashes. */
static bool unescape(struct slice s, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        if (n + 1 >= size)
            return false;
        if (s.p[i] == '\\' && i + 3 < s.len) {
            out[n++] = (char)((s.p[i + 1] - '0') * 64 + (s.p[i + 2] - '0') * 8 + (s.p[i + 3] - '0'));
            i += 3;
        } else {
            out[n++] = s.p[i];
        }
    }
    out[n] = '\0';
    return true;
}

static bool options_have(struct slice options, const char *word)
{
    struct slice part;

    while (slice_next(&options, ',', &part))
        if (slice_eq(part, word))
            return true;
    return false;
}

static struct cgroup_mount *slot_for(struct cgroup_mounts *m, struct slice type, struct slice options)
{
    if (slice_eq(type, "cgroup2"))
        return &m->v2;
    if (!slice_eq(type, "cgroup"))
        return NULL;
    return options_have(options, "memory") ? &m->memory : options_have(options, "name=systemd") ? &m->systemd : NULL;
}

struct mount_search {
    struct cgroup_mounts *mounts;
    const char *cgroup_root;
};

/* "32 23 0:29 ROOT DIR OPTIONS [TAGS...] - TYPE SOURCE SUPER_OPTIONS": the first mount of each below cgroup_root is taken. */
static bool take_line(void *ctx, const char *text, size_t len)
{
    struct mount_search *s = ctx;
    struct slice line = { text, len }, word, root = { 0 }, dir = { 0 }, type = { 0 }, options = { 0 };
    char path[CGROUP_PATH_MAX];
    int after_dash = -1;
    size_t n = strlen(s->cgroup_root);

    for (int i = 0; slice_next(&line, ' ', &word); i++) {
        if (i == 3)
            root = word;
        if (i == 4)
            dir = word;
        if (after_dash >= 0 && ++after_dash == 1)
            type = word;
        if (after_dash == 3)
            options = word;
        if (after_dash < 0 && i >= 6 && slice_eq(word, "-"))
            after_dash = 0;
    }
    struct cgroup_mount *slot = slot_for(s->mounts, type, options);
    if (!slot || slot->dir[0] || !unescape(dir, path, sizeof path))
        return true;
    if (strncmp(path, s->cgroup_root, n) || (path[n] != '/' && path[n] != '\0'))
        return true;
    if (unescape(root, slot->root, sizeof slot->root))
        str_copy(slot->dir, sizeof slot->dir, path);
    return true;
}

static int from_mountinfo(struct cgroup_mounts *m, const char *mountinfo, const char *cgroup_root)
{
    char buffer[MOUNTINFO_LINE]; /* overlay mounts can have longer lines: not ours */
    struct mount_search s = { m, cgroup_root };
    _cleanup_fd_ int fd = fd_open(AT_FDCWD, mountinfo, O_RDONLY, 0);

    return fd < 0 ? fd : lines_each(fd, buffer, sizeof buffer, take_line, &s);
}

static void set_mount(struct cgroup_mount *m, const char *root, const char *below)
{
    str_fmt(m->dir, sizeof m->dir, "%s%s", root, below);
    str_copy(m->root, sizeof m->root, "/");
}

static void from_folders(struct cgroup_mounts *m, const char *root)
{
    if (exists(root, "cgroup.controllers"))
        set_mount(&m->v2, root, "");
    else if (exists(root, "unified/cgroup.controllers"))
        set_mount(&m->v2, root, "/unified");
    if (exists(root, "memory/cgroup.procs"))
        set_mount(&m->memory, root, "/memory");
    if (exists(root, "systemd/cgroup.procs"))
        set_mount(&m->systemd, root, "/systemd");
}

/* The words of cgroup.controllers, one blank between. */
static bool controllers_have(const char *dir, const char *word)
{
    char path[CGROUP_PATH_MAX + 64], text[512];
    struct slice rest, part;

    str_fmt(path, sizeof path, "%s/cgroup.controllers", dir);
    ssize_t n = fd_read_at(AT_FDCWD, path, text, sizeof text);
    if (n < 0)
        return false;
    rest = slice_trim((struct slice){ text, (size_t)n });
    while (slice_next(&rest, ' ', &part))
        if (slice_eq(part, word))
            return true;
    return false;
}

int cgroup_mounts(struct cgroup_mounts *ret, const char *cgroup_root, const char *mountinfo, struct err *err)
{
    *ret = (struct cgroup_mounts){ 0 };
    if (mountinfo) {
        int r = from_mountinfo(ret, mountinfo, cgroup_root);
        if (r < 0)
            return err_errno(err, LT_EIO, -r, "cgroups: cannot read %s", mountinfo);
    } else {
        from_folders(ret, cgroup_root);
    }
    if (!ret->v2.dir[0] && !ret->memory.dir[0] && !ret->systemd.dir[0])
        return err_set(err, LT_ENOENT, "cgroups: nothing is mounted below %s", cgroup_root);
    ret->v2_has_memory = ret->v2.dir[0] && controllers_have(ret->v2.dir, "memory");
    return 0;
}
