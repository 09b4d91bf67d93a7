#include "source/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "source/folder.h"

#define STAT_SIZE 2048        /* 52 numbers of at most 20 digits and a comm of at most 64 bytes */
#define STATUS_SIZE 8192
#define STAT_FIELDS 52
#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD, of the flags in stat */

int procfs_code(ssize_t negative_errno)
{
    switch (-negative_errno) {
    case ESRCH:
    case ENOENT:
        return LT_GONE;
    case EACCES:
    case EPERM:
        return LT_EPERM;
    case EMFILE:
    case ENFILE:
        return LT_ELIMIT;
    case ENOMEM:
        return LT_ENOMEM;
    case EFBIG:
        return LT_EPARSE;
    default:
        return LT_EIO;
    }
}

/* ---- parsers --------------------------------------------------------------------------------------------------- */

struct cursor { const char *p, *end; };

/* The next decimal number, blanks before it skipped; a minus sign gives its two's complement. False at the end or on garbage. */
static bool next_number(struct cursor *c, uint64_t *ret)
{
    bool negative = false;
    uint64_t v = 0;
    const char *p = c->p;

    while (p < c->end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < c->end && *p == '-') {
        negative = true;
        p++;
    }
    if (p == c->end || *p < '0' || *p > '9')
        return false;
    for (; p < c->end && *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, UINT64_C(10), &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    /* A number cut by the end of what was read is not a number. */
    if (p == c->end || (*p != ' ' && *p != '\n' && *p != '\t'))
        return false;
    c->p = p;
    *ret = negative ? -v : v;
    return true;
}

static bool fits_int32(uint64_t v)
{
    return (int64_t)v >= INT32_MIN && (int64_t)v <= INT32_MAX;
}

/* comm stands between the first '(' and the last ')': it may hold both, blanks and line ends. */
static const char *take_comm(const char *text, size_t len, char comm[COMM_MAX])
{
    const char *open = memchr(text, '(', len);
    const char *close = memrchr(text, ')', len);
    size_t n;

    if (!open || !close || close < open)
        return NULL;
    n = MIN((size_t)(close - open - 1), (size_t)COMM_MAX - 1);
    memcpy(comm, open + 1, n);
    comm[n] = '\0';
    return close + 1;
}

int procfs_parse_stat(const char *text, size_t len, struct proc_stat *ret)
{
    struct proc_stat s = { 0 };
    uint64_t f[STAT_FIELDS + 1] = { 0 }; /* by proc(5)'s numbers: f[4] is ppid */
    struct cursor c = { text, text + len };
    int i;

    if (!next_number(&c, &f[1]))
        return LT_EPARSE;
    c.p = take_comm(text, len, s.comm);
    if (!c.p || c.end - c.p < 3 || c.p[0] != ' ' || c.p[2] != ' ')
        return LT_EPARSE;
    s.state = c.p[1];
    c.p += 2;
    for (i = 4; i <= STAT_FIELDS && next_number(&c, &f[i]); i++)
        ;
    /* start is the identity: without it the line is of no use. */
    if (i <= 22 || !fits_int32(f[1]) || !fits_int32(f[4]) || !fits_int32(f[5]) || !fits_int32(f[6]) || !fits_int32(f[20]))
        return LT_EPARSE;
    s.pid = (int32_t)f[1];
    s.ppid = (int32_t)f[4];
    s.pgrp = (int32_t)f[5];
    s.sid = (int32_t)f[6];
    s.kernel_thread = f[9] & KERNEL_THREAD;
    s.minflt = f[10];
    s.majflt = f[12];
    s.cpu_ticks = f[14] + f[15];
    s.threads = (int32_t)f[20];
    s.start = f[22];
    s.permitted = i > 26 && f[26] != 1;
    s.exit_code = i > 52 ? (int32_t)f[52] : -1;
    *ret = s;
    return 0;
}

int procfs_parse_statm(const char *text, size_t len, struct proc_statm *ret)
{
    struct cursor c = { text, text + len };
    uint64_t size, resident, shared;

    if (!next_number(&c, &size) || !next_number(&c, &resident) || !next_number(&c, &shared))
        return LT_EPARSE;
    /* 2^50 pages are more than any address space: garbage must not overflow later. */
    if ((size | resident | shared) >> 50)
        return LT_EPARSE;
    *ret = (struct proc_statm){ (int64_t)size, (int64_t)resident, (int64_t)shared };
    return 0;
}

/* "RssShmem:    1024 kB": bytes. */
static int64_t kb_value(struct cursor c)
{
    uint64_t kb;

    return next_number(&c, &kb) && !(kb >> 50) ? (int64_t)(kb * 1024) : METRIC_NA;
}

/* "NSpid: 4711 12 1" (tabs between them): how many, and the last. */
static void ns_pids(struct cursor c, struct proc_status *s)
{
    uint64_t v;

    while (next_number(&c, &v) && fits_int32(v)) {
        s->ns_depth++;
        s->ns_pid = (int32_t)v;
    }
}

int procfs_parse_status(const char *text, size_t len, struct proc_status *ret)
{
    struct proc_status s = { METRIC_NA, METRIC_NA, 0, 0 };
    const char *p = text, *end = text + len;
    bool any = false;

    while (p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl + 1 : end) - p);

        if (n > 9 && !memcmp(p, "RssShmem:", 9))
            s.rss_shmem = kb_value((struct cursor){ p + 9, p + n });
        else if (n > 7 && !memcmp(p, "VmSwap:", 7))
            s.swap = kb_value((struct cursor){ p + 7, p + n });
        else if (n > 6 && !memcmp(p, "NSpid:", 6))
            ns_pids((struct cursor){ p + 6, p + n }, &s);
        any |= n > 5 && !memcmp(p, "Name:", 5);
        p += n;
    }
    if (!any)
        return LT_EPARSE;
    *ret = s;
    return 0;
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

#define PATH_SIZE 40

/* Appends a number; a hand-made itoa, since this is done for every process of the host. Returns behind it. */
static char *put_pid(char *out, int32_t pid)
{
    char digits[12];
    int n = 0;
    uint32_t v = (uint32_t)pid;

    do {
        digits[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n)
        *out++ = digits[--n];
    *out = '\0';
    return out;
}

/* "123/stat" */
static void pid_path(char out[PATH_SIZE], int32_t pid, const char *after)
{
    char *p = put_pid(out, pid);

    str_copy(p, PATH_SIZE - (size_t)(p - out), after);
}

int procfs_open_pid(int proc_fd, int32_t pid)
{
    char path[PATH_SIZE];
    int fd;

    if (pid <= 0)
        return LT_GONE;
    pid_path(path, pid, "");
    fd = fd_open(proc_fd, path, O_RDONLY | O_DIRECTORY, 0);
    return fd < 0 ? procfs_code(fd) : fd;
}

static int read_stat(int dirfd, const char *path, struct proc_stat *ret)
{
    char text[STAT_SIZE];
    ssize_t n = fd_read_at(dirfd, path, text, sizeof text);

    return n < 0 ? procfs_code(n) : procfs_parse_stat(text, (size_t)n, ret);
}

int procfs_stat(int pid_dirfd, struct proc_stat *ret)
{
    return read_stat(pid_dirfd, "stat", ret);
}

int procfs_stat_of(int proc_fd, int32_t pid, struct proc_stat *ret)
{
    char path[PATH_SIZE];

    pid_path(path, pid, "/stat");
    return read_stat(proc_fd, path, ret);
}

int procfs_statm(int pid_dirfd, struct proc_statm *ret)
{
    char text[256];
    ssize_t n = fd_read_at(pid_dirfd, "statm", text, sizeof text);

    return n < 0 ? procfs_code(n) : procfs_parse_statm(text, (size_t)n, ret);
}

int procfs_statm_kept(int statm_fd, struct proc_statm *ret)
{
    char text[256];
    ssize_t n = fd_pread0(statm_fd, text, sizeof text);

    return n < 0 ? procfs_code(n) : procfs_parse_statm(text, (size_t)n, ret);
}

int procfs_status(int pid_dirfd, struct proc_status *ret)
{
    char text[STATUS_SIZE];
    ssize_t n = fd_read_at(pid_dirfd, "status", text, sizeof text);

    /* Cut short (thousands of groups): what there is of it holds what we want or says METRIC_NA. */
    if (n == -EFBIG)
        n = sizeof text - 1;
    return n < 0 ? procfs_code(n) : procfs_parse_status(text, (size_t)n, ret);
}

static int read_cmdline(int dirfd, const char *path, char *out, size_t size, size_t *ret_len)
{
    ssize_t n = fd_read_at(dirfd, path, out, size);

    if (n == -EFBIG)
        n = (ssize_t)size - 1;
    if (n < 0)
        return procfs_code(n);
    *ret_len = (size_t)n;
    return 0;
}

int procfs_cmdline(int pid_dirfd, char *out, size_t size, size_t *ret_len)
{
    return read_cmdline(pid_dirfd, "cmdline", out, size, ret_len);
}

int procfs_cmdline_of(int proc_fd, int32_t pid, char *out, size_t size, size_t *ret_len)
{
    char path[PATH_SIZE];

    pid_path(path, pid, "/cmdline");
    return read_cmdline(proc_fd, path, out, size, ret_len);
}

/* ---- folders ---------------------------------------------------------------------------------------------------- */

static int count_entries(int pid_dirfd, int64_t *ret)
{
    _cleanup_fd_ int fd = fd_open(pid_dirfd, "fd", O_RDONLY | O_DIRECTORY, 0);
    struct folder_entry e;
    struct folder f;
    int64_t n = 0;
    int r;

    if (fd < 0)
        return procfs_code(fd);
    folder_init(&f, fd);
    while ((r = folder_next(&f, &e)) > 0)
        n += e.name[0] != '.';
    if (r < 0)
        return procfs_code(r);
    *ret = n;
    return 0;
}

int procfs_fd_count(int pid_dirfd, bool by_size, int64_t *ret)
{
    struct stat st;

    if (!by_size)
        return count_entries(pid_dirfd, ret);
    if (fstatat(pid_dirfd, "fd", &st, 0) < 0)
        return procfs_code(-errno);
    *ret = st.st_size;
    return 0;
}

int procfs_fd_count_kept(int fd_folder, int64_t *ret)
{
    struct stat st;

    if (fstat(fd_folder, &st) < 0)
        return procfs_code(-errno);
    *ret = st.st_size;
    return 0;
}

int procfs_threads(int pid_dirfd, int task_folder, int64_t *ret)
{
    struct stat st;

    if ((task_folder >= 0 ? fstat(task_folder, &st) : fstatat(pid_dirfd, "task", &st, 0)) < 0)
        return procfs_code(-errno);
    if (st.st_nlink < 3)
        return LT_GONE; /* no thread is left */
    *ret = (int64_t)st.st_nlink - 2;
    return 0;
}

bool procfs_fd_size_works(int proc_fd)
{
    _cleanup_fd_ int self = fd_open(proc_fd, "self", O_RDONLY | O_DIRECTORY, 0);
    int64_t by_size, by_reading;

    if (self < 0 || procfs_fd_count(self, true, &by_size) < 0 || procfs_fd_count(self, false, &by_reading) < 0)
        return false;
    /* Reading the folder takes a descriptor of its own. */
    return by_size > 0 && by_size + 1 == by_reading;
}

int procfs_open_thread(int pid_dirfd, int32_t pid)
{
    _cleanup_fd_ int fd = fd_open(pid_dirfd, "task", O_RDONLY | O_DIRECTORY, 0);
    struct folder_entry e;
    struct folder f;

    if (fd < 0)
        return procfs_code(fd);
    folder_init(&f, fd);
    while (folder_next(&f, &e) > 0) {
        int32_t tid = folder_pid(e.name);
        int dir = tid && tid != pid ? fd_open(fd, e.name, O_RDONLY | O_DIRECTORY, 0) : -1;

        if (dir >= 0)
            return dir;
    }
    return LT_GONE;
}

/* ---- the host --------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "8c9f0e1a-...": 32 digits with dashes between. */
static bool parse_uuid(const char *s, uint8_t ret[16])
{
    int n = 0;

    for (; *s && n < 32; s++) {
        int d = hex_digit(*s);

        if (*s == '-')
            continue;
        if (d < 0)
            return false;
        ret[n / 2] = (uint8_t)(n % 2 ? ret[n / 2] | d : d << 4);
        n++;
    }
    return n == 32;
}

int procfs_boot_id(int proc_fd, uint8_t ret[16])
{
    char text[128];
    int64_t boot_s;

    if (fd_read_at(proc_fd, "sys/kernel/random/boot_id", text, sizeof text) > 0 && parse_uuid(text, ret))
        return 0;
    /* Whole seconds, rounded: the difference of the two clocks wavers by microseconds. */
    boot_s = (clock_wall_ns() - clock_boot_ns() + NS_PER_S / 2) / NS_PER_S;
    memset(ret, 0, 16);
    memcpy(ret, &boot_s, sizeof boot_s);
    return 0;
}

int64_t procfs_cpu_clock_ns(int32_t pid)
{
    /* As clock_getcpuclockid(3) makes it, without its extra system call: process clock, scheduler time. */
    clockid_t id = (clockid_t)(~(uint32_t)pid << 3 | 2u);
    struct timespec ts;

    if (clock_gettime(id, &ts) < 0)
        return -1;
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}
