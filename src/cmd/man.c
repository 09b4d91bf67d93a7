/* Man pages (mdoc) from the verb tables: lowtide.1 and one page a verb. */
#include <errno.h>
#include <string.h>
#include <ctype.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "cmd/args.h"
#include "cmd/meta.h"

#define LINE_COLUMNS 78
#define PAGE_MAX (1u << 20)
#define MAN_DATE "November 30, 2026" /* moves with VERSION */

/* Text as roff: backslashes escaped, a line never begins with a control character. Always ends its line. */
static void text_line(struct buf *b, const char *s, size_t len)
{
    if (len && (s[0] == '.' || s[0] == '\''))
        buf_puts(b, "\\&");
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '\\')
            buf_puts(b, "\\e");
        else
            buf_putc(b, s[i]);
    }
    buf_putc(b, '\n');
}

/* One sentence, on lines of at most LINE_COLUMNS. */
static void sentence(struct buf *b, const char *s, size_t len)
{
    while (len > LINE_COLUMNS) {
        size_t cut = LINE_COLUMNS;
        while (cut && s[cut] != ' ')
            cut--;
        if (!cut)
            break; /* one long word */
        text_line(b, s, cut);
        s += cut + 1;
        len -= cut + 1;
    }
    text_line(b, s, len);
}

/* Running text: mdoc wants each sentence to begin on a line of its own. */
static void prose(struct buf *b, const char *s)
{
    const char *from = s;
    for (; *s; s++) {
        if (strchr(".?!", *s) && s[1] == ' ' && (isupper((unsigned char)s[2]) || s[2] == '-' || s[2] == '$')) {
            sentence(b, from, (size_t)(s + 1 - from));
            from = s + 2;
        }
    }
    if (s > from)
        sentence(b, from, (size_t)(s - from));
}

/* One argument of a macro: quoted, so that blanks and punctuation are only text. */
static void quoted(struct buf *b, const char *s)
{
    buf_puts(b, " \"");
    for (; *s; s++) {
        if (*s == '"')
            buf_puts(b, "\"\"");
        else if (*s == '\\')
            buf_puts(b, "\\e");
        else if (*s == '-')
            buf_puts(b, "\\-");
        else
            buf_putc(b, *s);
    }
    buf_putc(b, '"');
}

static void paragraphs(struct buf *b, const char *text)
{
    struct slice rest = { text, strlen(text) }, line;
    bool literal = false, blank = false;
    char copy[2048];
    while (slice_next(&rest, '\n', &line)) {
        bool verbatim = line.len && line.p[0] == ' ';
        if (verbatim != literal)
            buf_puts(b, verbatim ? ".Bd -literal\n" : ".Ed\n");
        else if (blank && line.len)
            buf_puts(b, ".Pp\n");
        literal = verbatim;
        blank = !line.len;
        if (verbatim) {
            text_line(b, line.p, line.len);
        } else if (line.len) {
            str_fmt(copy, sizeof copy, "%.*s", (int)line.len, line.p);
            prose(b, copy);
        }
    }
    if (literal)
        buf_puts(b, ".Ed\n");
}

static void page_name(const struct cmd *cmd, char *out, size_t size)
{
    str_fmt(out, size, "lowtide-%s", cmd->name);
    for (char *c = out; *c; c++)
        if (*c == ' ')
            *c = '-';
}

static void head(struct buf *b, const char *name, const char *brief)
{
    char upper[96];
    str_copy(upper, sizeof upper, name);
    for (char *c = upper; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    buf_printf(b, ".\\\" Made from the verb tables by lowtide man.\n.Dd %s\n.Dt %s 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n.Sh SYNOPSIS\n", MAN_DATE,
               upper, name, brief);
}

static void synopsis(struct buf *b, const struct cmd *cmd)
{
    buf_printf(b, ".Nm lowtide %s\n", cmd->name);
    for (const struct cmd_pos *p = cmd->pos; p && p->name; p++)
        buf_printf(b, ".%sAr %s%s\n", p->optional ? "Op " : "", p->name, p->many ? " ..." : "");
    for (const struct opt *o = cmd->opts; o && o->name; o++) {
        buf_printf(b, ".Op Fl \\-%s", o->name);
        if (args_takes_value(o)) {
            buf_puts(b, " Ar");
            quoted(b, o->type == OPT_CHOICE ? "CHOICE" : args_arg_name(o));
        }
        buf_putc(b, '\n');
    }
    buf_puts(b, ".Op common options\n");
}

static void option_list(struct buf *b, const struct opt *o)
{
    buf_puts(b, ".Bl -tag -width Ds\n");
    for (; o && o->name; o++) {
        buf_puts(b, ".It");
        if (o->letter)
            buf_printf(b, " Fl %c ,", o->letter);
        buf_printf(b, " Fl \\-%s", o->name);
        if (args_takes_value(o)) {
            buf_puts(b, " Ar");
            quoted(b, args_arg_name(o));
        }
        buf_putc(b, '\n');
        prose(b, o->help);
        if (o->many)
            buf_puts(b, "May be repeated.\n");
        if (o->preset)
            buf_printf(b, "Default: %s.\n", o->preset);
    }
    buf_puts(b, ".El\n");
}

static void item_list(struct buf *b, const struct meta_item *it)
{
    buf_puts(b, ".Bl -tag -width pidfile:PATH\n");
    for (; it->name; it++) {
        buf_puts(b, ".It Li");
        quoted(b, it->name);
        buf_putc(b, '\n');
        prose(b, it->text);
    }
    buf_puts(b, ".El\n");
}

static void examples(struct buf *b, const struct cmd *cmd)
{
    const char *const *e = cmd->examples;
    if (!e || !e[0])
        return;
    buf_puts(b, ".Sh EXAMPLES\n");
    for (bool first = true; e[0] && e[1]; e += 2, first = false) {
        buf_puts(b, first ? "" : ".Pp\n");
        prose(b, e[1]);
        buf_puts(b, ".Bd -literal -offset indent\n");
        text_line(b, e[0], strlen(e[0]));
        buf_puts(b, ".Ed\n");
    }
}

static void exit_status(struct buf *b)
{
    buf_puts(b, ".Sh EXIT STATUS\n");
    item_list(b, meta_exits);
}

static void verb_page(struct buf *b, const struct cmd *cmd)
{
    char name[96];
    page_name(cmd, name, sizeof name);
    head(b, name, cmd->brief);
    synopsis(b, cmd);
    buf_puts(b, ".Sh DESCRIPTION\n");
    paragraphs(b, cmd->description ? cmd->description : cmd->brief);
    if (cmd->opts && cmd->opts->name) {
        buf_puts(b, ".Pp\nThe options are as follows:\n");
        option_list(b, cmd->opts);
    }
    buf_puts(b, ".Pp\nOptions of every verb, selectors, and how times and sizes are written are in\n.Xr lowtide 1 .\n");
    exit_status(b);
    examples(b, cmd);
    buf_puts(b, ".Sh SEE ALSO\n.Xr lowtide 1\n");
}

static void verb_list(struct buf *b)
{
    char name[96];
    buf_puts(b, ".Bl -tag -width Ds\n");
    for (const struct cmd *const *c = cmds; *c; c++) {
        if ((*c)->hidden)
            continue;
        page_name(*c, name, sizeof name);
        buf_printf(b, ".It Xr %s 1\n", name);
        prose(b, (*c)->brief);
    }
    buf_puts(b, ".El\n");
}

static void main_page(struct buf *b)
{
    head(b, "lowtide", META_BRIEF);
    buf_puts(b, ".Nm\n.Ar VERB\n.Op Ar TARGET\n.Op options\n.Nm\n.Cm help\n.Ar VERB\n.Nm\n.Fl \\-version\n.Sh DESCRIPTION\n"
                ".Nm\nwatches services, keeps what it saw in one file,\nand says what grows, where, and what to do.\n"
                "The verbs are:\n");
    verb_list(b);
    buf_puts(b, ".Pp\nOptions of every verb:\n");
    option_list(b, args_common);
    buf_puts(b, ".Ss Selectors\nA selector names processes; their children belong to the target.\n");
    item_list(b, meta_selectors);
    buf_puts(b, ".Ss Values\n");
    item_list(b, meta_values);
    buf_puts(b, ".Ss Configuration file\nEvery option is a key of the YAML file named by\n.Fl \\-config :\n"
                "at the top level for the verb that runs and for options of every verb,\nor in a section named like the verb.\n"
                "What may be repeated is a list.\nAn unknown key is an error that names its line.\n"
                ".Bd -literal -offset indent\ndb: /var/lib/lowtide/lowtide.db\nwatch:\n  target: [api=port:8000]\n  interval: 30s\n.Ed\n");
    buf_puts(b, ".Sh ENVIRONMENT\n.Bl -tag -width XDG_STATE_HOME\n.It Ev LOWTIDE_DB\nThe store, when\n.Fl \\-db\nis not given.\n"
                ".It Ev XDG_STATE_HOME\nWhere the store of a user other than root is kept.\n"
                ".It Ev NO_COLOR\nNot empty: no colour on the terminal.\n.El\n");
    buf_puts(b, ".Sh FILES\n.Bl -tag -width Ds\n.It Pa /var/lib/lowtide/lowtide.db\nThe store of root.\n.El\n");
    exit_status(b);
    buf_puts(b, "An error is one line on standard error: what, why, and what to do.\n");
}

/* ---- the hidden verb `man` ------------------------------------------------------------------------------------ */

static int write_page(const char *dir, const char *name, const struct buf *page, struct err *err)
{
    char path[4096];
    str_fmt(path, sizeof path, "%s/%s.1", dir, name);
    int e = fd_write_file(path, page->p, page->len);
    return e ? cmd_errno(err, -e, path, "choose another folder") : 0;
}

static int write_all(const char *dir, struct err *err)
{
    _cleanup_buf_ struct buf page;
    char name[96];
    buf_init(&page, PAGE_MAX);
    int e = fd_mkdir_p(dir, 0755);
    if (e)
        return cmd_errno(err, -e, dir, "choose another folder");
    main_page(&page);
    int r = write_page(dir, "lowtide", &page, err);
    for (const struct cmd *const *c = cmds; *c && !r; c++) {
        if ((*c)->hidden)
            continue;
        buf_clear(&page);
        page_name(*c, name, sizeof name);
        verb_page(&page, *c);
        r = write_page(dir, name, &page, err);
    }
    return r;
}

static int man_run(const struct args *args, struct err *err)
{
    const char *dir = args_str(args, "all");
    const struct cmd *cmd = NULL;
    _cleanup_buf_ struct buf page;
    buf_init(&page, PAGE_MAX);
    if (dir)
        return write_all(dir, err);
    if (args->npos) {
        int r = meta_find_verb(args->pos, args->npos, &cmd, err);
        if (r)
            return r;
    }
    if (cmd)
        verb_page(&page, cmd);
    else
        main_page(&page);
    fwrite(page.p, 1, page.len, stdout);
    return 0;
}

static const struct cmd_pos man_pos[] = { { "VERB", "verb", true, true }, { 0 } };
static const struct opt man_opts[] = {
    { .name = "all", .type = OPT_PATH, .arg = "DIR", .help = "Write every page into this folder." },
    { 0 },
};

const struct cmd cmd_man = {
    .name = "man",
    .brief = "print a man page, or write all of them",
    .pos = man_pos,
    .opts = man_opts,
    .run = man_run,
    .hidden = true,
};

/* ---- the hidden verb `__examples`: the pages' examples, for the test that runs them ---------------------------- */

static int examples_run(const struct args *args, struct err *err)
{
    (void)args;
    (void)err;
    for (const struct cmd *const *c = cmds; *c; c++)
        for (const char *const *e = (*c)->examples; e && e[0] && e[1]; e += 2)
            printf("%s\t%s\t%s\n", (*c)->name, e[0], e[1]);
    return 0;
}

const struct cmd cmd_examples = {
    .name = "__examples",
    .brief = "list the examples of the man pages: verb, command, text",
    .run = examples_run,
    .hidden = true,
};
