/* Verbs and their options: one table each. Help, man pages, completion and the YAML keys come from these tables.
 *
 * A verb is one file cmd/VERB.c ending in `const struct cmd cmd_VERB`; cmd.c lists them. Only cmd/ prints.
 */
#ifndef LT_CMD_CMD_H
#define LT_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum opt_type { OPT_FLAG, OPT_STRING, OPT_INT, OPT_DURATION, OPT_SIZE, OPT_TIME, OPT_PATH, OPT_CHOICE };

/* One option: written --name VALUE or --name=VALUE; in YAML `name: value`, a list where `many`. */
struct opt {
    const char *name;      /* "interval" */
    char letter;           /* 'o' for -o, 0: none */
    enum opt_type type;
    const char *arg;       /* "DURATION"; for OPT_CHOICE the choices "a|b|c" */
    const char *preset;    /* shown and used when not given; NULL: none */
    const char *help;      /* one sentence */
    bool many;             /* may be given more than once */
};

struct opt_value { const struct opt *opt; const char *text; int64_t num; }; /* num: ns, bytes, integer or 1; wall ns for OPT_TIME */

struct args {
    const char *verb;
    const char *const *pos;      /* positional arguments */
    size_t npos;
    const struct opt_value *values;
    size_t nvalues;
    bool json;                   /* --json */
    const char *db;              /* --db, NULL: the default */
    bool quiet, verbose;
};

const char *args_str(const struct args *a, const char *name);              /* the last one given, else the preset, else NULL */
int64_t args_num(const struct args *a, const char *name, int64_t fallback);
bool args_flag(const struct args *a, const char *name);
/* The next of a `many` option after *pos (starts at 0), NULL at the end. */
const char *args_next(const struct args *a, const char *name, size_t *pos);

struct cmd_pos { const char *name; const char *complete; bool optional, many; }; /* complete: target|pid|file|folder|none */

struct cmd {
    const char *name;            /* "watch", "store verify" */
    const char *brief;           /* one line */
    const char *description;     /* paragraphs for the man page, blank-line separated, plain text */
    const char *const *examples; /* pairs: command line, what it does; NULL-terminated. They run as tests. */
    const struct cmd_pos *pos;   /* ends with a NULL name */
    const struct opt *opts;      /* ends with a NULL name; the common ones (--json --db --config --quiet ...) are not repeated */
    /* Exit status of contract.md: 0, 1, 2, 3. A negative LT_E* (with *err filled) makes main print it and exit as err_exit_status. */
    int (*run)(const struct args *args, struct err *err);
    bool hidden;                 /* not on the help page, no man page of its own */
};

extern const struct cmd *const cmds[]; /* NULL-terminated, in the order of the help page */
const struct cmd *cmd_find(const char *name);
/* The whole program: finds the verb, parses, runs, prints the one error line. Returns the exit status. */
int cmd_main(int argc, char *const *argv);

/* Stop requests: SIGINT, SIGTERM, SIGHUP. The first call of any of the three takes the signals over; before that, and in
 * verbs that never ask, they end the process as usual. */
bool cmd_stopped(void);
int cmd_signal_fd(void);                 /* readable for good once stopped; for poll loops */
int cmd_wait_until(int64_t mono_ns);     /* 0 when the time has come, LT_EINTR when stopped first */

/* "what: why of errnum; remedy": a failed system call as the one line a user sees. Returns the code err_errno gives. */
int cmd_errno(struct err *err, int errnum, const char *what, const char *remedy);

struct store;
/* The store's path: --db, else the environment's LOWTIDE_DB, else the default of this user (its folder made when `create`). */
int cmd_db_path(const struct args *args, bool create, char *out, size_t size, struct err *err);
/* Opens the store args name (or the default) for reading; LT_ENOENT says how to make one. Warns on stderr of damage. */
int cmd_open_store(const struct args *args, struct store **ret, struct err *err);
int cmd_open_store_to_write(const struct args *args, struct store **ret, struct err *err); /* STORE_WRITE */

struct json_t;
/* Prints one JSON document (indented, one trailing newline) on stdout and drops the reference; LT_ENOMEM when doc is NULL. */
int cmd_print_json(struct json_t *doc, struct err *err);
struct json_t *cmd_json_time(int64_t wall_ns); /* RFC 3339 UTC, null for CLOCK_INVALID */
/* Text that others wrote (paths, names, selectors): made printable first, since a JSON string takes valid UTF-8 only. */
struct json_t *cmd_json_text(const char *text);

#endif
