/* Who a process is: {boot_id, pid, start}. A bare pid never crosses a function border. */
#ifndef LT_BASE_LIFE_H
#define LT_BASE_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PID_UNKNOWN (-1) /* of an imported curve that names no pid; shown as "-", null in JSON */

struct life_key {
    uint8_t boot_id[16]; /* of /proc/sys/kernel/random/boot_id; all zero for imported curves */
    int32_t pid;         /* as seen from our pid namespace; 0: the row of the target as a whole */
    uint64_t start;      /* clock ticks after boot (stat field 22); imported curves: epoch ns of the life's start */
};

/* How a life ended. The order is that of FORMAT.md: append only. */
#define LIFE_ENDS(X) \
    X(RUNNING, "running", "still running") \
    X(EXITED, "exit", "ended with an exit code") \
    X(SIGNALED, "signal", "killed by a signal") \
    X(OOM, "oom", "killed by the kernel for memory") \
    X(VANISHED, "vanished", "gone between two looks; how is not known") \
    X(UNWATCHED, "unwatched", "the watch ended while it ran") \
    X(REBOOT, "reboot", "the machine was restarted") \
    X(IMPORTED, "imported", "end of an imported curve")

enum life_end_cause {
#define X(id, name, title) LIFE_##id,
    LIFE_ENDS(X)
#undef X
    LIFE_END_N
};

static inline bool life_key_eq(const struct life_key *a, const struct life_key *b)
{
    return a->pid == b->pid && a->start == b->start && !memcmp(a->boot_id, b->boot_id, sizeof a->boot_id);
}

const char *life_end_name(enum life_end_cause c);

#endif
