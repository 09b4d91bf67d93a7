/* Help on a terminal: the verb list and one page a verb. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/args.h"
#include "cmd/meta.h"

#define COLUMNS 100
#define OPTION_COLUMN 28

const struct meta_item meta_selectors[] = {
    { "pid:N", "the process N; a plain number is the same" },
    { "port:N", "the process that listens on TCP port N" },
    { "cmd:REGEX", "processes whose command line matches" },
    { "unit:NAME", "the processes of a systemd unit" },
    { "cgroup:PATH", "the processes of a cgroup" },
    { "pidfile:PATH", "the process whose number stands in the file" },
    { 0 },
};

const struct meta_item meta_exits[] = {
    { "0", "nothing found, or passed" },
    { "1", "a finding" },
    { "2", "wrong usage or configuration" },
    { "3", "could not measure, or not enough data" },
    { 0 },
};

const struct meta_item meta_values[] = {
    { "DURATION", "0.2s, 200ms, 30s, 5m, 8h, 7d; a plain number is seconds" },
    { "SIZE", "512MiB, 2GB, 64k; a plain number is bytes" },
    { "TIME", "2026-11-30T20:30:00Z, a date, epoch seconds, now, or 2h for two hours ago" },
    { 0 },
};

/* Prints text filled to the page, each line behind `indent` blanks; the first line already stands at column `at`. */
static void fill(FILE *out, const char *text, size_t indent, size_t at)
{
    struct slice rest = { text, strlen(text) }, word;
    bool fresh = true;
    for (; at < indent; at++)
        fputc(' ', out);
    while (slice_next(&rest, ' ', &word)) {
        if (!fresh && at + 1 + word.len > COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            fresh = true;
        }
        fprintf(out, "%s%.*s", fresh ? "" : " ", (int)word.len, word.p);
        at += word.len + !fresh;
        fresh = false;
    }
    fputc('\n', out);
}

/* Paragraphs stand apart by a blank line; a line that begins with a blank is kept as it is. */
static void paragraphs(FILE *out, const char *text)
{
    struct slice rest = { text, strlen(text) }, line;
    char *copy;
    while (slice_next(&rest, '\n', &line)) {
        if (!line.len || line.p[0] == ' ') {
            fprintf(out, "%.*s\n", (int)line.len, line.p);
        } else if ((copy = mem_strndup(line.p, line.len))) {
            fill(out, copy, 0, 0);
            mem_free(copy);
        }
    }
}

static void heading(FILE *out, const char *text)
{
    bool colored = term_colored(fileno(out));
    fprintf(out, "\n%s%s%s\n", term_on(TERM_BOLD, colored), text, term_off(colored));
}

static void row(FILE *out, const char *name, const char *text, size_t column)
{
    int n = fprintf(out, "  %s", name);
    size_t at = n > 0 ? (size_t)n : 0;
    if (at + 2 > column) {
        fputc('\n', out);
        at = 0;
    }
    fill(out, text, column, at);
}

static void items(FILE *out, const char *title, const struct meta_item *it)
{
    heading(out, title);
    for (; it->name; it++)
        row(out, it->name, it->text, 18);
}

/* " [TARGET] FILE..." */
static void positions(const struct cmd *cmd, struct buf *b)
{
    for (const struct cmd_pos *p = cmd->pos; p && p->name; p++)
        buf_printf(b, " %s%s%s%s", p->optional ? "[" : "", p->name, p->many ? "..." : "", p->optional ? "]" : "");
}

static void option_rows(FILE *out, const struct opt *o)
{
    char name[96], text[512];
    for (; o && o->name; o++) {
        char letter[8] = "";
        if (o->letter)
            str_fmt(letter, sizeof letter, "-%c, ", o->letter);
        bool choice = o->type == OPT_CHOICE;
        str_fmt(name, sizeof name, "%s--%s%s%s", letter, o->name, args_takes_value(o) ? " " : "",
                choice ? "CHOICE" : args_arg_name(o));
        str_fmt(text, sizeof text, "%s%s%s%s%s%s%s%s", o->help, choice ? " One of " : "", choice ? o->arg : "", choice ? "." : "",
                o->many ? " May be repeated." : "", o->preset ? " Default: " : "", o->preset ? o->preset : "", o->preset ? "." : "");
        row(out, name, text, OPTION_COLUMN);
    }
}

void help_verb(const struct cmd *cmd, FILE *out)
{
    _cleanup_buf_ struct buf pos;
    buf_init(&pos, 1024);
    positions(cmd, &pos);
    fprintf(out, "lowtide %s%s%s\n\n", cmd->name, pos.p, " [options]");
    fill(out, cmd->brief, 0, 0);
    if (cmd->description) {
        fputc('\n', out);
        paragraphs(out, cmd->description);
    }
    if (cmd->opts && cmd->opts->name) {
        heading(out, "Options");
        option_rows(out, cmd->opts);
    }
    heading(out, "Options of every verb");
    option_rows(out, args_common);
    if (cmd->examples && cmd->examples[0])
        heading(out, "Examples");
    for (const char *const *e = cmd->examples; e && e[0] && e[1]; e += 2) {
        fprintf(out, "  %s\n", e[0]);
        fill(out, e[1], 6, 0);
    }
}

void help_main(FILE *out)
{
    fprintf(out, "lowtide: %s\n\nlowtide VERB [TARGET] [options]\n", META_BRIEF);
    heading(out, "Verbs (lowtide help VERB says more)");
    for (const struct cmd *const *c = cmds; *c; c++) {
        if ((*c)->hidden)
            continue;
        _cleanup_buf_ struct buf b;
        buf_init(&b, 1024);
        buf_puts(&b, (*c)->name);
        positions(*c, &b);
        row(out, b.p, (*c)->brief, OPTION_COLUMN);
    }
    heading(out, "Options of every verb");
    option_rows(out, args_common);
    row(out, "--version", "Print the version.", OPTION_COLUMN);
    items(out, "A selector names processes; their children belong to the target", meta_selectors);
    items(out, "Values", meta_values);
    items(out, "Exit status", meta_exits);
}

extern const struct cmd cmd_help; /* has the common options alone */

int help_without_verb(size_t n, const char *const *words, struct err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (str_eq(words[i], "--version") || str_eq(words[i], "-V")) {
            printf("lowtide %s\n", LT_VERSION);
            return 0;
        }
        if (str_eq(words[i], "--help") || str_eq(words[i], "-h")) {
            help_main(stdout);
            return 0;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (str_starts(words[i], "--") && !args_find_opt(&cmd_help, words[i] + 2, strcspn(words[i] + 2, "=")))
            return err_set(err, LT_EUSAGE, "%s: no such option; lowtide --help lists them", words[i]);
    return err_set(err, LT_EUSAGE, "no verb is given; lowtide --help lists them");
}

/* ---- the verb `help` ------------------------------------------------------------------------------------------ */

int meta_find_verb(const char *const *words, size_t n, const struct cmd **ret, struct err *err)
{
    char name[96];
    str_fmt(name, sizeof name, "%s%s%s", words[0], n > 1 ? " " : "", n > 1 ? words[1] : "");
    const struct cmd *cmd = cmd_find(name);
    if (cmd && !cmd->hidden) {
        *ret = cmd;
        return 0;
    }
    const char *near = nearest_verb(name, strlen(name));
    if (near)
        return err_set(err, LT_EUSAGE, "%s: no such verb; did you mean \"%s\"?", name, near);
    return err_set(err, LT_EUSAGE, "%s: no such verb; lowtide --help lists them", name);
}

static int help_run(const struct args *args, struct err *err)
{
    const struct cmd *cmd;
    if (!args->npos) {
        help_main(stdout);
        return 0;
    }
    int r = meta_find_verb(args->pos, args->npos, &cmd, err);
    if (!r)
        help_verb(cmd, stdout);
    return r;
}

static const struct cmd_pos help_pos[] = { { "VERB", "verb", true, true }, { 0 } };
static const char *const help_examples[] = {
    "lowtide help watch", "What watch does and every option it takes.",
    NULL,
};

const struct cmd cmd_help = {
    .name = "help",
    .brief = "what a verb does and its options",
    .description = "Without a verb: all verbs, the options they share, selectors and exit status.",
    .examples = help_examples,
    .pos = help_pos,
    .run = help_run,
};
