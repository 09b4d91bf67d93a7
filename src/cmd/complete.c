/* Completion for bash and zsh. The shells ask `lowtide __complete SHELL LINE` for every TAB, where LINE is what stands
 * left of the cursor; the answer is made from the verb tables, so it cannot lag behind them:
 *
 *     first line   words, files, folders: what to offer (files and folders are listed by the shell itself)
 *     the rest     candidate, or candidate TAB what it is
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/vec.h"
#include "cmd/args.h"
#include "cmd/meta.h"
#include "source/procfs.h"
#include "source/proctab.h"
#include "store/store.h"

#define WORDS_MAX 256
#define LINE_MAX_BYTES 16384
#define PIDS_MAX 4096

struct completion {
    char line[LINE_MAX_BYTES];  /* words, NUL-terminated, in one piece */
    char *words[WORDS_MAX];
    size_t n;                   /* words before the cursor's, the program's name not counted */
    const char *cur;            /* the word under the cursor up to it, may be "" */
    size_t cut;                 /* bytes of cur the shell does not replace (bash breaks words at = and :) */
    const char *prefix;         /* stands before every candidate: "--target=" */
    const char *db;
};

/* ---- what to offer -------------------------------------------------------------------------------------------- */

static void offer(const struct completion *c, const char *before, const char *word, const char *text)
{
    char whole[512];
    str_fmt(whole, sizeof whole, "%s%s%s", c->prefix, before, word);
    if (!str_starts(whole, c->cur) || strlen(whole) < c->cut)
        return;
    printf("%s%s%s\n", whole + c->cut, text && *text ? "\t" : "", text ? text : "");
}

static void offer_choices(const struct completion *c, const char *choices)
{
    struct slice rest = { choices, strlen(choices) }, part;
    char word[64];
    while (slice_next(&rest, '|', &part)) {
        str_fmt(word, sizeof word, "%.*s", (int)part.len, part.p);
        offer(c, "", word, NULL);
    }
}

static void offer_pids(const struct completion *c, const char *before)
{
    struct proctab table;
    struct proc_stat st;
    struct err err;
    char pid[16];
    _cleanup_fd_ int proc = fd_open(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);
    if (proc < 0 || proctab_init(&table, proc, PIDS_MAX, &err))
        return;
    int r = proctab_scan(&table, false, NULL, NULL, &err);
    for (size_t i = 0; (!r || r == LT_ELIMIT) && i < table.now.n; i++) {
        const struct proctab_entry *e = vec_at(&table.now, i);
        if (procfs_stat_of(proc, e->pid, &st))
            continue; /* gone, or not ours to see */
        str_printable(st.comm);
        str_fmt(pid, sizeof pid, "%d", e->pid);
        offer(c, before, pid, st.comm);
    }
    proctab_release(&table);
}

static int offer_target(void *ctx, const struct target_row *row)
{
    const struct completion *c = ctx;
    offer(c, "", row->name, row->selector);
    return 0;
}

static void offer_targets(struct completion *c)
{
    const struct args args = { .verb = "complete", .db = c->db };
    char path[4096];
    struct store *store = NULL;
    struct err err;
    if (cmd_db_path(&args, false, path, sizeof path, &err) || store_open(&store, path, STORE_READ, NULL, &err))
        return; /* no store, no targets: nothing to say on a TAB */
    store_each_target(store, offer_target, c, &err);
    store_close(store, &err);
}

static void offer_selectors(const struct completion *c, const char *before)
{
    char kind[64];
    for (const struct meta_item *s = meta_selectors; s->name; s++) {
        str_fmt(kind, sizeof kind, "%s%.*s", before, (int)(strcspn(s->name, ":") + 1), s->name);
        offer(c, "", kind, s->text);
    }
    str_fmt(kind, sizeof kind, "%spid:", before);
    if (str_starts(c->cur + strlen(c->prefix), kind))
        offer_pids(c, kind);
}

/* Verbs of two words are offered a word at a time, each first word once. */
static void offer_verbs(const struct completion *c, const char *first)
{
    char last[64] = "", word[64];
    for (const struct cmd *const *p = cmds; *p; p++) {
        size_t len = first ? strlen(first) : 0;
        if ((*p)->hidden || (first && (!str_starts((*p)->name, first) || (*p)->name[len] != ' ')))
            continue;
        const char *name = (*p)->name + (first ? len + 1 : 0);
        bool whole = !strchr(name, ' ');
        str_fmt(word, sizeof word, "%.*s", (int)strcspn(name, " "), name);
        if (!str_eq(word, last))
            offer(c, "", word, whole ? (*p)->brief : NULL);
        str_copy(last, sizeof last, word);
    }
}

static bool already_given(const struct completion *c, const struct opt *o)
{
    for (size_t i = 0; i < c->n && !o->many; i++) {
        const char *w = c->words[i];
        size_t len = strlen(o->name);
        if (str_starts(w, "--") && str_starts(w + 2, o->name) && (!w[2 + len] || w[2 + len] == '='))
            return true;
    }
    return false;
}

static void offer_options(const struct completion *c, const struct opt *o)
{
    for (; o && o->name; o++)
        if (!already_given(c, o))
            offer(c, "--", o->name, o->help);
}

/* What stands behind an option, or as an argument. `kind` is that of struct cmd_pos. */
static void offer_kind(struct completion *c, const char *kind)
{
    bool files = str_eq(kind, "file"), folders = str_eq(kind, "folder");
    puts(files ? "files" : folders ? "folders" : "words");
    if (str_eq(kind, "target"))
        offer_targets(c);
    else if (str_eq(kind, "pid"))
        offer_pids(c, "");
    else if (str_eq(kind, "selector"))
        offer_selectors(c, "");
    else if (str_eq(kind, "verb"))
        offer_verbs(c, NULL);
    else if (strchr(kind, '|'))
        offer_choices(c, kind);
}

static void offer_value(struct completion *c, const struct opt *o)
{
    char name[256];
    const char *value = c->cur + strlen(c->prefix), *eq = strchr(value, '=');
    if (o->type == OPT_CHOICE) {
        offer_kind(c, o->arg);
    } else if (o->type == OPT_PATH) {
        offer_kind(c, str_eq(args_arg_name(o), "DIR") ? "folder" : "file");
    } else if (eq && str_eq(args_arg_name(o), "NAME=SELECTOR")) {
        str_fmt(name, sizeof name, "%.*s", (int)(eq + 1 - value), value);
        puts("words");
        offer_selectors(c, name);
    } else {
        offer_kind(c, str_eq(args_arg_name(o), "SELECTOR") ? "selector" : str_eq(args_arg_name(o), "TARGET") ? "target" : "none");
    }
}

/* ---- where the cursor stands ---------------------------------------------------------------------------------- */

/* Splits as a shell would: quotes and backslashes. The last word is the cursor's, empty when a blank stands before it. */
static void split(struct completion *c, const char *line)
{
    char *out = c->line, quote = 0;
    bool in_word = false;
    c->words[c->n] = out;
    for (; *line && out < c->line + sizeof c->line - 2; line++) {
        if (!quote && (*line == ' ' || *line == '\t')) {
            if (in_word && c->n < WORDS_MAX - 1) {
                *out++ = '\0';
                c->words[++c->n] = out;
            }
            in_word = false;
            continue;
        }
        in_word = true;
        if (quote ? *line == quote : *line == '\'' || *line == '"')
            quote = quote ? 0 : *line;
        else if (*line == '\\' && line[1] && quote != '\'')
            *out++ = *++line;
        else
            *out++ = *line;
    }
    *out = '\0';
}

static void locate(struct completion *c, const char *shell, const char *line)
{
    split(c, line);
    c->cur = c->words[c->n];
    c->prefix = "";
    if (c->n) { /* the program's own name */
        memmove(c->words, c->words + 1, c->n * sizeof *c->words);
        c->n--;
    }
    if (str_eq(shell, "bash")) {
        const char *brk = NULL;
        for (const char *p = c->cur; *p; p++)
            if (*p == '=' || *p == ':')
                brk = p;
        c->cut = brk ? (size_t)(brk + 1 - c->cur) : 0;
    }
}

/* The state after the words before the cursor. */
struct seen { const struct cmd *cmd; const char *group; const struct opt *pending; size_t npos; bool only_pos; };

static const struct opt *option_of(const struct seen *s, const char *word, size_t len)
{
    static const struct cmd none = { .name = "" };
    return args_find_opt(s->cmd ? s->cmd : &none, word, len);
}

static void see_word(struct completion *c, struct seen *s, const char *word)
{
    char two[64];
    if (s->pending) {
        c->db = str_eq(s->pending->name, "db") ? word : c->db;
        s->pending = NULL;
    } else if (!s->only_pos && str_starts(word, "--") && word[2]) {
        const struct opt *o = option_of(s, word + 2, strcspn(word + 2, "="));
        const char *eq = strchr(word, '=');
        if (o && eq && str_eq(o->name, "db"))
            c->db = eq + 1;
        s->pending = o && !eq && args_takes_value(o) ? o : NULL;
    } else if (!s->only_pos && word[0] == '-' && word[1]) {
        s->only_pos = str_eq(word, "--");
    } else if (s->cmd) {
        s->npos++;
    } else {
        str_fmt(two, sizeof two, "%s%s%s", s->group ? s->group : "", s->group ? " " : "", word);
        s->cmd = cmd_find(two);
        s->group = s->cmd ? NULL : word;
    }
}

static const struct cmd_pos *position(const struct cmd *cmd, size_t npos)
{
    const struct cmd_pos *p = cmd->pos;
    for (size_t i = 0; p && p->name && i < npos && !p->many; i++)
        p++;
    return p && p->name ? p : NULL;
}

static void answer(struct completion *c)
{
    struct seen s = { 0 };
    static char prefix[128];
    for (size_t i = 0; i < c->n; i++)
        see_word(c, &s, c->words[i]);
    const char *eq = str_starts(c->cur, "--") ? strchr(c->cur, '=') : NULL;
    const struct opt *joined = eq && !s.pending ? option_of(&s, c->cur + 2, (size_t)(eq - c->cur - 2)) : NULL;
    if (joined) {
        str_fmt(prefix, sizeof prefix, "%.*s", (int)(eq + 1 - c->cur), c->cur);
        c->prefix = prefix;
    }
    if (s.pending || joined) {
        offer_value(c, s.pending ? s.pending : joined);
    } else if (c->cur[0] == '-' && !s.only_pos) {
        puts("words");
        offer_options(c, s.cmd ? s.cmd->opts : NULL);
        offer_options(c, args_common);
    } else if (!s.cmd) {
        puts("words");
        offer_verbs(c, s.group);
    } else {
        const struct cmd_pos *p = position(s.cmd, s.npos);
        offer_kind(c, p && p->complete ? p->complete : "none");
    }
}

static int complete_run(const struct args *args, struct err *err)
{
    static struct completion c;
    (void)err;
    c = (struct completion){ 0 };
    locate(&c, args->pos[0], args->pos[1]);
    answer(&c);
    return 0;
}

static const struct cmd_pos complete_pos[] = { { "SHELL", "bash|zsh", false, false }, { "LINE", "none", false, false }, { 0 } };

const struct cmd cmd_complete = {
    .name = "__complete",
    .brief = "answer a TAB of bash or zsh",
    .pos = complete_pos,
    .run = complete_run,
    .hidden = true,
};
