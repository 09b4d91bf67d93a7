#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "lib/harness.h"
#include "source/cgroup.h"

/* ---- fake trees ------------------------------------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
    char full[1024], folder[1024];

    str_fmt(full, sizeof full, "%s/%s", harness_tmpdir(), path);
    str_copy(folder, sizeof folder, full);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(fd_mkdir_p(folder, 0700), 0);
    assert_int_equal(fd_write_file(full, text, strlen(text)), 0);
}

static const char *in_tmp(const char *path)
{
    static char full[2][1024];
    static int turn;

    turn = !turn;
    str_fmt(full[turn], sizeof full[0], "%s/%s", harness_tmpdir(), path);
    return full[turn];
}

static int open_pid(const char *cgroup_text)
{
    put("proc/7/cgroup", cgroup_text);
    int fd = fd_open(AT_FDCWD, in_tmp("proc/7"), O_RDONLY | O_DIRECTORY, 0);
    assert_true(fd >= 0);
    return fd;
}

static void make_v2(void)
{
    put("cg/cgroup.controllers", "cpu io memory pids\n");
    put("cg/cgroup.procs", "1\n");
    put("cg/system.slice/memory.current", "900000\n");
    put("cg/system.slice/memory.max", "max\n");
    put("cg/system.slice/api.service/memory.current", "123456\n");
    put("cg/system.slice/api.service/memory.max", "2000000\n");
    put("cg/system.slice/api.service/memory.events", "low 0\nhigh 4\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n");
    put("cg/system.slice/api.service/cgroup.procs", "100\n101\n");
    put("cg/system.slice/api.service/inner/cgroup.procs", "102\n0\n");
    put("cg/system.slice/api.service/inner/deeper/cgroup.procs", "103");
}

static void test_v2(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct cgroup_memory mem;
    struct err err = { 0 };

    (void)state;
    make_v2();
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, &err), 0);
    assert_true(m.v2_has_memory);
    int pid = open_pid("0::/system.slice/api.service\n");
    assert_int_equal(cgroup_of(&m, pid, &g, &err), 0);
    assert_int_equal(g.version, 2);
    assert_string_equal(g.path, "/system.slice/api.service");
    assert_int_equal(cgroup_memory(&g, &mem, &err), 0);
    assert_int_equal(mem.bytes, 123456);
    assert_int_equal(mem.limit, 2000000);
    assert_int_equal(mem.oom_kills, 2);
    assert_false(mem.above);
    put("cg/system.slice/memory.max", "1500000\n"); /* tighter above */
    assert_int_equal(cgroup_memory(&g, &mem, &err), 0);
    assert_int_equal(mem.limit, 1500000);
    close(pid);
}

static void test_v2_no_limit_and_no_controller_below(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct cgroup_memory mem;

    (void)state;
    make_v2();
    put("cg/system.slice/api.service/memory.max", "max\n");
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    int pid = open_pid("0::/system.slice/api.service/inner\n"); /* has no memory.* files */
    assert_int_equal(cgroup_of(&m, pid, &g, NULL), 0);
    assert_int_equal(cgroup_memory(&g, &mem, NULL), 0);
    assert_int_equal(mem.bytes, 123456);
    assert_true(mem.above);
    assert_int_equal(mem.limit, METRIC_NA);
    close(pid);
    pid = open_pid("0::/\n"); /* the root has no memory.current: not measured */
    assert_int_equal(cgroup_of(&m, pid, &g, NULL), 0);
    assert_int_equal(cgroup_memory(&g, &mem, NULL), 0);
    assert_int_equal(mem.bytes, METRIC_NA);
    assert_int_equal(mem.oom_kills, METRIC_NA);
    assert_false(mem.above);
    assert_true(cgroup_is_shared(&g, NULL));
    close(pid);
}

static void test_v1(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct cgroup_memory mem;

    (void)state;
    put("cg/memory/cgroup.procs", "1\n");
    put("cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("cg/memory/docker/abc/memory.usage_in_bytes", "777\n");
    put("cg/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
    put("cg/memory/docker/abc/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    int pid = open_pid("9:name=systemd:/x\n4:memory,hugetlb:/docker/abc\n0::/elsewhere\n");
    assert_int_equal(cgroup_of(&m, pid, &g, NULL), 0);
    assert_int_equal(g.version, 1);
    assert_int_equal(cgroup_memory(&g, &mem, NULL), 0);
    assert_int_equal(mem.bytes, 777);
    assert_int_equal(mem.limit, METRIC_NA);
    assert_int_equal(mem.oom_kills, 5);
    put("cg/memory/docker/memory.limit_in_bytes", "4096\n");
    assert_int_equal(cgroup_memory(&g, &mem, NULL), 0);
    assert_int_equal(mem.limit, 4096);
    close(pid);
}

static void test_group_gone(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct cgroup_memory mem;
    struct err err = { 0 };

    (void)state;
    make_v2();
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    int pid = open_pid("0::/system.slice/old.service (deleted)\n");
    assert_int_equal(cgroup_of(&m, pid, &g, NULL), 0);
    assert_int_equal(cgroup_memory(&g, &mem, &err), LT_GONE);
    assert_non_null(strstr(err.text, "old.service"));
    close(pid);
}

/* ---- where things are mounted ----------------------------------------------------------------------------------- */

static void test_mountinfo(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct err err = { 0 };

    (void)state;
    /* We are in a container: only its own part of the hierarchy is mounted; the target is a process of the same container. */
    put("mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                     "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid shared:9 master:3 - cgroup cgroup rw,memory\n"
                     "36 31 0:37 /docker/abc /sys/fs/cgroup/sys\\040temd rw - cgroup cgroup rw,xattr,name=systemd\n"
                     "37 31 0:38 / /elsewhere rw - cgroup2 cgroup2 rw\n"
                     "38 31 0:39 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
                     "39 31 0:40 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    assert_int_equal(cgroup_mounts(&m, "/sys/fs/cgroup", in_tmp("mountinfo"), &err), 0);
    assert_string_equal(m.memory.dir, "/sys/fs/cgroup/memory");
    assert_string_equal(m.memory.root, "/docker/abc");
    assert_string_equal(m.systemd.dir, "/sys/fs/cgroup/sys temd");
    assert_string_equal(m.v2.dir, "/sys/fs/cgroup/unified");
    int pid = open_pid("4:memory:/docker/abc/job\n");
    assert_int_equal(cgroup_of(&m, pid, &g, &err), 0);
    assert_string_equal(g.dir, "/sys/fs/cgroup/memory/job");
    close(pid);
    pid = open_pid("4:memory:/docker/abc\n");
    assert_int_equal(cgroup_of(&m, pid, &g, &err), 0);
    assert_string_equal(g.dir, "/sys/fs/cgroup/memory");
    close(pid);
    pid = open_pid("4:memory:/docker/abcd\n"); /* another container: a name that begins alike is not inside */
    assert_int_equal(cgroup_of(&m, pid, &g, &err), LT_EUNSUPPORTED);
    close(pid);
}

/* In a cgroup namespace of our own, what lies above shows as "/..". */
static void test_cgroup_namespace(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;

    (void)state;
    put("mountinfo", "51 47 0:32 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    assert_int_equal(cgroup_mounts(&m, "/sys/fs/cgroup", in_tmp("mountinfo"), NULL), 0);
    int pid = open_pid("4:memory:/../../other\n"); /* the mount shows the whole hierarchy: reachable */
    assert_int_equal(cgroup_of(&m, pid, &g, NULL), 0);
    assert_string_equal(g.dir, "/sys/fs/cgroup/memory/other");
    close(pid);
    put("mountinfo", "51 47 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    assert_int_equal(cgroup_mounts(&m, "/sys/fs/cgroup", in_tmp("mountinfo"), NULL), 0);
    pid = open_pid("4:memory:/../../other\n"); /* the mount ends at our own group: not reachable, and not guessed */
    assert_int_equal(cgroup_of(&m, pid, &g, NULL), LT_EUNSUPPORTED);
    close(pid);
}

static void test_nothing_mounted(void **state)
{
    struct cgroup_mounts m;
    struct err err = { 0 };

    (void)state;
    assert_int_equal(cgroup_mounts(&m, harness_tmpdir(), NULL, &err), LT_ENOENT);
    put("mountinfo", "31 23 0:28 / / rw - ext4 /dev/x rw\n");
    assert_int_equal(cgroup_mounts(&m, "/sys/fs/cgroup", in_tmp("mountinfo"), &err), LT_ENOENT);
    assert_int_equal(cgroup_mounts(&m, "/sys/fs/cgroup", in_tmp("none"), &err), LT_EIO);
}

/* ---- members, units --------------------------------------------------------------------------------------------- */

static void test_pids(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct vec pids;
    struct err err = { 0 };

    (void)state;
    make_v2();
    vec_init(&pids, sizeof(int32_t), 1000);
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    assert_int_equal(cgroup_at(&m, "/system.slice/api.service/", &g, NULL), 0);
    assert_int_equal(cgroup_pids(&g, false, &pids, NULL), 0);
    assert_int_equal(pids.n, 2);
    assert_int_equal(*(int32_t *)vec_at(&pids, 1), 101);
    vec_clear(&pids);
    assert_int_equal(cgroup_pids(&g, true, &pids, NULL), 0);
    assert_int_equal(pids.n, 4);
    vec_release(&pids);
    vec_init(&pids, sizeof(int32_t), 3);
    assert_int_equal(cgroup_pids(&g, true, &pids, &err), LT_ELIMIT);
    vec_release(&pids);
}

static void test_many_pids(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct vec pids;
    struct buf b;

    (void)state;
    make_v2();
    buf_init(&b, 1 << 20);
    for (int i = 1; i <= 20000; i++)
        buf_printf(&b, "%d\n", i);
    put("cg/system.slice/api.service/cgroup.procs", b.p);
    buf_release(&b);
    vec_init(&pids, sizeof(int32_t), 30000);
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    assert_int_equal(cgroup_unit(&m, "api", &g, NULL), 0);
    assert_int_equal(cgroup_pids(&g, false, &pids, NULL), 0);
    assert_int_equal(pids.n, 20000);
    for (int i = 0; i < 20000; i++)
        assert_int_equal(*(int32_t *)vec_at(&pids, (size_t)i), i + 1);
    vec_release(&pids);
}

static void test_units(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct err err = { 0 };

    (void)state;
    make_v2();
    put("cg/user.slice/user-1000.slice/user@1000.service/app.slice/chat.service/cgroup.procs", "5\n");
    put("cg/a.slice/twice.service/cgroup.procs", "6\n");
    put("cg/b.slice/twice.service/cgroup.procs", "7\n");
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    assert_int_equal(cgroup_unit(&m, "api.service", &g, &err), 0);
    assert_string_equal(g.path, "/system.slice/api.service");
    assert_int_equal(cgroup_unit(&m, "chat", &g, &err), 0);
    assert_string_equal(g.path, "/user.slice/user-1000.slice/user@1000.service/app.slice/chat.service");
    assert_int_equal(cgroup_unit(&m, "twice", &g, &err), LT_EAMBIG);
    assert_int_equal(cgroup_unit(&m, "none", &g, &err), LT_ENOENT);
    assert_int_equal(cgroup_unit(&m, "../etc", &g, &err), LT_EUSAGE);
    assert_int_equal(cgroup_at(&m, "/system.slice/../..", &g, &err), LT_ENOENT);
    assert_int_equal(cgroup_at(&m, in_tmp("cg/a.slice"), &g, &err), 0); /* as a folder */
    assert_string_equal(g.path, "/a.slice");
}

static void test_shared(void **state)
{
    static const struct { const char *path; bool shared; } cases[] = {
        { "/", true },
        { "/system.slice", true },
        { "/user.slice/user-0.slice/session-3.scope", true },
        { "/init.scope", true },
        { "/user.slice/user-0.slice/user@0.service", true },
        { "/system.slice/api.service", false },
        { "/docker/0123", false },
        { "/user.slice/user-0.slice/user@0.service/app.slice/run-r1.scope", false },
    };
    struct cgroup g = { .version = 2, .mount_len = 3 }, own = { .version = 2, .mount_len = 3 };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        str_copy(g.path, sizeof g.path, cases[i].path);
        str_fmt(g.dir, sizeof g.dir, "/cg%s", str_eq(cases[i].path, "/") ? "" : cases[i].path);
        if (cgroup_is_shared(&g, NULL) != cases[i].shared)
            fail_msg("%s", cases[i].path);
    }
    own = g;
    assert_true(cgroup_is_shared(&g, &own)); /* we are in it ourselves */
}

static void test_parse(void **state)
{
    static const char *const malformed[] = { "4", "4:memory", "4:memory:relative", "4:memory:" };
    char out[CGROUP_PATH_MAX], text[CGROUP_PATH_MAX + 64];
    int64_t v;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(malformed); i++)
        assert_int_equal(cgroup_parse(malformed[i], strlen(malformed[i]), "memory", out), LT_EPARSE);
    assert_int_equal(cgroup_parse("0::/a:b\n", 8, "", out), 0); /* colons belong to the path */
    assert_string_equal(out, "/a:b");
    assert_int_equal(cgroup_parse("3:cpu,cpuacct:/x\n", 17, "memory", out), LT_ENOENT);
    assert_int_equal(cgroup_parse("", 0, "", out), LT_ENOENT);
    memset(text, 'x', sizeof text);
    memcpy(text, "0::/", 4);
    assert_int_equal(cgroup_parse(text, sizeof text, "", out), LT_EPARSE);
    assert_int_equal(cgroup_parse_limit("max\n", 4, &v), 0);
    assert_int_equal(v, METRIC_NA);
    assert_int_equal(cgroup_parse_limit("0\n", 2, &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(cgroup_parse_limit("18446744073709551615\n", 21, &v), 0);
    assert_int_equal(v, METRIC_NA);
    assert_int_equal(cgroup_parse_limit("-1\n", 3, &v), LT_EPARSE);
    assert_int_equal(cgroup_parse_limit("", 0, &v), LT_EPARSE);
    assert_int_equal(cgroup_parse_limit("12k", 3, &v), LT_EPARSE);
}

/* ---- this machine ----------------------------------------------------------------------------------------------- */

static bool has_pid(const struct vec *pids, pid_t pid)
{
    VEC_EACH(const int32_t, p, pids)
        if (*p == pid)
            return true;
    return false;
}

static void test_this_process(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    struct cgroup_memory mem;
    struct vec pids;
    struct err err = { 0 };

    (void)state;
    if (cgroup_mounts(&m, "/sys/fs/cgroup", "/proc/self/mountinfo", &err))
        skip();
    int pid = fd_open(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY, 0);
    int r = cgroup_of(&m, pid, &g, &err);
    close(pid);
    if (r == LT_EUNSUPPORTED)
        skip();
    assert_int_equal(r, 0);
    assert_int_equal(cgroup_memory(&g, &mem, &err), 0);
    assert_true(mem.bytes == METRIC_NA || mem.bytes > 0);
    vec_init(&pids, sizeof(int32_t), 1 << 20);
    assert_int_equal(cgroup_pids(&g, false, &pids, &err), 0);
    assert_true(has_pid(&pids, getpid()));
    assert_true(cgroup_is_shared(&g, &g));
    vec_release(&pids);
}

static void test_process_gone(void **state)
{
    struct cgroup_mounts m;
    struct cgroup g;
    char path[64];

    (void)state;
    make_v2();
    assert_int_equal(cgroup_mounts(&m, in_tmp("cg"), NULL, NULL), 0);
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    str_fmt(path, sizeof path, "/proc/%d", (int)pid);
    int dir = fd_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(cgroup_of(&m, dir, &g, NULL), LT_GONE);
    close(dir);
}

HARNESS_MAIN(CASE(test_v2), CASE(test_v2_no_limit_and_no_controller_below), CASE(test_v1), CASE(test_group_gone),
             CASE(test_mountinfo), CASE(test_cgroup_namespace), CASE(test_nothing_mounted), CASE(test_pids), CASE(test_many_pids),
             CASE(test_units), CASE(test_shared), CASE(test_parse), CASE(test_this_process), CASE(test_process_gone))
