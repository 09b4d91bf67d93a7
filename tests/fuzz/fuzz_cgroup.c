/* /proc/PID/cgroup, limits, and /proc/self/mountinfo: no bytes are read past the text, what comes out is a whole path within
 * its bound, and an error leaves the number alone. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "fuzz/fuzz.h"
#include "source/cgroup.h"

static void check_path(const char *text, size_t len, const char *want)
{
    char out[CGROUP_PATH_MAX];
    int r = cgroup_parse(text, len, want, out);

    FUZZ_PROMISE(r == 0 || r == LT_ENOENT || r == LT_EPARSE);
    FUZZ_PROMISE(r || (out[0] == '/' && strnlen(out, sizeof out) < sizeof out && !strchr(out, '\n')));
}

static void check_mount(const struct cgroup_mount *m)
{
    FUZZ_PROMISE(strnlen(m->dir, sizeof m->dir) < sizeof m->dir && strnlen(m->root, sizeof m->root) < sizeof m->root);
    FUZZ_PROMISE(!m->dir[0] || str_starts(m->dir, "/sys/fs/cgroup"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct cgroup_mounts m;
    char path[64];
    int64_t v = 42;

    check_path(text, size, "");
    check_path(text, size, "memory");
    check_path(text, size, "name=systemd");
    int r = cgroup_parse_limit(text, size, &v);
    FUZZ_PROMISE(r == 0 ? v >= METRIC_NA : v == 42);
    int fd = memfd_create("mountinfo", MFD_CLOEXEC);
    if (fd < 0 || fd_write_all(fd, data, size))
        return 0;
    str_fmt(path, sizeof path, "/proc/self/fd/%d", fd);
    r = cgroup_mounts(&m, "/sys/fs/cgroup", path, NULL);
    close(fd);
    FUZZ_PROMISE(r == 0 || r == LT_ENOENT);
    check_mount(&m.v2);
    check_mount(&m.memory);
    check_mount(&m.systemd);
    FUZZ_PROMISE(r != 0 || m.v2.dir[0] || m.memory.dir[0] || m.systemd.dir[0]);
    return 0;
}
