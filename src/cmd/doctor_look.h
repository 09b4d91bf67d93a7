/* A minute's samples of one process tree in memory: what doctor watches instead of a store. */
#ifndef LT_CMD_DOCTOR_LOOK_H
#define LT_CMD_DOCTOR_LOOK_H

#include "base/base.h"
#include "output/output.h"
#include "series/series.h"
#include "source/source.h"

#define LOOK_MISSING_MAX 8

struct look_row { int64_t ts_ns; struct sample sample; };

/* One key of a histogram of one life; `seen` are numbers of looks (sweeps that brought histograms). */
struct look_key { int64_t life_id; const char *what; uint32_t key; int64_t first, last; size_t first_look, last_look; };

struct look {
    struct vec lives;          /* struct life_row; its id is its index + 1 */
    struct vec rows;           /* struct look_row */
    struct vec keys;           /* struct look_key */
    struct strset *names;      /* of the keys */
    struct vec changes;        /* struct output_change */
    int64_t sweep_ns;
    size_t looks;              /* histogram looks so far */
    bool brought;              /* this sweep brought histogram rows */
    bool full;
    char missing_text[LOOK_MISSING_MAX][200];
    const char *missing[LOOK_MISSING_MAX + 1];
    size_t nmissing;
};

int look_init(struct look *l);
void look_release(struct look *l);
struct watch_sink look_sink(struct look *l);
/* Keeps a sweep's rows: 0, LT_ELIMIT when as many as are kept are there (the look then ends early), LT_ENOMEM. */
int look_put(struct look *l, const struct sweep *sweep);
int look_series(struct look *l, const char *name, struct series **ret);
/* What changed between the first and the last look at descriptors, into l->changes, biggest growth first. */
int look_changes(struct look *l);

#endif
