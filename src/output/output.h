/* Renders verdicts; computes nothing. Text is for people and fits 100 columns; JSON has the keys of contract.md. */
#ifndef LT_OUTPUT_OUTPUT_H
#define LT_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "verdict/verdict.h"

struct json_t;

struct output_options {
    bool colored;
    bool explain;     /* every number that led to the verdict */
};

/* Appends to out: 0, LT_ENOMEM or LT_ELIMIT. */
int output_text(struct buf *out, const struct verdict *v, const struct output_options *o);
/* The `diagnose` document, a new reference; NULL when out of memory. */
struct json_t *output_json(const struct verdict *v, bool explain);

/* ---- doctor: what a minute's look adds ------------------------------------------------------------------------- */

/* A path, a peer or a kind of descriptor whose count changed. */
struct output_change { const char *what; const char *key; int64_t before, after; };

struct output_doctor {
    int32_t pid;
    const char *name;             /* of the process, printable */
    double seconds;
    size_t processes;             /* of its tree at the end */
    const struct output_change *changes; /* biggest growth first */
    size_t n;
    const char *const *missing;   /* what could not be looked at, and what it takes; NULL-terminated */
};

int output_doctor_text(struct buf *out, const struct verdict *v, const struct output_doctor *d, const struct output_options *o);
struct json_t *output_doctor_json(const struct verdict *v, const struct output_doctor *d);

#endif
