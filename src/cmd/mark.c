/* mark: an event on a target's timeline. */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "store/store.h"

#define TEXT_MAX 1000

static int put(const struct args *args, struct store *store, int64_t at, const char *text, struct err *err)
{
    int64_t id;
    int r = store_find_target(store, args->pos[0], &id, err);
    return r ? r : store_put_event(store, id, at, args_str(args, "kind"), text, err);
}

static int mark_run(const struct args *args, struct err *err)
{
    struct store *store;
    struct err close_err = { 0 };
    char text[TEXT_MAX + 1], when[CLOCK_TEXT_MAX];
    int64_t at = args_num(args, "at", clock_wall_ns());
    if (!*args->pos[1])
        return err_set(err, LT_EUSAGE, "TEXT: is empty; say what happened, such as \"v1.42\"");
    if (strlen(args->pos[1]) > TEXT_MAX)
        return err_set(err, LT_EUSAGE, "TEXT: longer than %d bytes; say it shorter", TEXT_MAX);
    str_copy(text, sizeof text, args->pos[1]);
    str_printable(text);
    /* Nothing to mark in a store that is not there: it is not made for this. */
    int r = cmd_open_store(args, &store, err);
    if (r)
        return r;
    store_close(store, &close_err);
    r = cmd_open_store_to_write(args, &store, err);
    if (r)
        return r;
    r = put(args, store, at, text, err);
    int c = store_close(store, r ? &close_err : err);
    r = r ? r : c;
    if (!r && args->json)
        return cmd_print_json(json_pack("{s:o, s:o, s:s, s:s}", "target", cmd_json_text(args->pos[0]), "at", cmd_json_time(at), "kind",
                                        args_str(args, "kind"), "text", text), err);
    if (!r && !args->quiet)
        printf("%s  %s  %s: %s\n", clock_rfc3339(at, when), args->pos[0], args_str(args, "kind"), text);
    return r;
}

static const struct cmd_pos mark_pos[] = { { "TARGET", "target", false, false }, { "TEXT", "none", false, false }, { 0 } };
static const struct opt mark_opts[] = {
    { .name = "kind", .type = OPT_CHOICE, .arg = "deploy|config|scale|restart|note", .preset = "note",
      .help = "What kind of event it is." },
    { .name = "at", .type = OPT_TIME, .preset = "now", .help = "When it happened." },
    { 0 },
};
static const char *const mark_examples[] = {
    "lowtide mark api \"v1.42\" --kind deploy", "Tell diagnose that a release went out now.",
    "lowtide mark api \"cache raised to 4 GiB\" --kind config --at 2h", "A change made two hours ago.",
    NULL,
};

const struct cmd cmd_mark = {
    .name = "mark",
    .brief = "record an event: a release, a change of configuration or scale, a note",
    .description = "Steps in a curve are joined to events, so a step that follows a release is told from a leak. Releases are best "
                   "marked by the tool that deploys.",
    .examples = mark_examples,
    .pos = mark_pos,
    .opts = mark_opts,
    .run = mark_run,
};
