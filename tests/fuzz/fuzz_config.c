/* config_parse: any bytes give values of the tables' types, or one error that names the file. */
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cmd/args.h"
#include "fuzz/fuzz.h"

static const struct opt walk_opts[] = {
    { .name = "target", .type = OPT_STRING, .arg = "NAME=SELECTOR", .many = true, .help = "A target." },
    { .name = "interval", .type = OPT_DURATION, .help = "Time." },
    { .name = "kind", .type = OPT_CHOICE, .arg = "curve|requests|events", .help = "Kind." },
    { .name = "at", .type = OPT_TIME, .help = "When." },
    { .name = "size", .type = OPT_SIZE, .many = true, .help = "Size." },
    { .name = "once", .type = OPT_FLAG, .help = "Once." },
    { 0 },
};
static const struct cmd walk = { .name = "walk", .opts = walk_opts }, run = { .name = "run" };
const struct cmd *const cmds[] = { &walk, &run, NULL };

const struct cmd *cmd_find(const char *name)
{
    return str_eq(name, "walk") ? &walk : str_eq(name, "run") ? &run : NULL;
}

static void check_values(const struct args_parsed *p)
{
    VEC_EACH(const struct opt_value, v, &p->values) {
        FUZZ_PROMISE(v->opt && v->text);
        FUZZ_PROMISE(v->opt->type != OPT_DURATION || v->num > 0);
        FUZZ_PROMISE(v->opt->type != OPT_SIZE || v->num >= 0);
        FUZZ_PROMISE(v->opt->type != OPT_FLAG || v->num == 0 || v->num == 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct args_parsed p;
    struct err err = { 0 };
    args_init(&p, &walk);
    int r = config_parse(&p, &walk, "FILE", (const char *)data, size, &err);
    if (r == 0)
        check_values(&p);
    else
        FUZZ_PROMISE((r == LT_EUSAGE || r == LT_ELIMIT || r == LT_ENOMEM) && str_starts(err.text, "FILE:"));
    args_release(&p);
    return 0;
}
