/* --config FILE: options as YAML.
 *
 *     db: /var/lib/lowtide/lowtide.db      # top level: options of the verb that runs, and the common ones
 *     watch:                               # a section: options of that verb alone
 *       target: [api=port:8000, db=unit:postgresql.service]
 *       interval: 30s
 *
 * A list or a mapping ({api: port:8000}) is for options that may be given more than once. Every section is checked,
 * whichever verb runs. An unknown, repeated or misplaced key is an error that names file, line and key.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <yaml.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/args.h"

#define FILE_MAX (1u << 20)

struct reader {
    struct args_parsed *p;
    const struct cmd *running; /* the verb that runs */
    const char *path;
    yaml_document_t *doc;
    struct err *err;
};

/* Keys of one mapping: whose options they may name, and whether their values count. */
struct scope {
    const struct cmd *cmd;
    bool take;        /* false: only checked */
    bool top;         /* sections may stand here */
    size_t higher;    /* values [0, higher) of p->values win over these */
};

static size_t line_of(const yaml_node_t *n)
{
    return n->start_mark.line + 1;
}

static const char *scalar(const yaml_node_t *n)
{
    return (const char *)n->data.scalar.value;
}

/* A scalar with a NUL inside would be cut silently. */
static bool is_text(const yaml_node_t *n)
{
    return n && n->type == YAML_SCALAR_NODE && strlen(scalar(n)) == n->data.scalar.length;
}

static bool is_null(const yaml_node_t *n)
{
    return is_text(n) && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (!*scalar(n) || str_eq(scalar(n), "~") || str_eq(scalar(n), "null"));
}

static bool given_above(const struct reader *r, const struct scope *s, const struct opt *opt)
{
    for (size_t i = 0; i < s->higher; i++)
        if (((struct opt_value *)vec_at(&r->p->values, i))->opt == opt)
            return true;
    return false;
}

/* One value. `name` is the mapping's key where the value is written {name: value}, for NAME=VALUE options. */
static int add_scalar(struct reader *r, const struct scope *s, const struct opt *opt, const char *name, const yaml_node_t *v)
{
    struct opt_value ov;
    struct err why = { 0 };
    if (!is_text(v) || is_null(v))
        return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: not a value; write %s: %s", r->path, line_of(v), opt->name, opt->name,
                       args_takes_value(opt) ? args_arg_name(opt) : "true");
    const char *text = scalar(v);
    size_t size = strlen(text) + (name ? strlen(name) + 1 : 0) + 1;
    char *copy = arena_alloc(&r->p->text, size);
    if (!copy)
        return err_set(r->err, LT_ENOMEM, "%s: no memory for its values; make the file smaller", r->path);
    str_fmt(copy, size, "%s%s%s", name ? name : "", name ? "=" : "", text);
    if (args_value(opt, copy, &ov, &why))
        return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: %s: %s", r->path, line_of(v), opt->name, copy, why.text);
    if (!s->take || given_above(r, s, opt))
        return 0;
    if (vec_append(&r->p->values, &ov))
        return err_set(r->err, LT_ELIMIT, "%s: too many values; give fewer", r->path);
    return 0;
}

static int add_list(struct reader *r, const struct scope *s, const struct opt *opt, const yaml_node_t *v)
{
    for (yaml_node_item_t *i = v->data.sequence.items.start; i < v->data.sequence.items.top; i++) {
        int e = add_scalar(r, s, opt, NULL, yaml_document_get_node(r->doc, *i));
        if (e)
            return e;
    }
    return 0;
}

static int add_mapping(struct reader *r, const struct scope *s, const struct opt *opt, const yaml_node_t *v)
{
    for (yaml_node_pair_t *i = v->data.mapping.pairs.start; i < v->data.mapping.pairs.top; i++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, i->key);
        if (!is_text(key))
            return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: a key that is not text; write NAME: VALUE", r->path, line_of(key), opt->name);
        int e = add_scalar(r, s, opt, scalar(key), yaml_document_get_node(r->doc, i->value));
        if (e)
            return e;
    }
    return 0;
}

static int add_option(struct reader *r, const struct scope *s, const struct opt *opt, const yaml_node_t *v)
{
    if (v->type == YAML_SCALAR_NODE)
        return add_scalar(r, s, opt, NULL, v);
    if (!opt->many)
        return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: takes one value; write %s: %s", r->path, line_of(v), opt->name, opt->name,
                       args_arg_name(opt));
    if (v->type == YAML_SEQUENCE_NODE)
        return add_list(r, s, opt, v);
    if (strchr(args_arg_name(opt), '='))
        return add_mapping(r, s, opt, v);
    return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: a mapping; write a list", r->path, line_of(v), opt->name);
}

static int unknown_key(struct reader *r, const struct scope *s, const yaml_node_t *key)
{
    const char *name = scalar(key);
    for (const struct cmd *const *c = cmds; s->top && *c; c++)
        if (args_find_opt(*c, name, strlen(name)))
            return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: not an option of %s but of %s; put it under \"%s:\"", r->path, line_of(key),
                           name, s->cmd->name, (*c)->name, (*c)->name);
    const char *near = nearest_option(s->cmd, name, strlen(name));
    if (near)
        return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: no such key; did you mean %s?", r->path, line_of(key), name, near);
    return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: no such key; lowtide help %s lists them", r->path, line_of(key), name, s->cmd->name);
}

/* --config and --help in a config file would mean nothing. */
static bool allowed_key(const struct opt *opt)
{
    return !str_eq(opt->name, "config") && !str_eq(opt->name, "help");
}

static int read_pair(struct reader *r, const struct scope *s, const yaml_node_t *key, const yaml_node_t *v)
{
    if (s->top) {
        const struct cmd *section = cmd_find(scalar(key));
        if (section && !section->hidden && (v->type == YAML_MAPPING_NODE || is_null(v)))
            return 0; /* read before the top-level keys: config_document */
    }
    const struct opt *opt = args_find_opt(s->cmd, scalar(key), strlen(scalar(key)));
    if (opt && !allowed_key(opt))
        return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: means nothing in a file; give it on the command line", r->path, line_of(key),
                       opt->name);
    return opt ? add_option(r, s, opt, v) : unknown_key(r, s, key);
}

static int repeated(struct reader *r, const yaml_node_t *map, const yaml_node_pair_t *upto, const yaml_node_t *key)
{
    for (yaml_node_pair_t *i = map->data.mapping.pairs.start; i < upto; i++) {
        const yaml_node_t *before = yaml_document_get_node(r->doc, i->key);
        if (str_eq(scalar(before), scalar(key)))
            return err_set(r->err, LT_EUSAGE, "%s:%zu: %s: written before on line %zu; keep one of the two", r->path, line_of(key),
                           scalar(key), line_of(before));
    }
    return 0;
}

static int read_mapping(struct reader *r, const struct scope *s, const yaml_node_t *map)
{
    for (yaml_node_pair_t *i = map->data.mapping.pairs.start; i < map->data.mapping.pairs.top; i++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, i->key);
        if (!is_text(key))
            return err_set(r->err, LT_EUSAGE, "%s:%zu: a key that is not text; write the name of an option", r->path, line_of(key));
        int e = repeated(r, map, i, key);
        if (!e)
            e = read_pair(r, s, key, yaml_document_get_node(r->doc, i->value));
        if (e)
            return e;
    }
    return 0;
}

static int read_sections(struct reader *r, const yaml_node_t *root)
{
    for (yaml_node_pair_t *i = root->data.mapping.pairs.start; i < root->data.mapping.pairs.top; i++) {
        const yaml_node_t *key = yaml_document_get_node(r->doc, i->key), *v = yaml_document_get_node(r->doc, i->value);
        const struct cmd *section = is_text(key) ? cmd_find(scalar(key)) : NULL;
        if (!section || section->hidden || v->type != YAML_MAPPING_NODE)
            continue;
        struct scope s = { section, section == r->running, false, r->p->values.n };
        int e = read_mapping(r, &s, v);
        if (e)
            return e;
    }
    return 0;
}

static int read_document(struct reader *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(r->doc);
    if (!root || is_null(root))
        return 0; /* an empty file says nothing */
    if (root->type != YAML_MAPPING_NODE)
        return err_set(r->err, LT_EUSAGE, "%s:%zu: not a mapping; write lines of the form KEY: VALUE", r->path, line_of(root));
    int e = read_sections(r, root);
    if (e)
        return e;
    struct scope top = { r->running, true, true, r->p->values.n };
    return read_mapping(r, &top, root);
}

int config_parse(struct args_parsed *p, const struct cmd *cmd, const char *name, const char *text, size_t len, struct err *err)
{
    struct reader reader = { p, cmd, name, NULL, err }, *r = &reader;
    yaml_parser_t parser;
    yaml_document_t doc;
    if (!yaml_parser_initialize(&parser))
        return err_set(err, LT_ENOMEM, "%s: no memory to read it; free some and try again", name);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    int e = 0;
    if (yaml_parser_load(&parser, &doc)) {
        r->doc = &doc;
        e = read_document(r);
        yaml_document_delete(&doc);
    } else {
        e = err_set(err, LT_EUSAGE, "%s:%zu: not YAML: %s; correct that line", name, parser.problem_mark.line + 1,
                    parser.problem ? parser.problem : "cannot be parsed");
    }
    yaml_parser_delete(&parser);
    return e;
}

int config_read(struct args_parsed *p, const struct cmd *cmd, const char *path, struct err *err)
{
    _cleanup_mem_ char *text = mem_alloc(FILE_MAX);
    if (!text)
        return err_set(err, LT_ENOMEM, "%s: no memory to read it; free some and try again", path);
    ssize_t n = fd_read_at(AT_FDCWD, path, text, FILE_MAX);
    if (n == -EFBIG)
        return err_set(err, LT_EUSAGE, "%s: longer than 1 MiB; this is not a configuration file", path);
    if (n < 0)
        return err_set(err, LT_EUSAGE, "%s: cannot be read: %s; check --config", path, strerror((int)-n));
    return config_parse(p, cmd, path, text, (size_t)n, err);
}
