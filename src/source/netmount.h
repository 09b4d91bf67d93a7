/* File systems that ask somebody else for every look: network ones, and those that a program serves (FUSE). When the server is
 * dead, or means harm, whoever looks into one waits for ever, and no budget helps. The mount table tells where they are
 * without asking them.
 *
 * A path is risky when one of them is mounted on it or on a folder above it, by name, as the process sees it. The process's
 * own root is left out: rootless containers have a FUSE root, and a service whose root is dead has no temp files to count.
 * Names do not show where symbolic links lead, so when any such file system is mounted, paths must be opened without
 * following any (`must_be_plain`).
 */
#ifndef LT_SOURCE_NETMOUNT_H
#define LT_SOURCE_NETMOUNT_H

#include <stdbool.h>
#include <stddef.h>

struct netmount {
    int path;             /* index of a risky path, -1: none of them is */
    char type[32];        /* of what is mounted there: "nfs4", "fuse.sshfs" */
    bool must_be_plain;   /* there is such a file system somewhere: open paths without following links */
};

/* Looks the paths up in the mount table of the process. 0, LT_GONE, LT_EPERM, LT_EIO. No mount table (a tree made for tests): none. */
int netmount_find(int pid_dirfd, const char *const *paths, size_t n, struct netmount *ret);

/* Whether the path has no ".." in it, which would lead elsewhere than its name says. */
bool netmount_is_plain(const char *path);

/* For tests and fuzzing: one line of mountinfo. */
void netmount_line(const char *line, size_t len, const char *const *paths, size_t n, struct netmount *ret);

#endif
