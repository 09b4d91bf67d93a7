/* Which paths may not be looked into, by the mount table. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/netmount.h"
#include "source/shmfiles.h"
#include "source/tmpdir.h"

#define LOCAL "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n25 22 0:21 / /dev/shm rw shared:3 - tmpfs tmpfs rw\n"
#define NFS(dir) "40 22 0:50 / " dir " rw,relatime shared:20 - nfs4 server:/export rw,vers=4.2\n"

static int make_process(const char *mountinfo)
{
    char path[512];
    int dir, fd;

    str_fmt(path, sizeof path, "%s/mountinfo", harness_tmpdir());
    fd = fd_open(AT_FDCWD, path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, mountinfo, strlen(mountinfo)), 0);
    close(fd);
    str_fmt(path, sizeof path, "%s/root", harness_tmpdir());
    mkdir(path, 0700);
    str_fmt(path, sizeof path, "%s/root/tmp", harness_tmpdir());
    mkdir(path, 0700);
    str_fmt(path, sizeof path, "%s/root/link", harness_tmpdir());
    assert_true(symlink("tmp", path) == 0 || errno == EEXIST);
    dir = fd_open(AT_FDCWD, harness_tmpdir(), O_RDONLY | O_DIRECTORY, 0);
    assert_true(dir >= 0);
    return dir;
}

static struct netmount look(const char *mountinfo, const char *path)
{
    struct netmount found;
    int dir = make_process(mountinfo);

    assert_int_equal(netmount_find(dir, &path, 1, &found), 0);
    close(dir);
    return found;
}

static void test_paths(void **state)
{
    static const struct { const char *mounts, *path; bool risky, plain; } cases[] = {
        { LOCAL, "/tmp", false, false }, { LOCAL NFS("/tmp"), "/tmp", true, true }, { LOCAL NFS("/tmp"), "/tmp/a/b", true, true },
        { LOCAL NFS("/tmp"), "//./tmp/", true, true }, { LOCAL NFS("/tmp"), "/tmpx", false, true }, { LOCAL NFS("/tmp/a"), "/tmp", false, true },
        { LOCAL NFS("/mnt/a\\040b"), "/mnt/a b/tmp", true, true }, { LOCAL NFS("/mnt/a\\040b"), "/mnt/a/tmp", false, true },
        { NFS("/"), "/tmp", false, false }, /* its own root */
        { LOCAL "9 8 0:3 / /x rw - fuse.sshfs a rw\n", "/x", true, true }, { LOCAL "9 8 0:3 / /x rw - fuseblk a rw\n", "/x", false, false },
        { "", "/tmp", false, false }, { "garbage\n\n- - - - - - - -\n", "/tmp", false, false },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct netmount found = look(cases[i].mounts, cases[i].path);

        assert_int_equal(found.path >= 0, cases[i].risky);
        assert_int_equal(found.must_be_plain, cases[i].plain);
    }
    assert_string_equal(look(LOCAL NFS("/tmp"), "/tmp").type, "nfs4");
    assert_true(netmount_is_plain("/a/..b/c"));
    assert_false(netmount_is_plain("/a/../b"));
}

static void test_this_process(void **state)
{
    const char *const paths[] = { "/proc" };
    struct netmount found;
    int dir = fd_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0);

    (void)state;
    assert_int_equal(netmount_find(dir, paths, 1, &found), 0);
    assert_int_equal(found.path, -1);
    close(dir);
}

static int count_tmp(const char *mountinfo, const char *path, struct err *err)
{
    struct tmpdirs *t;
    struct tmpdir_count count;
    int dir = make_process(mountinfo), r;

    *err = (struct err){ 0 };
    assert_int_equal(tmpdirs_new(&t, 0), 0);
    tmpdirs_round(t);
    r = tmpdirs_count(t, dir, &path, 1, &count, err);
    tmpdirs_free(t);
    close(dir);
    return r;
}

/* Temp folders that might never answer are left alone, and it is said why. */
static void test_temp_folders(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(count_tmp(LOCAL, "/tmp", &err), 0);
    assert_int_equal(count_tmp(LOCAL, "/link", &err), 0);
    assert_int_equal(count_tmp(LOCAL NFS("/mnt"), "/tmp", &err), 0);
    assert_int_equal(count_tmp(LOCAL NFS("/tmp"), "/tmp", &err), LT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "nfs4"));
    assert_int_equal(count_tmp(LOCAL NFS("/mnt"), "/link", &err), LT_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "real path"));
    assert_int_equal(count_tmp(LOCAL NFS("/mnt"), "/a/../tmp", &err), LT_EUNSUPPORTED);
}

static int count_file(void *ctx, const struct shm_file *f)
{
    (void)f;
    ++*(int *)ctx;
    return 0;
}

static int count_shm(const char *mountinfo, int *ret, struct err *err)
{
    struct netmount where;
    int dir = make_process(mountinfo);
    int r = shm_files_where(dir, &where);

    *err = (struct err){ 0 };
    *ret = 0;
    if (!r)
        r = shm_files_each(dir, &where, count_file, ret, err);
    close(dir);
    return r;
}

/* A /dev/shm on FUSE is left alone; one with more entries than are looked at has no count, rather than a part of one. */
static void test_shared_memory(void **state)
{
    struct err err;
    char path[600];
    int n;

    (void)state;
    close(make_process(LOCAL));
    for (int i = 0; i < 2; i++) {
        str_fmt(path, sizeof path, "%s/root/dev%s", harness_tmpdir(), i ? "/shm" : "");
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (int i = 0; i < SHM_NAMES + 2; i++) {
        str_fmt(path, sizeof path, "%s/root/dev/shm/%d", harness_tmpdir(), i);
        int fd = fd_open(AT_FDCWD, path, O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0);
        close(fd);
        if (i == 9) {
            assert_int_equal(count_shm(LOCAL, &n, &err), 0);
            assert_int_equal(n, 10);
            assert_int_equal(count_shm(LOCAL "9 8 0:3 / /dev/shm rw - fuse.x a rw\n", &n, &err), LT_EUNSUPPORTED);
            assert_int_equal(n, 0);
            assert_non_null(strstr(err.text, "/dev/shm"));
        }
    }
    assert_int_equal(count_shm(LOCAL, &n, &err), LT_ELIMIT);
    assert_non_null(strstr(err.text, "32768"));
}

HARNESS_MAIN(CASE(test_paths), CASE(test_this_process), CASE(test_temp_folders), CASE(test_shared_memory))
