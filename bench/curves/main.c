/* bench-curves: draws LT-Curves, asks Lowtide for its verdict on each, and scores the answers. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "score.h"

struct args {
    uint64_t seed;
    unsigned cases, jobs;
    int family, number; /* -1: all */
    double days, interval_s;
    bool daily, explain;
    struct detect_options detect;
    const char *json;
};

static void daily(const struct args *a, const struct curve *c, struct result *r)
{
    r->detected_s = (double)NAN;
    for (double day = 2; day <= a->days; day++) {
        struct detect_options o = a->detect;
        struct outcome out;
        struct series *s;

        o.cut_s = day * DAY_S;
        s = detect_series(c, &o);
        out = detect(s, NULL);
        series_free(s);
        if (!says_leak(&out))
            continue;
        r->daily = true;
        if (isnan(r->detected_s) && r->label.leak && o.cut_s > r->label.onset_s)
            r->detected_s = o.cut_s - r->label.onset_s;
    }
}

static void one(const struct args *a, enum family_id family, unsigned number, struct result *r, struct buf *explain)
{
    struct curve_options o = { a->seed, family, number, a->days, a->interval_s, false };
    struct curve *c = curve_make(&o);
    struct series *s;

    MUST(!c);
    s = detect_series(c, &a->detect);
    r->label = c->label;
    r->out = detect(s, explain);
    baselines(s, r->baseline);
    series_free(s);
    if (a->daily)
        daily(a, c, r);
    curve_free(c);
    r->done = true;
}

static void work(const struct args *a, struct result *r, unsigned job)
{
    for (unsigned i = 0; i < FAMILY_N * a->cases; i++)
        if (i % a->jobs == job && (a->family < 0 || i / a->cases == (unsigned)a->family))
            one(a, (enum family_id)(i / a->cases), i % a->cases, &r[i], NULL);
}

static int explain(const struct args *a)
{
    struct result r = { 0 };
    struct buf out;

    buf_init(&out, 1 << 20);
    one(a, (enum family_id)a->family, (unsigned)a->number, &r, &out);
    printf("label    %s case %u seed %llu: class %s, %s, modifier %s\n", family_name(r.label.family), r.label.number,
           (unsigned long long)r.label.seed, truth_name(r.label.class), r.label.leak ? "leak" : "healthy", modifier_name(r.label.modifier));
    if (r.label.leak)
        printf("         onset %.2f d, %.1f %% of base a week, %.2f KiB per 1k requests, %.2g things a request\n", r.label.onset_s / DAY_S,
               r.label.per_week * 100, r.label.kb_per_1k, r.label.count_per_request);
    printf("verdict  %s, class %s, %.1f ms; baselines that say leak:", verdict_name(r.out.verdict), class_name(r.out.class), r.out.ms);
    for (int b = 0; b < BASELINE_N; b++)
        printf("%s%s", r.baseline[b] ? " " : "", r.baseline[b] ? baseline_name((enum baseline_id)b) : "");
    printf("\n\n");
    fwrite(out.p, 1, out.len, stdout);
    buf_release(&out);
    return 0;
}

static int usage(void)
{
    puts("bench-curves [--seed N] [--cases N] [--family NAME [--case N --explain]] [--days N] [--interval S] [--daily]\n"
         "             [--no-heap] [--no-requests] [--jobs N] [--json FILE]");
    for (int b = 0; b < BASELINE_N; b++)
        printf("  %-15s %s\n", baseline_name((enum baseline_id)b), baseline_rule((enum baseline_id)b));
    return 2;
}

static int family_of(const char *name)
{
    for (int f = 0; f < FAMILY_N; f++)
        if (!strcmp(name, family_name((enum family_id)f)))
            return f;
    return -1;
}

static int parse(struct args *a, int argc, char **argv)
{
    static const struct option options[] = { { "seed", 1, NULL, 's' }, { "cases", 1, NULL, 'c' }, { "family", 1, NULL, 'f' },
        { "case", 1, NULL, 'n' }, { "explain", 0, NULL, 'e' }, { "days", 1, NULL, 'd' }, { "interval", 1, NULL, 'i' },
        { "daily", 0, NULL, 'D' }, { "no-heap", 0, NULL, 'H' }, { "no-requests", 0, NULL, 'R' }, { "jobs", 1, NULL, 'j' },
        { "json", 1, NULL, 'J' }, { 0 } };

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
        switch (c) {
        case 's': a->seed = strtoull(optarg, NULL, 10); break;
        case 'c': a->cases = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'f': if ((a->family = family_of(optarg)) < 0) return -1; break;
        case 'n': a->number = (int)strtol(optarg, NULL, 10); break;
        case 'e': a->explain = true; break;
        case 'd': a->days = strtod(optarg, NULL); break;
        case 'i': a->interval_s = strtod(optarg, NULL); break;
        case 'D': a->daily = true; break;
        case 'H': a->detect.no_heap = true; break;
        case 'R': a->detect.no_requests = true; break;
        case 'j': a->jobs = (unsigned)strtoul(optarg, NULL, 10); break;
        case 'J': a->json = optarg; break;
        default: return -1;
        }
    if (a->explain && (a->family < 0 || a->number < 0))
        return -1;
    return a->cases > 0 && a->cases <= 100000 && a->jobs > 0 && a->jobs <= 64 && a->days >= 1 && a->days <= 28 && a->interval_s >= 1 &&
           a->interval_s <= 300 && optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct args a = { .seed = 1, .cases = 50, .jobs = 2, .family = -1, .number = -1, .days = 7, .interval_s = 30 };
    struct result *r;
    size_t n, done = 0;
    int status = 0;

    if (parse(&a, argc, argv))
        return usage();
    if (a.explain)
        return explain(&a);
    n = FAMILY_N * (size_t)a.cases;
    r = mmap(NULL, n * sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(r == MAP_FAILED);
    for (unsigned j = 0; j < a.jobs; j++) {
        pid_t pid = fork();

        MUST(pid < 0);
        if (!pid) {
            work(&a, r, j);
            _exit(0);
        }
    }
    for (int st; wait(&st) > 0;)
        status |= st;
    for (size_t i = 0; i < n; i++)
        done += r[i].done;
    MUST(status || !done);
    printf("LT-Curves: seed %llu, %zu cases, %g days at %g s%s%s\n", (unsigned long long)a.seed, done, a.days, a.interval_s,
           a.detect.no_heap ? ", no heap_used" : "", a.detect.no_requests ? ", no requests" : "");
    score_text(r, n, a.daily, a.days);
    if (a.json && score_json(a.json, r, n, a.daily, a.days))
        return perror(a.json), 1;
    return 0;
}
