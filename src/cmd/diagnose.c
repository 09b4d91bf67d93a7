/* diagnose: a window of a target from the store, its verdict, and why. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cmd/cmd.h"
#include "output/output.h"
#include "series/series.h"
#include "store/store.h"
#include "verdict/verdict.h"

#define WINDOW_NS (28 * 24 * 3600 * NS_PER_S)
#define TEXT_MAX ((size_t)1 << 20)

/* ---- the window ----------------------------------------------------------------------------------------------- */

struct last_seen { const char *name; int64_t last_ns; };

static int on_target(void *ctx, const struct target_row *row)
{
    struct last_seen *l = ctx;

    if (str_eq(row->name, l->name))
        l->last_ns = row->last_ns;
    return 0;
}

/* Ends at --as-of, --until, else the last sample: an old curve is judged as of then, not as of today. */
static int window_of(const struct args *args, struct store *store, int64_t *ret_from, int64_t *ret_to, struct err *err)
{
    struct last_seen last = { args->pos[0], CLOCK_INVALID };
    int64_t id, to = args_num(args, "as-of", INT64_MAX);
    int r = store_find_target(store, args->pos[0], &id, err);

    if (!r)
        r = store_each_target(store, on_target, &last, err);
    if (r)
        return r;
    to = MIN(to, args_num(args, "until", INT64_MAX));
    if (last.last_ns == CLOCK_INVALID)
        return err_set(err, LT_ENODATA, "%s: no sample yet; lowtide watch --target %s=SELECTOR takes some", args->pos[0], args->pos[0]);
    *ret_to = MIN(to, last.last_ns);
    *ret_from = args_num(args, "since", *ret_to - WINDOW_NS);
    if (*ret_from >= *ret_to)
        return err_set(err, LT_ENODATA, "%s: the window ends before it begins; the last sample is older than --since, or --until is", args->pos[0]);
    return 0;
}

/* Local time's distance from UTC at that moment: the low window is a matter of local nights. */
static int64_t utc_offset(int64_t wall_ns)
{
    time_t t = (time_t)(wall_ns / NS_PER_S);
    struct tm tm;

    return localtime_r(&t, &tm) ? (int64_t)tm.tm_gmtoff * NS_PER_S : 0;
}

/* --series a,b --series c */
static int chosen_series(const struct args *args, uint64_t *ret, struct err *err)
{
    const char *text;
    size_t pos = 0;

    *ret = 0;
    while ((text = args_next(args, "series", &pos))) {
        struct slice rest = { text, strlen(text) }, part;

        while (slice_next(&rest, ',', &part)) {
            int m;

            part = slice_trim(part);
            m = metric_by_name(part.p, part.len);
            if (m < 0)
                return err_set(err, LT_EUSAGE, "--series %.*s: no such series; lowtide help diagnose lists them", (int)part.len, part.p);
            if (metrics[m].judge == METRIC_JUDGE_NONE)
                return err_set(err, LT_EUSAGE, "--series %.*s: it is measured for context and never judged; choose another", (int)part.len, part.p);
            *ret |= UINT64_C(1) << m;
        }
    }
    return 0;
}

/* ---- running -------------------------------------------------------------------------------------------------- */

static int show(const struct args *args, const struct verdict *v, struct err *err)
{
    struct output_options o = { .colored = term_colored(STDOUT_FILENO), .explain = args_flag(args, "explain") };
    _cleanup_buf_ struct buf out;
    int r;

    buf_init(&out, TEXT_MAX);
    if (args->json)
        return cmd_print_json(output_json(v, o.explain), err);
    r = output_text(&out, v, &o);
    if (r)
        return err_set(err, r, "the answer does not fit: %s; choose fewer --series", err_sentence(r));
    fwrite(out.p, 1, out.len, stdout);
    return 0;
}

static int judge(const struct args *args, const struct series *s, const struct analysis_options *o, struct err *err)
{
    _cleanup_analysis_ struct analysis *a = NULL;
    _cleanup_verdict_ struct verdict *v = NULL;
    int r = analysis_run(&a, s, o);

    if (!r)
        r = verdict_decide(&v, a);
    if (r)
        return err_set(err, r, "%s: out of memory; choose a shorter window with --since", s->target);
    r = show(args, v, err);
    return r ? r : verdict_exit_status(v->verdict);
}

static int run(const struct args *args, struct err *err)
{
    struct analysis_options o = { .steady = args_flag(args, "steady") };
    _cleanup_series_ struct series *s = NULL;
    struct store *store = NULL;
    int64_t from = 0, to = 0;
    int r = chosen_series(args, &o.metrics, err), closed;

    if (!r)
        r = cmd_open_store(args, &store, err);
    if (r)
        return r;
    r = window_of(args, store, &from, &to, err);
    if (!r)
        r = series_load(&s, store, args->pos[0], from, to, err);
    closed = store_close(store, r ? NULL : err);
    if (r || closed)
        return r ? r : closed;
    o.utc_offset_ns = utc_offset(to);
    return judge(args, s, &o, err);
}

static const char *const examples[] = {
    "lowtide diagnose api", "judges the last four weeks of samples",
    "lowtide diagnose api --steady --since 10m", "judges a run under constant load, by requests",
    "lowtide diagnose api --series connections,fds --explain", "shows every number behind two verdicts",
    NULL,
};

static const struct cmd_pos pos[] = { { "TARGET", "target", false, false }, { 0 } };

static const struct opt opts[] = {
    { .name = "since", .type = OPT_TIME, .arg = "TIME", .help = "Begin of the window; four weeks before its end when not given." },
    { .name = "until", .type = OPT_TIME, .arg = "TIME", .help = "End of the window; the last sample when not given." },
    { .name = "as-of", .type = OPT_TIME, .arg = "TIME", .help = "What would have been said then: nothing later is used." },
    { .name = "series", .type = OPT_STRING, .arg = "NAME", .many = true, .help = "Judge only these series, separated by commas." },
    { .name = "steady", .type = OPT_FLAG, .help = "The window is one run under constant load: judge it by requests instead of days." },
    { .name = "explain", .type = OPT_FLAG, .help = "Show every number that led to the verdicts." },
    { 0 },
};

const struct cmd cmd_diagnose = {
    .name = "diagnose",
    .brief = "what grows, by how much per 1,000 requests, and the verdict",
    .description =
        "Reads a window of a target's samples from the store and says of every series whether it leaks. Counts (descriptors, threads, "
        "children, files) are decided within one run: whole things per request, ten at least, rising evenly and not coming back when the "
        "traffic ends. Memory is judged by half-hour floors, from which load, jumps and warm-ups are taken out, "
        "and a leak needs two days that agree; with --steady the window is taken for one run under "
        "constant load, the warm-up is cut, and both halves of the rest must agree.\n\n"
        "The verdicts: ok, bounded, retention, step (exit 0); leak, external (exit 1); suspect, insufficient (exit 3). Missing data is "
        "never ok: it is insufficient, with the reason and what to do.",
    .examples = examples,
    .pos = pos,
    .opts = opts,
    .run = run,
};
