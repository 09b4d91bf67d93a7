/* The verb list and the way from argv to an exit status. */
#include "cmd/cmd.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/args.h"
#include "cmd/meta.h"

extern const struct cmd cmd_watch, cmd_status, cmd_top, cmd_mark, cmd_import, cmd_diagnose, cmd_doctor, cmd_store_verify,
    cmd_store_info, cmd_help, cmd_man, cmd_completion, cmd_complete, cmd_examples;

const struct cmd *const cmds[] = {
    &cmd_doctor, &cmd_watch, &cmd_status, &cmd_top, &cmd_diagnose, &cmd_mark, &cmd_import, &cmd_store_verify,
    &cmd_store_info, &cmd_help, &cmd_man, &cmd_completion, &cmd_complete, &cmd_examples, NULL,
};

#define WORDS_MAX 8192

const struct cmd *cmd_find(const char *name)
{
    for (const struct cmd *const *c = cmds; *c; c++)
        if (str_eq((*c)->name, name))
            return *c;
    return NULL;
}

/* What to do about an error whose text does not say it. */
static const char *advice(int code)
{
    static const struct { int code; const char *text; } known[] = {
        { LT_ENOMEM, "free some memory and try again" }, { LT_EIO, "check the disk and the path" },
        { LT_EPERM, "run it as root, or as the owner" }, { LT_EFULL, "make room" }, { LT_EBUSY, "wait for it, or end it" },
        { LT_ECORRUPT, "lowtide store verify says more" }, { LT_GONE, "start it again" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (known[i].code == code)
            return known[i].text;
    return "lowtide --help says more";
}

/* The one error line. What other programs named may hold control characters: they are made printable. */
static int fail(const char *verb, struct err *err, int code)
{
    int shown = err->code ? err->code : code;
    if (!*err->text)
        str_fmt(err->text, sizeof err->text, "%s", err_sentence(shown));
    str_printable(err->text);
    bool advised = strstr(err->text, "; ") != NULL;
    fprintf(stderr, "lowtide%s%s: %s%s%s\n", verb ? " " : "", verb ? verb : "", err->text, advised ? "" : "; ",
            advised ? "" : advice(shown));
    return err_exit_status(shown);
}

int cmd_errno(struct err *err, int errnum, const char *what, const char *remedy)
{
    struct err why = { 0 };
    int code = err_errno(&why, LT_EIO, errnum, "%s", what);
    return err_set(err, code, "%s; %s", why.text, remedy);
}

static bool is_group(const char *word)
{
    size_t len = strlen(word);
    for (const struct cmd *const *c = cmds; *c; c++)
        if (str_starts((*c)->name, word) && (*c)->name[len] == ' ')
            return true;
    return false;
}

/* "verify or info" */
static void group_members(const char *group, char *out, size_t size)
{
    size_t len = strlen(group), used = 0;
    *out = '\0';
    for (const struct cmd *const *c = cmds; *c; c++)
        if (str_starts((*c)->name, group) && (*c)->name[len] == ' ')
            used += str_fmt(out + used, size - used, "%s%s", used ? " or " : "", (*c)->name + len + 1);
}

static int unknown_verb(const struct vec *words, size_t at, struct err *err)
{
    const char *word = *(const char **)vec_at(words, at), *near = nearest_verb(word, strlen(word));
    const char *second = at + 1 < words->n ? *(const char **)vec_at(words, at + 1) : "";
    char members[128];
    if (is_group(word)) {
        bool two = *second && *second != '-';
        group_members(word, members, sizeof members);
        return err_set(err, LT_EUSAGE, "%s%s%s: %s; write %s behind %s", word, two ? " " : "", two ? second : "",
                       two ? "no such verb" : "only half a verb", members, word);
    }
    if (near)
        return err_set(err, LT_EUSAGE, "%s: no such verb; did you mean \"%s\"?", word, near);
    return err_set(err, LT_EUSAGE, "%s: no such verb; lowtide --help lists them", word);
}

/* Where the verb stands: the first word that is neither an option nor a common option's value. */
static size_t verb_at(const struct vec *words)
{
    size_t i = 0;
    for (; i < words->n; i++) {
        const char *w = *(const char **)vec_at(words, i);
        if (w[0] != '-' || !w[1])
            break;
        for (const struct opt *o = args_common; o->name; o++)
            if (args_takes_value(o) && str_starts(w, "--") && str_eq(w + 2, o->name))
                i++;
    }
    return i;
}

/* Takes the verb's one or two words out of `words`; what is left are its arguments. NULL: there is no such verb. */
static const struct cmd *take_verb(struct vec *words, size_t at)
{
    const char **w = words->items;
    char two[64];
    const struct cmd *cmd = NULL;
    size_t taken = 0;
    if (at + 1 < words->n && str_fmt(two, sizeof two, "%s %s", w[at], w[at + 1]) < sizeof two) {
        cmd = cmd_find(two);
        taken = 2;
    }
    if (!cmd) {
        cmd = cmd_find(w[at]);
        taken = 1;
    }
    if (cmd) {
        memmove(w + at, w + at + taken, (words->n - at - taken) * sizeof *w);
        words->n -= taken;
    }
    return cmd;
}

/* Whether nobody reads standard output any more. Asked of the descriptor: the errno of the write that failed is long gone. */
static bool reader_left(void)
{
    struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}

/* Output that did not reach its file is a failure; a reader that closed the pipe early is not. */
static int flush_output(struct err *err)
{
    bool failed = ferror(stdout);
    errno = 0;
    if (!fflush(stdout) && !failed)
        return 0;
    int e = errno;
    if (e == EPIPE || reader_left())
        return 0;
    if (!e)
        return err_set(err, LT_EIO, "standard output: not all of the answer could be written; make room and run again");
    return cmd_errno(err, e, "standard output", "make room and run again");
}

static int run_verb(const struct cmd *cmd, struct args_parsed *p, const struct vec *words, struct err *err)
{
    int r = args_parse(p, cmd, words->n, words->items, err);
    if (r)
        return r;
    if (p->help) {
        help_verb(cmd, stdout);
        return 0;
    }
    log_setup(cmd->name, p->args.quiet ? LOG_QUIET : p->args.verbose ? LOG_DEBUG : LOG_INFO);
    return cmd->run(&p->args, err);
}

static int find_and_run(struct vec *words)
{
    struct err err = { 0 };
    struct args_parsed p;
    size_t at = verb_at(words);
    if (at == words->n) {
        int e = help_without_verb(words->n, words->items, &err);
        e = e ? e : flush_output(&err);
        return e ? fail(NULL, &err, e) : 0;
    }
    const struct cmd *cmd = take_verb(words, at);
    if (!cmd)
        return fail(NULL, &err, unknown_verb(words, at, &err));
    args_init(&p, cmd);
    int r = run_verb(cmd, &p, words, &err);
    if (r >= 0) {
        int flushed = flush_output(&err);
        r = flushed ? flushed : r;
    }
    int status = r < 0 ? fail(cmd->name, &err, r) : r;
    args_release(&p);
    return status;
}

int cmd_main(int argc, char *const *argv)
{
    struct vec words;
    setlocale(LC_CTYPE, "");
    signal(SIGPIPE, SIG_IGN);
    vec_init(&words, sizeof(const char *), WORDS_MAX);
    int status = 2;
    for (int i = 1; i < argc; i++) {
        if (vec_append(&words, &argv[i])) {
            fprintf(stderr, "lowtide: more than %d arguments; give fewer\n", WORDS_MAX);
            vec_release(&words);
            return status;
        }
    }
    status = find_and_run(&words);
    vec_release(&words);
    return status;
}
