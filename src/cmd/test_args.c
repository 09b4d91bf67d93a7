/* Options, positional arguments, config file: against a small verb table of its own. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cmd/args.h"
#include "lib/harness.h"

static const struct opt walk_opts[] = {
    { .name = "target", .type = OPT_STRING, .arg = "NAME=SELECTOR", .many = true, .help = "A target." },
    { .name = "interval", .type = OPT_DURATION, .preset = "30s", .help = "Time." },
    { .name = "size", .type = OPT_SIZE, .help = "Size." },
    { .name = "at", .type = OPT_TIME, .help = "When." },
    { .name = "out", .letter = 'o', .type = OPT_PATH, .help = "File." },
    { .name = "kind", .type = OPT_CHOICE, .arg = "curve|requests|events", .help = "Kind." },
    { .name = "top", .type = OPT_INT, .help = "How many." },
    { .name = "once", .type = OPT_FLAG, .help = "Once." },
    { 0 },
};
static const struct cmd_pos walk_pos[] = { { "TARGET", "target", false, false }, { "FILE", "file", true, true }, { 0 } };
static const struct cmd walk = { .name = "walk", .pos = walk_pos, .opts = walk_opts };
static const struct opt run_opts[] = { { .name = "speed", .type = OPT_INT, .help = "Speed." }, { 0 } };
static const struct cmd run = { .name = "run", .opts = run_opts };
static const struct cmd hidden = { .name = "secret", .hidden = true };
const struct cmd *const cmds[] = { &walk, &run, &hidden, NULL };

const struct cmd *cmd_find(const char *name)
{
    for (const struct cmd *const *c = cmds; *c; c++)
        if (str_eq((*c)->name, name))
            return *c;
    return NULL;
}

static struct err err;

static int parse_for(struct args_parsed *p, const struct cmd *cmd, const char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    err = (struct err){ 0 };
    args_init(p, cmd);
    return args_parse(p, cmd, n, words, &err);
}

#define PARSE(p, ...) parse_for(p, &walk, (const char *const[]){ __VA_ARGS__, NULL })

static void refused(const char *why, const char *const *words)
{
    struct args_parsed p;
    assert_int_equal(parse_for(&p, &walk, words), LT_EUSAGE);
    assert_string_equal(err.text, why);
    args_release(&p);
}

#define REFUSED(why, ...) refused(why, (const char *const[]){ __VA_ARGS__, NULL })

static void test_forms(void **state)
{
    struct args_parsed p;
    size_t pos = 0;
    (void)state;
    assert_int_equal(PARSE(&p, "--target", "a=port:1", "api", "--size=2k", "-qvo", "f", "--target=b=pid:2", "--", "--x"), 0);
    assert_int_equal(p.args.npos, 2);
    assert_string_equal(p.args.pos[0], "api");
    assert_string_equal(p.args.pos[1], "--x");
    assert_string_equal(args_next(&p.args, "target", &pos), "a=port:1");
    assert_string_equal(args_next(&p.args, "target", &pos), "b=pid:2");
    assert_null(args_next(&p.args, "target", &pos));
    assert_int_equal(args_num(&p.args, "size", 0), 2048);
    assert_true(p.args.quiet && p.args.verbose && !p.args.json);
    assert_string_equal(args_str(&p.args, "out"), "f");
    assert_int_equal(args_num(&p.args, "interval", 0), 30 * NS_PER_S);
    assert_int_equal(args_num(&p.args, "top", 7), 7);
    args_release(&p);
}

static void test_last_one_wins(void **state)
{
    struct args_parsed p;
    (void)state;
    assert_int_equal(PARSE(&p, "api", "--interval", "1s", "--interval", "200ms", "--once", "--no-once", "-of", "--out=g"), 0);
    assert_int_equal(args_num(&p.args, "interval", 0), 200 * NS_PER_MS);
    assert_false(args_flag(&p.args, "once"));
    assert_string_equal(args_str(&p.args, "out"), "g");
    args_release(&p);
}

static void test_help_ends_checks(void **state)
{
    struct args_parsed p;
    (void)state;
    assert_int_equal(PARSE(&p, "--help"), 0);
    assert_true(p.help);
    args_release(&p);
    assert_int_equal(PARSE(&p, "-h"), 0);
    assert_true(p.help);
    args_release(&p);
}

static void test_errors(void **state)
{
    (void)state;
    REFUSED("--intervall: no such option; did you mean --interval?", "api", "--intervall", "1s");
    REFUSED("--zzzzzzz: no such option; lowtide help walk lists them", "api", "--zzzzzzz");
    REFUSED("-z: no such option; lowtide help walk lists them", "api", "-z");
    REFUSED("--interval: needs a value; write --interval DURATION", "api", "--interval");
    REFUSED("--interval: needs a value; write --interval DURATION", "--interval", "--once", "api");
    REFUSED("--interval 3x: not a duration; write one such as 200ms, 30s, 5m, 8h, 7d", "api", "--interval", "3x");
    REFUSED("--size -1: not a size; write one such as 512MiB, 2GB or plain bytes", "api", "--size", "-1");
    REFUSED("--top 2.5: not a whole number; write one such as 20", "api", "--top=2.5");
    REFUSED("--kind curves: not one of curve|requests|events; did you mean curve?", "api", "--kind", "curves");
    REFUSED("--kind 9: not a known choice; write one of curve|requests|events", "api", "--kind", "9");
    REFUSED("--once perhaps: not true or false; write one of the two", "api", "--once=perhaps");
    REFUSED("--out : an empty value; write PATH", "api", "--out=");
    REFUSED("TARGET: is missing; lowtide help walk shows the form", "--once");
}

static void test_too_many(void **state)
{
    struct args_parsed p;
    const char *const words[] = { "x", NULL };
    (void)state;
    assert_int_equal(parse_for(&p, &run, words), LT_EUSAGE);
    assert_string_equal(err.text, "x: one argument too many; lowtide help run shows the form");
    args_release(&p);
}

static int64_t time_of(const char *text)
{
    struct opt_value v = { .num = 0 };
    const struct opt *at = args_find_opt(&walk, "at", 2);
    return args_value(at, text, &v, &err) ? -1 : v.num;
}

static void test_times(void **state)
{
    (void)state;
    assert_int_equal(time_of("2026-11-30T20:30:37Z"), INT64_C(1796070637) * NS_PER_S);
    assert_int_equal(time_of("2026-11-30T21:30:37+01:00"), INT64_C(1796070637) * NS_PER_S);
    assert_int_equal(time_of("2026-11-30"), INT64_C(1795996800) * NS_PER_S);
    assert_int_equal(time_of("1796070637.5"), INT64_C(1796070637) * NS_PER_S + NS_PER_S / 2);
    assert_int_equal(time_of("yesterday"), -1);
    assert_int_equal(time_of("2026-13-01"), -1);
    int64_t before = clock_wall_ns(), then = time_of("2h"), after = clock_wall_ns();
    assert_true(then >= before - 7200 * NS_PER_S && then <= after - 7200 * NS_PER_S);
}

/* ---- the config file ------------------------------------------------------------------------------------------ */

static const char *config_file(const char *text)
{
    static char path[4096];
    str_fmt(path, sizeof path, "%s/c.yaml", harness_tmpdir());
    assert_int_equal(fd_write_file(path, text, strlen(text)), 0);
    return path;
}

static void test_config(void **state)
{
    struct args_parsed p;
    size_t pos = 0;
    (void)state;
    const char *path = config_file("db: /x/y.db\n"
                                   "interval: 5s\n"
                                   "once: true\n"
                                   "walk:\n"
                                   "  target: [a=port:1, b=pid:2]\n"
                                   "  interval: 10s\n"
                                   "  size: 1k\n"
                                   "run:\n"
                                   "  speed: 3\n");
    assert_int_equal(PARSE(&p, "api", "--config", path, "--size", "2k"), 0);
    assert_string_equal(p.args.db, "/x/y.db");
    assert_int_equal(args_num(&p.args, "interval", 0), 10 * NS_PER_S);  /* the section before the top level */
    assert_int_equal(args_num(&p.args, "size", 0), 2048);               /* the command line before both */
    assert_true(args_flag(&p.args, "once"));
    assert_string_equal(args_next(&p.args, "target", &pos), "a=port:1");
    assert_string_equal(args_next(&p.args, "target", &pos), "b=pid:2");
    assert_null(args_next(&p.args, "target", &pos));
    args_release(&p);
    pos = 0;
    assert_int_equal(PARSE(&p, "api", "--config", path, "--target", "c=pid:3"), 0);
    assert_string_equal(args_next(&p.args, "target", &pos), "c=pid:3"); /* its list replaces the file's */
    assert_null(args_next(&p.args, "target", &pos));
    args_release(&p);
}

static void test_config_mapping(void **state)
{
    struct args_parsed p;
    size_t pos = 0;
    (void)state;
    assert_int_equal(PARSE(&p, "api", "--config", config_file("target: {a: port:1}\nwalk: ~\n")), 0);
    assert_string_equal(args_next(&p.args, "target", &pos), "a=port:1");
    args_release(&p);
    assert_int_equal(PARSE(&p, "api", "--config", config_file("# nothing\n")), 0);
    args_release(&p);
}

static void bad_config(const char *text, const char *line_and_why)
{
    struct args_parsed p;
    char want[5000];
    const char *path = config_file(text);
    assert_int_equal(PARSE(&p, "api", "--config", path), LT_EUSAGE);
    str_fmt(want, sizeof want, "%s:%s", path, line_and_why);
    assert_string_equal(err.text, want);
    args_release(&p);
}

static void test_config_errors(void **state)
{
    (void)state;
    bad_config("once: true\nintervall: 3s\n", "2: intervall: no such key; did you mean interval?");
    bad_config("speed: 3\n", "1: speed: not an option of walk but of run; put it under \"run:\"");
    bad_config("run:\n  speed: 3\n  sped: 4\n", "3: sped: no such key; did you mean speed?");
    bad_config("run:\n  speed: fast\n", "2: speed: fast: not a whole number; write one such as 20");
    bad_config("interval: 3x\n", "1: interval: 3x: not a duration; write one such as 200ms, 30s, 5m, 8h, 7d");
    bad_config("interval: [1s, 2s]\n", "1: interval: takes one value; write interval: DURATION");
    bad_config("once: true\nonce: false\n", "2: once: written before on line 1; keep one of the two");
    bad_config("interval:\n", "1: interval: not a value; write interval: DURATION");
    bad_config("- a\n", "1: not a mapping; write lines of the form KEY: VALUE");
    bad_config("[a, b]: 1\n", "1: a key that is not text; write the name of an option");
    bad_config("config: x\n", "1: config: means nothing in a file; give it on the command line");
    bad_config("secret: {}\n", "1: secret: no such key; lowtide help walk lists them");
}

static void test_config_not_yaml(void **state)
{
    struct args_parsed p;
    (void)state;
    assert_int_equal(PARSE(&p, "api", "--config", config_file("a: [1, 2\nb: 3\n")), LT_EUSAGE);
    assert_non_null(strstr(err.text, ": not YAML: "));
    args_release(&p);
    assert_int_equal(PARSE(&p, "api", "--config", "/nonexistent.yaml"), LT_EUSAGE);
    assert_string_equal(err.text, "/nonexistent.yaml: cannot be read: No such file or directory; check --config");
    args_release(&p);
}

static int parse_once(void *ctx)
{
    struct args_parsed p;
    args_init(&p, &walk);
    int r = args_parse(&p, &walk, 4, ctx, NULL);
    args_release(&p);
    return r == LT_ELIMIT ? LT_ENOMEM : r; /* a full vector and a failed one look alike */
}

static void test_no_memory(void **state)
{
    const char *path = config_file("target: [a=port:1, b=pid:2]\n");
    const char *words[] = { "api", "--once", "--config", path };
    (void)state;
    harness_sweep_allocs(parse_once, words);
}

static void test_nearest(void **state)
{
    (void)state;
    assert_string_equal(nearest_verb("wlak", 4), "walk");
    assert_null(nearest_verb("secret", 6)); /* hidden ones are not offered */
    assert_null(nearest_verb("xyzzy", 5));
    assert_string_equal(nearest_option(&walk, "verb", 4), "verbose");
    assert_string_equal(nearest_option(&walk, "trget", 5), "target");
    assert_null(nearest_option(&walk, "a-word-much-longer-than-any-option-there-is", 43));
}

HARNESS_MAIN(CASE(test_forms), CASE(test_last_one_wins), CASE(test_help_ends_checks), CASE(test_errors), CASE(test_too_many),
             CASE(test_times), CASE(test_config), CASE(test_config_mapping), CASE(test_config_errors), CASE(test_config_not_yaml),
             CASE(test_no_memory), CASE(test_nearest))
