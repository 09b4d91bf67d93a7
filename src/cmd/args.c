/* Options and positional arguments from the tables. */
#include "cmd/args.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/units.h"

#define POS_MAX 4096
#define VALUES_MAX 4096
#define CONFIG_TEXT_MAX (4u << 20)

const struct opt args_common[] = {
    { .name = "json", .type = OPT_FLAG, .help = "Print one JSON document on standard output and nothing else there." },
    { .name = "db", .type = OPT_PATH, .arg = "PATH",
      .help = "The store; else $LOWTIDE_DB, else /var/lib/lowtide/lowtide.db for root and "
              "$XDG_STATE_HOME/lowtide/lowtide.db for others." },
    { .name = "config", .type = OPT_PATH, .arg = "FILE",
      .help = "Read options from this YAML file; the command line wins." },
    { .name = "quiet", .letter = 'q', .type = OPT_FLAG, .help = "Print no progress and no warnings." },
    { .name = "verbose", .letter = 'v', .type = OPT_FLAG, .help = "Say more on standard error." },
    { .name = "help", .letter = 'h', .type = OPT_FLAG, .help = "Show this help." },
    { 0 },
};

bool args_takes_value(const struct opt *opt)
{
    return opt->type != OPT_FLAG;
}

const char *args_arg_name(const struct opt *opt)
{
    static const char *const names[] = {
        [OPT_FLAG] = "", [OPT_STRING] = "TEXT", [OPT_INT] = "N", [OPT_DURATION] = "DURATION", [OPT_SIZE] = "SIZE",
        [OPT_TIME] = "TIME", [OPT_PATH] = "PATH", [OPT_CHOICE] = "CHOICE",
    };
    return opt->arg ? opt->arg : names[opt->type];
}

/* ---- values --------------------------------------------------------------------------------------------------- */

/* RFC 3339, a date (its midnight, UTC), epoch seconds, "now", or a duration with a unit: so long ago. */
static int time_value(const char *text, int64_t *ret)
{
    char day[32];
    int64_t ago;
    size_t len = strlen(text);
    if (str_eq(text, "now")) {
        *ret = clock_wall_ns();
        return 0;
    }
    if (!clock_parse(text, len, ret))
        return 0;
    if (len == 10 && text[4] == '-') {
        str_fmt(day, sizeof day, "%sT00:00:00Z", text);
        return clock_parse(day, strlen(day), ret);
    }
    if (units_duration(text, &ago))
        return LT_EPARSE;
    *ret = clock_wall_ns() - ago;
    return 0;
}

static int choice_value(const struct opt *opt, const char *text, struct err *err)
{
    struct nearest near;
    struct slice rest = { opt->arg, strlen(opt->arg) }, part;
    char word[64], best[64] = "";
    nearest_init(&near, text, strlen(text));
    while (slice_next(&rest, '|', &part)) {
        if (slice_eq(part, text))
            return 0;
        str_fmt(word, sizeof word, "%.*s", (int)part.len, part.p);
        near.best = NULL;
        nearest_feed(&near, word);
        if (near.best)
            str_copy(best, sizeof best, word);
    }
    if (*best)
        return err_set(err, LT_EUSAGE, "not one of %s; did you mean %s?", opt->arg, best);
    return err_set(err, LT_EUSAGE, "not a known choice; write one of %s", opt->arg);
}

static int flag_value(const char *text, int64_t *ret)
{
    static const char *const yes[] = { "true", "yes", "on", "1" }, *const no[] = { "false", "no", "off", "0" };
    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        if (str_eq(text, yes[i]) || str_eq(text, no[i])) {
            *ret = str_eq(text, yes[i]);
            return 0;
        }
    }
    return LT_EPARSE;
}

int args_value(const struct opt *opt, const char *text, struct opt_value *ret, struct err *err)
{
    struct opt_value v = { .opt = opt, .text = text };
    switch (opt->type) {
    case OPT_FLAG:
        if (flag_value(text, &v.num))
            return err_set(err, LT_EUSAGE, "not true or false; write one of the two");
        break;
    case OPT_INT:
        if (units_int(text, strlen(text), &v.num))
            return err_set(err, LT_EUSAGE, "not a whole number; write one such as 20");
        break;
    case OPT_DURATION:
        if (units_duration(text, &v.num))
            return err_set(err, LT_EUSAGE, "not a duration; write one such as 200ms, 30s, 5m, 8h, 7d");
        break;
    case OPT_SIZE:
        if (units_size(text, &v.num))
            return err_set(err, LT_EUSAGE, "not a size; write one such as 512MiB, 2GB or plain bytes");
        break;
    case OPT_TIME:
        if (time_value(text, &v.num))
            return err_set(err, LT_EUSAGE, "not a time; write one such as 2026-11-30T20:30:00Z, epoch seconds, or 2h for two hours ago");
        break;
    case OPT_CHOICE:
        if (choice_value(opt, text, err))
            return LT_EUSAGE;
        break;
    case OPT_STRING:
    case OPT_PATH:
        if (!*text)
            return err_set(err, LT_EUSAGE, "an empty value; write %s", args_arg_name(opt));
        break;
    }
    *ret = v;
    return 0;
}

/* ---- the command line ----------------------------------------------------------------------------------------- */

static const struct opt *opt_in(const struct opt *table, const char *name, size_t len)
{
    for (const struct opt *o = table; o && o->name; o++)
        if (strlen(o->name) == len && !memcmp(o->name, name, len))
            return o;
    return NULL;
}

const struct opt *args_find_opt(const struct cmd *cmd, const char *name, size_t len)
{
    const struct opt *o = opt_in(cmd->opts, name, len);
    return o ? o : opt_in(args_common, name, len);
}

static const struct opt *find_letter(const struct cmd *cmd, char letter)
{
    for (const struct opt *o = cmd->opts; o && o->name; o++)
        if (o->letter == letter)
            return o;
    for (const struct opt *o = args_common; o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

static int add_value(struct args_parsed *p, const struct opt *opt, const char *text, struct err *err)
{
    struct opt_value v;
    struct err why = { 0 };
    if (args_value(opt, text, &v, &why))
        return err_set(err, LT_EUSAGE, "--%s %s: %s", opt->name, text, why.text);
    if (vec_append(&p->values, &v))
        return err_set(err, LT_ELIMIT, "--%s: more than %d options; put them in a file for --config", opt->name, VALUES_MAX);
    return 0;
}

/* The words still to be read. */
struct words { const char *const *v; size_t n, next; };

/* The value of `opt`: what stands behind '=' or in the letter's own word (`joined`), else the next word. */
static int take_value(struct args_parsed *p, const struct opt *opt, const char *joined, struct words *w, struct err *err)
{
    if (!args_takes_value(opt)) {
        p->help |= !joined && str_eq(opt->name, "help");
        return add_value(p, opt, joined ? joined : "true", err);
    }
    if (joined)
        return add_value(p, opt, joined, err);
    if (w->next == w->n || str_starts(w->v[w->next], "--"))
        return err_set(err, LT_EUSAGE, "--%s: needs a value; write --%s %s", opt->name, opt->name, args_arg_name(opt));
    return add_value(p, opt, w->v[w->next++], err);
}

static int unknown_option(const struct cmd *cmd, const char *word, size_t len, struct err *err)
{
    const char *near = nearest_option(cmd, word + 2, len - 2);
    if (near)
        return err_set(err, LT_EUSAGE, "%.*s: no such option; did you mean --%s?", (int)len, word, near);
    return err_set(err, LT_EUSAGE, "%.*s: no such option; lowtide help %s lists them", (int)len, word, cmd->name);
}

static int long_option(struct args_parsed *p, const struct cmd *cmd, const char *word, struct words *w, struct err *err)
{
    const char *eq = strchr(word, '=');
    size_t len = eq ? (size_t)(eq - word) : strlen(word);
    const struct opt *opt = args_find_opt(cmd, word + 2, len - 2);
    if (!opt && !eq && str_starts(word, "--no-")) {
        opt = args_find_opt(cmd, word + 5, len - 5);
        if (opt && opt->type == OPT_FLAG)
            return add_value(p, opt, "false", err);
        opt = NULL;
    }
    if (!opt)
        return unknown_option(cmd, word, len, err);
    return take_value(p, opt, eq ? eq + 1 : NULL, w, err);
}

/* -qv, -o FILE, -oFILE */
static int letters(struct args_parsed *p, const struct cmd *cmd, const char *word, struct words *w, struct err *err)
{
    for (const char *c = word + 1; *c; c++) {
        const struct opt *opt = find_letter(cmd, *c);
        if (!opt)
            return err_set(err, LT_EUSAGE, "-%c: no such option; lowtide help %s lists them", *c, cmd->name);
        bool value = args_takes_value(opt);
        int r = take_value(p, opt, value && c[1] ? c + 1 : NULL, w, err);
        if (r || value)
            return r;
    }
    return 0;
}

static int read_words(struct args_parsed *p, const struct cmd *cmd, struct words *w, struct err *err)
{
    bool only_pos = false;
    while (w->next < w->n) {
        const char *word = w->v[w->next++];
        int r = 0;
        if (!only_pos && str_eq(word, "--"))
            only_pos = true;
        else if (!only_pos && str_starts(word, "--"))
            r = long_option(p, cmd, word, w, err);
        else if (!only_pos && word[0] == '-' && word[1])
            r = letters(p, cmd, word, w, err);
        else if (vec_append(&p->pos, &word))
            r = err_set(err, LT_ELIMIT, "%s: more than %d arguments; give fewer", word, POS_MAX);
        if (r)
            return r;
    }
    return 0;
}

static int check_positions(const struct args_parsed *p, const struct cmd *cmd, struct err *err)
{
    size_t most = 0, least = 0;
    bool many = false;
    for (const struct cmd_pos *c = cmd->pos; c && c->name; c++) {
        most++;
        least += !c->optional;
        many |= c->many;
    }
    if (p->pos.n < least)
        return err_set(err, LT_EUSAGE, "%s: is missing; lowtide help %s shows the form", cmd->pos[p->pos.n].name, cmd->name);
    if (p->pos.n > most && !many)
        return err_set(err, LT_EUSAGE, "%s: one argument too many; lowtide help %s shows the form",
                       *(const char **)vec_at(&p->pos, most), cmd->name);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

void args_init(struct args_parsed *p, const struct cmd *cmd)
{
    *p = (struct args_parsed){ .args.verb = cmd->name };
    vec_init(&p->pos, sizeof(const char *), POS_MAX);
    vec_init(&p->values, sizeof(struct opt_value), VALUES_MAX);
    arena_init(&p->text, CONFIG_TEXT_MAX);
}

void args_release(struct args_parsed *p)
{
    vec_release(&p->pos);
    vec_release(&p->values);
    arena_release(&p->text);
}

static bool has_value(const struct args_parsed *p, const struct opt *opt)
{
    VEC_EACH(struct opt_value, v, &p->values)
        if (v->opt == opt)
            return true;
    return false;
}

static int add_presets(struct args_parsed *p, const struct cmd *cmd, struct err *err)
{
    for (const struct opt *o = cmd->opts; o && o->name; o++) {
        if (!o->preset || has_value(p, o))
            continue;
        int r = add_value(p, o, o->preset, err);
        if (r)
            return r;
    }
    return 0;
}

static void publish(struct args_parsed *p)
{
    struct args *a = &p->args;
    a->pos = p->pos.items;
    a->npos = p->pos.n;
    a->values = p->values.items;
    a->nvalues = p->values.n;
    a->json = args_flag(a, "json");
    a->db = args_str(a, "db");
    a->quiet = args_flag(a, "quiet");
    a->verbose = args_flag(a, "verbose");
}

int args_parse(struct args_parsed *p, const struct cmd *cmd, size_t argc, const char *const *argv, struct err *err)
{
    struct words w = { argv, argc, 0 };
    int r = read_words(p, cmd, &w, err);
    if (r || p->help)
        return r;
    publish(p);
    const char *config = args_str(&p->args, "config");
    if (config)
        r = config_read(p, cmd, config, err);
    if (!r)
        r = check_positions(p, cmd, err);
    if (!r)
        r = add_presets(p, cmd, err);
    publish(p);
    return r;
}

/* ---- what verbs ask ------------------------------------------------------------------------------------------- */

static const struct opt_value *last_value(const struct args *a, const char *name)
{
    for (size_t i = a->nvalues; i-- > 0;)
        if (str_eq(a->values[i].opt->name, name))
            return &a->values[i];
    return NULL;
}

const char *args_str(const struct args *a, const char *name)
{
    const struct opt_value *v = last_value(a, name);
    return v ? v->text : NULL;
}

int64_t args_num(const struct args *a, const char *name, int64_t fallback)
{
    const struct opt_value *v = last_value(a, name);
    return v ? v->num : fallback;
}

bool args_flag(const struct args *a, const char *name)
{
    return args_num(a, name, 0) != 0;
}

const char *args_next(const struct args *a, const char *name, size_t *pos)
{
    for (; *pos < a->nvalues; (*pos)++)
        if (str_eq(a->values[*pos].opt->name, name))
            return a->values[(*pos)++].text;
    return NULL;
}
