/* top: a live view of a target's processes, read by ourselves or from the store. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/top/top.h"
#include "source/source.h"

#define FRAME_MAX (8u << 20)
#define INTERVAL_MIN_NS (100 * NS_PER_MS)

struct top {
    struct top_source source;
    struct top_rows rows;
    struct top_view view;
    struct buf frame;
    int64_t interval_ns;
};

static int refresh(struct top *t, struct err *err)
{
    int r = t->source.refresh(t->source.state, &t->rows, err);
    top_rows_sort(&t->rows, t->view.order);
    return r;
}

/* ---- one frame, for pipes and files --------------------------------------------------------------------------- */

static json_t *row_json(const struct top_row *r)
{
    json_t *o = json_pack("{s:s, s:o, s:s, s:o}", "target", r->target, "pid",
                          r->pid == PID_UNKNOWN ? json_null() : json_integer(r->pid), "role", r->what, "cpu_pct",
                          isnan(r->cpu_pct) ? json_null() : json_real(r->cpu_pct));
    for (int m = 0; o && m < METRIC_N; m++)
        if (r->v[m] != METRIC_NA)
            json_object_set_new(o, metrics[m].name, json_integer(r->v[m]));
    return o;
}

static int print_json(const struct top *t, struct err *err)
{
    json_t *list = json_array();
    VEC_EACH(const struct top_row, r, &t->rows.rows)
        json_array_append_new(list, row_json(r));
    return cmd_print_json(json_pack("{s:o, s:o}", "at", cmd_json_time(clock_wall_ns()), "rows", list), err);
}

static bool any_process(const struct top *t)
{
    VEC_EACH(const struct top_row, r, &t->rows.rows)
        if (r->pid)
            return true;
    return false;
}

static int one_frame(struct top *t, const struct args *args, struct err *err)
{
    int r = refresh(t, err);
    if (!r && t->source.needs_two && any_process(t)) {
        r = cmd_wait_until(clock_mono_ns() + t->interval_ns);
        if (r == LT_EINTR)
            return 0;
        r = refresh(t, err);
    }
    if (r)
        return r;
    if (!any_process(t))
        return err_set(err, LT_ENODATA, "%s: no process to show; check with lowtide status, or start it", t->view.title);
    if (args->json)
        return print_json(t, err);
    t->view.width = (size_t)term_width(STDOUT_FILENO);
    top_draw(&t->view, &t->rows, clock_wall_ns(), &t->frame);
    fwrite(t->frame.p, 1, t->frame.len, stdout);
    return 0;
}

/* ---- the live view -------------------------------------------------------------------------------------------- */

static int draw(struct top *t)
{
    t->view.width = (size_t)term_width(STDOUT_FILENO);
    t->view.height = (size_t)term_height(STDOUT_FILENO);
    top_draw(&t->view, &t->rows, clock_wall_ns(), &t->frame);
    return screen_show(&t->frame);
}

static void on_key(struct top *t, enum top_key key)
{
    size_t page = t->view.height > 10 ? t->view.height - 10 : 1;
    if (key == KEY_SORT) {
        t->view.order = (enum top_order)((t->view.order + 1) % TOP_ORDER_N);
        top_rows_sort(&t->rows, t->view.order);
    } else if (key == KEY_UP && t->view.selected) {
        t->view.selected--;
    } else if (key == KEY_DOWN) {
        t->view.selected++; /* top_draw keeps it on a row */
    } else if (key == KEY_PAGE_UP) {
        t->view.selected -= MIN(t->view.selected, page);
    } else if (key == KEY_PAGE_DOWN) {
        t->view.selected += page;
    }
}

static int live_view(struct top *t, struct err *err)
{
    int64_t next = clock_mono_ns();
    for (;;) {
        enum top_key key = KEY_NONE;
        if (clock_mono_ns() >= next) {
            int r = refresh(t, err);
            if (r)
                return r;
            next = MAX(next + t->interval_ns, clock_mono_ns());
        }
        if (draw(t))
            return 0; /* the terminal is gone: so is the reader */
        key = screen_wait(next);
        if (key == KEY_QUIT)
            return 0;
        on_key(t, key);
    }
}

/* ---- the verb ------------------------------------------------------------------------------------------------- */

static int run_view(struct top *t, const struct args *args, struct err *err)
{
    if (!isatty(STDOUT_FILENO) || args->json)
        return one_frame(t, args, err);
    t->view.colored = term_colored(STDOUT_FILENO);
    int r = screen_open(err);
    if (r)
        return r;
    r = live_view(t, err);
    screen_close();
    return r;
}

static enum top_order order_by_name(const char *name)
{
    int o = 0;
    while (o < TOP_ORDER_N && !str_eq(top_order_name((enum top_order)o), name))
        o++;
    return (enum top_order)(o % TOP_ORDER_N);
}

static int open_source(const struct args *args, struct top_source *ret, struct err *err)
{
    const char *what = args->npos ? args->pos[0] : NULL;
    if (what && !selector_check(what, NULL))
        return top_live_open(what, ret, err);
    if (what && strchr(what, ':'))
        return selector_check(what, err);
    return top_stored_open(args, what, args_num(args, "window", 0), ret, err);
}

static int top_run(const struct args *args, struct err *err)
{
    struct top t = { .interval_ns = args_num(args, "interval", 0), .view.order = order_by_name(args_str(args, "sort")) };
    if (t.interval_ns < INTERVAL_MIN_NS)
        return err_set(err, LT_EUSAGE, "--interval %s: under 100ms; write one such as 1s", args_str(args, "interval"));
    cmd_signal_fd();
    int r = open_source(args, &t.source, err);
    if (r)
        return r;
    str_fmt(t.view.title, sizeof t.view.title, "%s", args->npos ? args->pos[0] : "all targets");
    str_printable(t.view.title);
    top_rows_init(&t.rows);
    buf_init(&t.frame, FRAME_MAX);
    r = run_view(&t, args, err);
    buf_release(&t.frame);
    top_rows_release(&t.rows);
    t.source.close(t.source.state);
    return r;
}

static const struct cmd_pos top_pos[] = { { "TARGET", "target", true, false }, { 0 } };
static const struct opt top_opts[] = {
    { .name = "interval", .type = OPT_DURATION, .preset = "1s", .help = "Time between two looks." },
    { .name = "sort", .type = OPT_CHOICE, .arg = "anon|grown|fds|cpu|pid", .preset = "anon", .help = "What to order by." },
    { .name = "window", .type = OPT_DURATION, .preset = "1h", .help = "From the store: how far back the lines reach." },
    { 0 },
};
static const char *const top_examples[] = {
    "lowtide top port:8000", "Look at a service directly; nothing is stored.",
    "lowtide top api --sort grown", "What the watcher has written of api in the last hour, what grew most first.",
    NULL,
};

const struct cmd cmd_top = {
    .name = "top",
    .brief = "a live view of a target's processes",
    .description =
        "With a selector it reads the processes itself and stores nothing; with a target's name, or nothing, it shows what a "
        "watcher wrote. GROWN is the change of anonymous memory since top first saw the process, or over the window.\n"
        "\n"
        "Keys: q ends, s changes the order, up and down select a process; the lines at the bottom say more of it. When the "
        "output is not a terminal, one frame is printed.",
    .examples = top_examples,
    .pos = top_pos,
    .opts = top_opts,
    .run = top_run,
};
