/* watch: samples targets into the store until stopped. Options and set-up; the loop is in loop.c. */
#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "base/units.h"
#include "cmd/cmd.h"
#include "cmd/watch/watching.h"
#include "source/procfs.h"

#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define INTERVAL_MAX_NS (24 * 3600 * NS_PER_S)
#define TMP_DIRS_MAX 64

/* ---- names of targets ----------------------------------------------------------------------------------------- */

static bool name_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._-", c));
}

static size_t name_length(const char *s)
{
    size_t n = 0;
    while (name_char(s[n]))
        n++;
    return n;
}

static bool comm_of(const char *digits, char *out, size_t size)
{
    struct proc_stat st;
    int64_t pid;
    _cleanup_fd_ int proc = fd_open(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);
    if (proc < 0 || units_int(digits, strlen(digits), &pid) || pid <= 0 || pid > INT32_MAX || procfs_stat_of(proc, (int32_t)pid, &st))
        return false;
    str_copy(out, size, st.comm);
    return *out;
}

/* A target named by its selector alone: the process's comm, or the selector's last part. */
static void name_from_selector(const char *selector, char *out, size_t size)
{
    const char *colon = strchr(selector, ':'), *value = colon ? colon + 1 : selector, *slash = strrchr(value, '/');
    bool pid = !colon || str_starts(selector, "pid:");
    if (!pid || !comm_of(value, out, size)) {
        bool last = str_starts(selector, "unit:") || (slash && slash[1]);
        str_fmt(out, size, "%.*s%s%s", last ? 0 : colon ? (int)(colon - selector) : 3, colon ? selector : "pid", last ? "" : "-",
                slash && slash[1] ? slash + 1 : value);
    }
    for (char *c = out; *c; c++)
        *c = name_char(*c) ? *c : '-';
}

int watched_parse(const char *text, struct watched *ret, struct err *err)
{
    struct watched w = { .id = 0 };
    struct err why = { 0 };
    size_t n = name_length(text);
    bool named = n && text[n] == '=';
    const char *selector = named ? text + n + 1 : text;
    if (named && n >= sizeof w.name)
        return err_set(err, LT_EUSAGE, "%s: the name is longer than %zu characters; choose a shorter one", text, sizeof w.name - 1);
    if (strlen(selector) >= sizeof w.selector)
        return err_set(err, LT_EUSAGE, "%.40s...: the selector is longer than %zu characters; choose a shorter one", selector,
                       sizeof w.selector - 1);
    if (selector_check(selector, &why))
        return err_set(err, LT_EUSAGE, "%s", why.text);
    str_copy(w.selector, sizeof w.selector, selector);
    if (named)
        str_fmt(w.name, sizeof w.name, "%.*s", (int)n, text);
    else
        name_from_selector(selector, w.name, sizeof w.name);
    *ret = w;
    return 0;
}

static int add_target(struct vec *targets, const char *text, struct err *err)
{
    struct watched w;
    int r = watched_parse(text, &w, err);
    if (r)
        return r;
    VEC_EACH(struct watched, t, targets)
        if (str_eq(t->name, w.name))
            return err_set(err, LT_EUSAGE, "%s: two targets of that name; give each its own with --target NAME=SELECTOR", w.name);
    return vec_append(targets, &w) ? err_set(err, LT_ELIMIT, "more than %d targets; watch them in two stores", TARGETS_MAX) : 0;
}

static int read_targets(const struct args *args, struct vec *targets, struct err *err)
{
    size_t pos = 0;
    int r = 0;
    for (size_t i = 0; i < args->npos && !r; i++)
        r = add_target(targets, args->pos[i], err);
    for (const char *t; !r && (t = args_next(args, "target", &pos));)
        r = add_target(targets, t, err);
    if (!r && args_flag(args, "self")) {
        char self[64];
        str_fmt(self, sizeof self, "lowtide=pid:%d", (int)getpid());
        r = add_target(targets, self, err);
    }
    if (!r && !targets->n)
        r = err_set(err, LT_EUSAGE, "no target is given; write --target NAME=SELECTOR, or a selector such as port:8000");
    return r;
}

/* ---- set-up --------------------------------------------------------------------------------------------------- */

static int read_tmp_dirs(const struct args *args, const char *dirs[TMP_DIRS_MAX], size_t *ret_n, struct err *err)
{
    size_t pos = 0, n = 0;
    for (const char *d; (d = args_next(args, "tmp", &pos)); n++) {
        if (d[0] != '/')
            return err_set(err, LT_EUSAGE, "--tmp %s: not an absolute path; write one such as /tmp", d);
        if (n == TMP_DIRS_MAX)
            return err_set(err, LT_ELIMIT, "--tmp: more than %d folders; give fewer", TMP_DIRS_MAX);
        dirs[n] = d;
    }
    *ret_n = n;
    return 0;
}

static int add_all(struct watching *w, struct store *store, struct vec *targets, struct err *err)
{
    struct err why = { 0 };
    VEC_EACH(struct watched, t, targets) {
        int r = store_target(store, t->name, t->selector, &t->id, err);
        if (r)
            return r;
        r = watch_add(w->watch, t->name, t->selector, t->id, &why);
        if (r)
            return err_set(err, r, "%s: %s", t->name, why.text);
    }
    return 0;
}

static int open_store(const struct args *args, struct store **ret, struct err *err)
{
    char path[PATH_MAX];
    struct store_config config = {
        .disk_budget_bytes = args_num(args, "disk-budget", 0),
        .raw_keep_ns = args_num(args, "keep", 0),
        .interval_ns = args_num(args, "interval", 0),
    };
    int r = cmd_db_path(args, true, path, sizeof path, err);
    if (r)
        return r;
    r = store_open(ret, path, STORE_WATCH, &config, err);
    if (!r && store_damage(*ret))
        log_warn("%s", store_damage(*ret));
    return r;
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

static json_t *summary(const struct watching *w, const struct vec *targets)
{
    struct watch_stats st;
    json_t *list = json_array();
    watch_stats(w->watch, &st);
    VEC_EACH(const struct watched, t, targets)
        json_array_append_new(list, json_pack("{s:s, s:o, s:I, s:b}", "name", t->name, "selector", cmd_json_text(t->selector), "lives",
                                              (json_int_t)t->begun, "present", (int)(t->lives > 0)));
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "targets", list, "sweeps", (json_int_t)w->sweeps, "missed",
                     (json_int_t)w->missed, "failed", (json_int_t)w->failed, "gaps", (json_int_t)w->gaps, "samples",
                     (json_int_t)w->samples, "forks", (json_int_t)st.forks, "execs", (json_int_t)st.execs, "exits",
                     (json_int_t)st.exits, "event_overflows", (json_int_t)st.overflows, "cpu_s", (double)st.cpu_ns / 1e9);
}

/* A watch with an end of its own that never saw a target has not measured what it was asked to. */
static int check_seen(const struct watching *w, const struct vec *targets, struct err *err)
{
    VEC_EACH(const struct watched, t, targets)
        if (!t->begun && !w->stopped)
            return err_set(err, LT_ENOENT, "%s: no process matched %s; start it, or correct the selector", t->name, t->selector);
    return 0;
}

static int finish(struct watching *w, const struct args *args, const struct vec *targets, struct err *err)
{
    int r = args->json ? cmd_print_json(summary(w, targets), err) : 0;
    if (!args->json)
        log_info("sweeps %llu, processes seen %llu, ended %llu", (unsigned long long)w->sweeps, (unsigned long long)w->recorder.begun,
                 (unsigned long long)w->recorder.ended);
    return r ? r : check_seen(w, targets, err);
}

/* What the command line asked for. */
struct wanted { const struct args *args; struct vec targets; const char *dirs[TMP_DIRS_MAX]; size_t ndirs; };

static int watch_targets(struct watching *w, struct wanted *wanted, struct store *store, struct err *err)
{
    const struct args *args = wanted->args;
    struct vec *targets = &wanted->targets;
    int64_t last;
    const struct watch_config config = {
        .proc_root = "/proc", .cgroup_root = "/sys/fs/cgroup", .tmp_dirs = wanted->dirs, .ntmp = wanted->ndirs,
        .watch_self = args_flag(args, "self"),
    };
    recorder_init(&w->recorder, store, targets);
    struct watch_sink sink = recorder_sink(&w->recorder);
    int r = store_last_sweep(store, &last, err);
    if (!r)
        r = watch_open(&w->watch, &config, &sink, err);
    if (!r) {
        sweep_clock_init(&w->clock, args_num(args, "interval", 0), last);
        w->recorder.floor_ns = last;
        r = add_all(w, store, targets, err);
        if (!r)
            r = watching_run(w, err);
        if (!r)
            r = finish(w, args, targets, err);
        watch_close(w->watch); /* ends what still runs as unwatched */
    }
    recorder_release(&w->recorder);
    return r;
}

static int watch_store(struct watching *w, struct wanted *wanted, struct err *err)
{
    struct store *store;
    struct err close_err = { 0 };
    int r = open_store(wanted->args, &store, err);
    if (r)
        return r;
    r = watch_targets(w, wanted, store, err);
    int c = store_close(store, &close_err);
    if (r || !c)
        return r;
    *err = close_err;
    return c;
}

static int watch_run(const struct args *args, struct err *err)
{
    struct watching w = { .duration_ns = args_num(args, "duration", 0), .once = args_flag(args, "once") };
    struct wanted wanted = { .args = args };
    int64_t interval = args_num(args, "interval", 0);
    if (interval < INTERVAL_MIN_NS || interval > INTERVAL_MAX_NS)
        return err_set(err, LT_EUSAGE, "--interval %s: not between 10ms and 24h; write one such as 30s", args_str(args, "interval"));
    w.progress = isatty(STDERR_FILENO) && !args->quiet;
    cmd_signal_fd(); /* from here on a stop is clean */
    vec_init(&wanted.targets, sizeof(struct watched), TARGETS_MAX);
    int r = read_targets(args, &wanted.targets, err);
    if (!r)
        r = read_tmp_dirs(args, wanted.dirs, &wanted.ndirs, err);
    if (!r)
        r = watch_store(&w, &wanted, err);
    vec_release(&wanted.targets);
    return r;
}

static const struct opt watch_opts[] = {
    { .name = "target", .type = OPT_STRING, .arg = "NAME=SELECTOR", .many = true,
      .help = "A target and how its processes are found; without NAME= the name is made from the selector." },
    { .name = "interval", .type = OPT_DURATION, .preset = "30s", .help = "Time between two sweeps, 10ms to 24h." },
    { .name = "duration", .type = OPT_DURATION, .help = "End after this time; without it the watch runs until it is stopped." },
    { .name = "once", .type = OPT_FLAG, .help = "Take one sweep and end." },
    { .name = "tmp", .type = OPT_PATH, .arg = "DIR", .many = true,
      .help = "A temp folder whose files count for the targets, as they see it." },
    { .name = "self", .type = OPT_FLAG, .help = "Watch this watcher too, as the target \"lowtide\"." },
    { .name = "keep", .type = OPT_DURATION, .help = "How long raw samples are kept before they are thinned; else 14d." },
    { .name = "disk-budget", .type = OPT_SIZE, .help = "Most room the store may take; else 256MiB. The oldest raw samples go first." },
    { 0 },
};

static const struct cmd_pos watch_pos[] = { { "SELECTOR", "selector", true, true }, { 0 } };

static const char *const watch_examples[] = {
    "lowtide watch --target api=port:8000", "Watch who listens on port 8000, and its workers, until Ctrl-C.",
    "lowtide watch port:8000 --interval 1s --duration 3s", "Three seconds, one sweep a second; the target is named port-8000.",
    "lowtide watch pid:1234 --once --json", "One sweep of one process, and what was done as JSON.",
    NULL,
};

const struct cmd cmd_watch = {
    .name = "watch",
    .brief = "sample targets into the store until stopped",
    .description =
        "Reads every process of every target once an interval and writes memory, descriptors, sockets, threads, children and "
        "more into the store. Workers and other children belong to the target; each is a life of its own, and how it ended is "
        "kept. The watched processes are never stopped, traced or written to.\n"
        "\n"
        "A target that is not there yet is waited for. A second watcher on the same store is refused. SIGTERM, SIGINT and SIGHUP "
        "end the watch: what was read is written and the status is 0. With --duration or --once the status is 3 when a target "
        "was never seen. When the disk is full, sampling goes on and the last hour is kept in memory until there is room.\n"
        "\n"
        "A sweep that came late, a machine that slept and a clock that was set are recorded as gaps; no verdict trusts a span "
        "that touches one. Sweeps never go back in time: while the clock is behind the last sweep, time in the store runs at "
        "half speed until the clock has caught up.\n"
        "\n"
        "Under a service manager that sets NOTIFY_SOCKET it says when it is ready and that it lives (Type=notify, WatchdogSec=).",
    .examples = watch_examples,
    .pos = watch_pos,
    .opts = watch_opts,
    .run = watch_run,
};
