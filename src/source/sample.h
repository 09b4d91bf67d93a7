/* A sample: one reading of one process (or of a target as a whole) at one time. */
#ifndef LT_SOURCE_SAMPLE_H
#define LT_SOURCE_SAMPLE_H

#include "base/life.h"
#include "base/metric.h"

#define COMM_MAX 16
#define ROLE_MAX 96

/* What is known of a life when it is first seen. Strings are NUL-terminated, printable (str_printable). */
struct life_info {
    struct life_key key;
    int32_t ppid;
    int64_t target_id;         /* the store's id of its target */
    int64_t start_wall_ns;     /* boot time + start */
    char comm[COMM_MAX];
    char role[ROLE_MAX];       /* program and first arguments that name the job ("gunicorn: worker [app]"), no secrets */
};

/* How it ended. */
struct life_end {
    int64_t wall_ns;
    enum life_end_cause cause;
    int32_t exit_code;         /* valid for LIFE_EXITED */
    int32_t signal;            /* valid for LIFE_SIGNALED and LIFE_OOM */
};

/* One row of a sweep. */
struct sample {
    int64_t life_id;           /* the store's id */
    int64_t v[METRIC_N];       /* METRIC_NA where not measured */
};

/* All rows read in one tick. */
struct sweep {
    int64_t wall_ns;
    size_t n;
    const struct sample *rows;
    size_t processes;          /* of n: the others are the targets' own rows */
};

static inline void sample_blank(struct sample *s)
{
    for (int i = 0; i < METRIC_N; i++)
        s->v[i] = METRIC_NA;
}

#endif
