#include "score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct ratio wilson(size_t hits, size_t n)
{
    double z = 1.959964, p = n ? (double)hits / (double)n : 0, m = (double)n, mid, half;

    if (!n)
        return (struct ratio){ (double)NAN, 0, 1 };
    mid = (p + z * z / (2 * m)) / (1 + z * z / m);
    half = z * sqrt(p * (1 - p) / m + z * z / (4 * m * m)) / (1 + z * z / m);
    return (struct ratio){ p, fmax(0, mid - half), fmin(1, mid + half) };
}

enum truth outcome_class(const struct outcome *o, enum truth label)
{
    switch (o->verdict) {
    case VERDICT_OK: return TRUTH_OK;
    case VERDICT_STEP: return TRUTH_STEP;
    case VERDICT_BOUNDED: return label == TRUTH_OK ? TRUTH_OK : TRUTH_BOUNDED;
    case VERDICT_RETENTION: return label == TRUTH_OK ? TRUTH_OK : TRUTH_RETENTION;
    case VERDICT_EXTERNAL: return TRUTH_EXTERNAL;
    case VERDICT_LEAK:
        return o->class == CLASS_SAWTOOTH ? TRUTH_SAWTOOTH : o->class == CLASS_COUNT ? TRUTH_COUNT :
               o->class == CLASS_EXTERNAL ? TRUTH_EXTERNAL : TRUTH_CREEP;
    default: return TRUTH_N;
    }
}

static void count(struct counts *c, bool truth, bool said)
{
    if (truth)
        *(said ? &c->tp : &c->fn) += 1;
    else
        *(said ? &c->fp : &c->tn) += 1;
}

static double f1_of(const struct counts *c)
{
    return c->tp ? 2.0 * (double)c->tp / (double)(2 * c->tp + c->fp + c->fn) : 0;
}

static void show_counts(const char *what, const struct counts *c, double days)
{
    struct ratio p = wilson(c->tp, c->tp + c->fp), r = wilson(c->tp, c->tp + c->fn), f = wilson(c->fp, c->fp + c->tn);

    printf("%-22s P %.3f [%.3f %.3f]  R %.3f [%.3f %.3f]  F1 %.3f  false leaks per healthy week %.3f [%.3f %.3f]  (%zu/%zu/%zu/%zu)\n",
           what, p.value, p.lo, p.hi, r.value, r.lo, r.hi, f1_of(c), f.value * 7 / days, f.lo * 7 / days, f.hi * 7 / days,
           c->tp, c->fp, c->fn, c->tn);
}

static void families(const struct result *r, size_t n)
{
    printf("%-15s %-9s %4s %5s %5s %5s %5s %5s %5s %5s %5s   right [95 %%]         class  rss  heap\n", "family", "class", "n", "ok", "bound",
           "reten", "step", "leak", "exter", "suspe", "insuf");
    for (int f = 0; f < FAMILY_N; f++) {
        size_t v[VERDICT_N] = { 0 }, all = 0, right = 0, class = 0, rss = 0, heap = 0;
        struct ratio w;

        for (size_t i = 0; i < n; i++) {
            if (!r[i].done || r[i].label.family != (enum family_id)f)
                continue;
            all++;
            v[r[i].out.verdict]++;
            right += says_leak(&r[i].out) == r[i].label.leak;
            class += outcome_class(&r[i].out, r[i].label.class) == r[i].label.class;
            rss += r[i].out.rss == VERDICT_LEAK || r[i].out.rss == VERDICT_EXTERNAL;
            heap += r[i].out.heap == VERDICT_LEAK || r[i].out.heap == VERDICT_EXTERNAL;
        }
        if (!all)
            continue;
        w = wilson(right, all);
        printf("%-15s %-9s %4zu %5zu %5zu %5zu %5zu %5zu %5zu %5zu %5zu   %.2f [%.2f %.2f] %9.2f %5zu %5zu\n", family_name((enum family_id)f),
               truth_name(family_truth((enum family_id)f)), all, v[VERDICT_OK], v[VERDICT_BOUNDED], v[VERDICT_RETENTION], v[VERDICT_STEP],
               v[VERDICT_LEAK], v[VERDICT_EXTERNAL], v[VERDICT_SUSPECT], v[VERDICT_INSUFFICIENT], w.value, w.lo, w.hi,
               (double)class / (double)all, rss, heap);
    }
    puts("right: leak or not; class: share whose class is the label's; rss, heap: how many times that series alone says leak");
}

static void sizes(const struct result *r, size_t n)
{
    static const struct { double lo, hi; const char *name; } bands[] = { { 0.08, 0.1, "8-10 %" }, { 0.1, 0.2, "10-20 %" }, { 0.2, 1e9, ">= 20 %" } };

    for (size_t b = 0; b < ARRAY_SIZE(bands); b++) {
        size_t all = 0, hits = 0;
        struct ratio w;

        for (size_t i = 0; i < n; i++)
            if (r[i].done && r[i].label.leak && r[i].label.per_week >= bands[b].lo && r[i].label.per_week < bands[b].hi) {
                all++;
                hits += says_leak(&r[i].out);
            }
        w = wilson(hits, all);
        printf("recall, %-8s a week: %.3f [%.3f %.3f] of %zu\n", bands[b].name, w.value, w.lo, w.hi, all);
    }
}

static void classes(const struct result *r, size_t n)
{
    double sum = 0, of = 0;

    for (int t = 0; t < TRUTH_N; t++) {
        struct counts c = { 0 };

        for (size_t i = 0; i < n; i++)
            if (r[i].done)
                count(&c, r[i].label.class == (enum truth)t, outcome_class(&r[i].out, r[i].label.class) == (enum truth)t);
        if (!(c.tp + c.fn))
            continue;
        printf("class %-10s F1 %.3f\n", truth_name((enum truth)t), f1_of(&c));
        sum += f1_of(&c);
        of++;
    }
    printf("class macro-F1        %.3f\n", of > 0 ? sum / of : 0);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* v[] ascending, rank q. */
static double rank(double *v, size_t n, double q)
{
    qsort(v, n, sizeof *v, by_value);
    return n ? v[(size_t)(q * (double)(n - 1))] : (double)NAN;
}

static void daily_text(const struct result *r, size_t n)
{
    double *v = mem_zalloc(n + 1, sizeof *v);
    struct counts c = { 0 };
    size_t k = 0;

    for (size_t i = 0; v && i < n; i++) {
        if (!r[i].done)
            continue;
        count(&c, r[i].label.leak, r[i].daily);
        if (r[i].label.leak && r[i].label.per_week >= 0.2) /* never found is later than any */
            v[k++] = isnan(r[i].detected_s) ? INFINITY : r[i].detected_s / DAY_S;
    }
    show_counts("any daily verdict", &c, 7);
    printf("days from onset to detection, >= 20 %% a week: median %.1f, p90 %.1f (of %zu)\n", rank(v, k, 0.5), rank(v, k, 0.9), k);
    mem_free(v);
}

static void baseline_text(const struct result *r, size_t n, double days)
{
    struct counts c = { 0 };

    puts("\nbaselines: memory leaks and healthy families only; rss_anon only");
    for (size_t i = 0; i < n; i++)
        if (r[i].done && r[i].label.class != TRUTH_COUNT)
            count(&c, r[i].label.leak, says_leak(&r[i].out));
    show_counts("lowtide", &c, days);
    for (int b = 0; b < BASELINE_N; b++) {
        c = (struct counts){ 0 };
        for (size_t i = 0; i < n; i++)
            if (r[i].done && r[i].label.class != TRUTH_COUNT)
                count(&c, r[i].label.leak, r[i].baseline[b]);
        show_counts(baseline_name((enum baseline_id)b), &c, days);
    }
}

void score_text(const struct result *r, size_t n, bool daily, double days)
{
    struct counts c = { 0 };
    double *ms = mem_zalloc(n + 1, sizeof *ms);
    size_t k = 0;

    for (size_t i = 0; ms && i < n; i++)
        if (r[i].done) {
            count(&c, r[i].label.leak, says_leak(&r[i].out));
            ms[k++] = r[i].out.ms;
        }
    families(r, n);
    puts("");
    show_counts("leak or not", &c, days);
    sizes(r, n);
    classes(r, n);
    if (daily)
        daily_text(r, n);
    printf("ms a case, all series: median %.2f, p90 %.2f\n", rank(ms, k, 0.5), rank(ms, k, 0.9));
    baseline_text(r, n, days);
    mem_free(ms);
}

static void json_number(FILE *f, const char *key, double v)
{
    if (isfinite(v))
        fprintf(f, ", \"%s\": %.9g", key, v);
    else
        fprintf(f, ", \"%s\": null", key);
}

int score_json(const char *path, const struct result *r, size_t n, bool daily, double days)
{
    FILE *f = fopen(path, "we");
    const char *comma = "";

    if (!f)
        return -1;
    fprintf(f, "{\"days\": %g, \"cases\": [", days);
    for (size_t i = 0; i < n; i++) {
        const struct label *l = &r[i].label;

        if (!r[i].done)
            continue;
        fprintf(f, "%s\n{\"family\": \"%s\", \"number\": %u, \"seed\": %llu, \"class\": \"%s\", \"leak\": %s, \"modifier\": \"%s\"", comma,
                family_name(l->family), l->number, (unsigned long long)l->seed, truth_name(l->class), l->leak ? "true" : "false",
                modifier_name(l->modifier));
        json_number(f, "onset_s", l->onset_s);
        json_number(f, "per_week", l->per_week);
        json_number(f, "kb_per_1k", l->kb_per_1k);
        fprintf(f, ", \"verdict\": \"%s\", \"verdict_class\": \"%s\"", verdict_name(r[i].out.verdict), class_name(r[i].out.class));
        json_number(f, "ms", r[i].out.ms);
        if (daily) {
            fprintf(f, ", \"daily\": %s", r[i].daily ? "true" : "false");
            json_number(f, "detected_s", r[i].detected_s);
        }
        for (int b = 0; b < BASELINE_N; b++)
            fprintf(f, ", \"%s\": %s", baseline_name((enum baseline_id)b), r[i].baseline[b] ? "true" : "false");
        fputs("}", f);
        comma = ",";
    }
    fputs("]}\n", f);
    return fclose(f) ? -1 : 0;
}
