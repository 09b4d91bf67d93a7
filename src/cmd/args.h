/* From argv and the config file to struct args. Everything is checked against the verb's tables before the verb runs.
 *
 * Order of what wins: the command line, then the config file's section of the verb, then its top-level keys, then the
 * preset of the table. For a `many` option the winning level's whole list is taken.
 */
#ifndef LT_CMD_ARGS_H
#define LT_CMD_ARGS_H

#include "base/arena.h"
#include "base/vec.h"
#include "cmd/cmd.h"

struct args_parsed {
    struct args args;
    struct vec pos;       /* const char * */
    struct vec values;    /* struct opt_value, the highest level first */
    struct arena text;    /* strings that come from the config file */
    bool help;            /* --help was given: nothing else was checked */
};

extern const struct opt args_common[]; /* ends with a NULL name */

void args_init(struct args_parsed *p, const struct cmd *cmd);
void args_release(struct args_parsed *p);
int args_parse(struct args_parsed *p, const struct cmd *cmd, size_t argc, const char *const *argv, struct err *err);

/* The option of that name, of the verb or a common one, or NULL. */
const struct opt *args_find_opt(const struct cmd *cmd, const char *name, size_t len);
/* Checks `text` against the option's type and fills ret: 0, or LT_EUSAGE with "what was expected" alone in err->text. */
int args_value(const struct opt *opt, const char *text, struct opt_value *ret, struct err *err);
bool args_takes_value(const struct opt *opt);
/* "NAME", "DURATION" or the choices: what stands behind the option in help and errors. */
const char *args_arg_name(const struct opt *opt);

/* config.c: adds the values of the YAML file that are not given at a higher level. */
int config_read(struct args_parsed *p, const struct cmd *cmd, const char *path, struct err *err);
/* The same of a text; `name` stands for the file in errors. */
int config_parse(struct args_parsed *p, const struct cmd *cmd, const char *name, const char *text, size_t len, struct err *err);

/* nearest.c: the candidate closest to `word` by edits, or NULL when none is near. Feed each candidate once. */
struct nearest { const char *word; size_t word_len; const char *best; size_t best_distance; };
void nearest_init(struct nearest *n, const char *word, size_t len);
void nearest_feed(struct nearest *n, const char *candidate);
const char *nearest_verb(const char *word, size_t len);
const char *nearest_option(const struct cmd *cmd, const char *word, size_t len);

#endif
