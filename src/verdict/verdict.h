/* PURE: findings in, decisions out. Why, in one plain sentence, and the next command to type.
 *
 * Trust is the product: a leak is said only where the growth went on evenly, after the warm-up, by many quanta, in both
 * halves, and did not come back; otherwise it is suspect, and what would settle it is said. Missing data is never ok.
 */
#ifndef LT_VERDICT_VERDICT_H
#define LT_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/analysis.h"

/* id, name, exit status, weight (the target gets the verdict of the heaviest series), title */
#define VERDICTS(X) \
    X(OK, "ok", 0, 0, "nothing grows") \
    X(BOUNDED, "bounded", 0, 1, "grew to a level and stays there") \
    X(RETENTION, "retention", 0, 2, "kept by the allocator, not by the program") \
    X(STEP, "step", 0, 3, "jumped once and is flat before and after") \
    X(LEAK, "leak", 1, 7, "grows with the work and does not come back") \
    X(EXTERNAL, "external", 1, 6, "what is left outside the process grows from restart to restart") \
    X(SUSPECT, "suspect", 3, 5, "grows, but it is too early to say") \
    X(INSUFFICIENT, "insufficient", 3, 4, "not enough data to say")

enum verdict_id {
#define X(id, name, exit_status, weight, title) VERDICT_##id,
    VERDICTS(X)
#undef X
    VERDICT_N
};

#define CLASSES(X) \
    X(FLAT, "flat") X(DIURNAL, "diurnal") X(STEP, "step") X(BOUNDED, "bounded") X(RETENTION, "retention") \
    X(CREEP, "creep") X(SAWTOOTH, "sawtooth") X(STAIR, "stair") X(EXTERNAL, "external") X(COUNT, "count")

enum class_id {
#define X(id, name) CLASS_##id,
    CLASSES(X)
#undef X
    CLASS_N
};

const char *verdict_name(enum verdict_id v);
const char *verdict_title(enum verdict_id v);
int verdict_exit_status(enum verdict_id v);
const char *class_name(enum class_id c);

struct series_verdict {
    const struct finding *finding;
    enum verdict_id verdict;
    enum class_id class;
    bool decides;              /* counts for the target (a series whose story another tells better does not) */
    struct interval per_hour, per_kreq; /* to show: the finding's, or, where restarts hide the growth, that within lives */
    char shape[64];            /* "flat", "rises evenly", "rises, then flat" ... */
    char reason[320];
    char next[160];            /* what would settle it; "" when there is nothing to do */
};

struct verdict {
    const struct analysis *analysis;
    enum verdict_id verdict;
    enum class_id class;
    size_t named;              /* the series the reason speaks of; SIZE_MAX: none */
    char reason[640];
    char next[256];
    size_t n;
    struct series_verdict series[METRIC_N];
};

/* 0 or LT_ENOMEM. The analysis (and its series) must outlive the verdict. */
int verdict_decide(struct verdict **ret, const struct analysis *a);
void verdict_free(struct verdict *v);
static inline void verdict_freep(struct verdict **v) { verdict_free(*v); }
#define _cleanup_verdict_ __attribute__((cleanup(verdict_freep)))

#endif
