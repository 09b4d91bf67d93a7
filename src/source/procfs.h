/* One function per /proc file, relative to a held directory fd: a recycled pid cannot be read by mistake.
 *
 * A directory fd of /proc/PID belongs to that process for good. While it is a zombie, statm is all zeros and stat says Z;
 * once it is reaped every read fails (ESRCH; ENOENT for the folders), also when the number has been given to another process.
 * Results: 0; LT_GONE (ESRCH, ENOENT); LT_EPERM; LT_ELIMIT (no descriptor left); LT_EPARSE (cut short or garbage); LT_EIO.
 *
 * Never opened: maps, smaps, smaps_rollup, pagemap (they take the target's mmap lock), task/PID/children (misses the
 * children of other threads). stat's rss (field 24) is not offered: it is wrong on kernels since 6.2, statm is right.
 */
#ifndef LT_SOURCE_PROCFS_H
#define LT_SOURCE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/sample.h"

struct proc_stat {
    int32_t pid, ppid, pgrp, sid;
    char state;               /* 'R', 'S', 'Z' ... */
    bool kernel_thread;
    bool permitted;           /* false: the kernel hid addresses and exit_code from us (startcode is 1) */
    char comm[COMM_MAX];      /* raw: may hold any byte but NUL; cut at 15 */
    uint64_t start;           /* ticks after boot */
    uint64_t minflt, majflt;
    uint64_t cpu_ticks;       /* utime + stime */
    int32_t threads;
    int32_t exit_code;        /* wait status; of a zombie that we are permitted to see; -1 when the kernel gives none */
};

struct proc_statm {
    int64_t size, resident, shared; /* pages */
};

/* METRIC_NA where the kernel has no such line. */
struct proc_status {
    int64_t rss_shmem, swap;  /* bytes */
    int32_t ns_depth;         /* pid namespaces the process is in, as seen from ours: 1 = ours; 0 unknown */
    int32_t ns_pid;           /* its pid in the innermost one; 0 unknown */
};

/* Parsers, for tests and fuzzing. text need not be NUL-terminated. */
int procfs_parse_stat(const char *text, size_t len, struct proc_stat *ret);
int procfs_parse_statm(const char *text, size_t len, struct proc_statm *ret);
int procfs_parse_status(const char *text, size_t len, struct proc_status *ret);

/* The /proc/PID folder: a descriptor, or an LT code. proc_fd: of /proc itself. */
int procfs_open_pid(int proc_fd, int32_t pid);

int procfs_stat(int pid_dirfd, struct proc_stat *ret);
int procfs_statm(int pid_dirfd, struct proc_statm *ret);
int procfs_status(int pid_dirfd, struct proc_status *ret);
int procfs_statm_kept(int statm_fd, struct proc_statm *ret);    /* one pread of an open statm */
/* By number, for processes not held: whoever has it now. */
int procfs_stat_of(int proc_fd, int32_t pid, struct proc_stat *ret);

/* Arguments, each ended by NUL, at most size-1 bytes (the rest is cut); *ret_len 0 for kernel threads and zombies. */
int procfs_cmdline(int pid_dirfd, char *out, size_t size, size_t *ret_len);
int procfs_cmdline_of(int proc_fd, int32_t pid, char *out, size_t size, size_t *ret_len);

/* Descriptors open: the size of the fd folder when `by_size`, else by reading it. */
int procfs_fd_count(int pid_dirfd, bool by_size, int64_t *ret);
int procfs_fd_count_kept(int fd_folder, int64_t *ret);       /* by size, of the open folder (O_PATH) */
/* Threads: the links of the task folder, less its own two. task_folder: open, or -1: below pid_dirfd. */
int procfs_threads(int pid_dirfd, int task_folder, int64_t *ret);
/* Whether this kernel gives the count as the size of the fd folder (6.2 and later): compares on ourselves. */
bool procfs_fd_size_works(int proc_fd);

/* The folder of a thread that is not the first one: for a process whose first thread has ended while others run, its own
 * folder is as empty as a zombie's. A descriptor, or LT_GONE when there is no other thread. */
int procfs_open_thread(int pid_dirfd, int32_t pid);

/* sys/kernel/random/boot_id; when it cannot be read, the time of boot takes its place. */
int procfs_boot_id(int proc_fd, uint8_t ret[16]);

/* CPU time of a running process of our own pid namespace, by its number, exact: ns, or -1. No file is read. */
int64_t procfs_cpu_clock_ns(int32_t pid);

/* LT code of a negative errno. */
int procfs_code(ssize_t negative_errno);

#endif
