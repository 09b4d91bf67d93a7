/* What the verdicts are worth. */
#ifndef LT_BENCH_SCORE_H
#define LT_BENCH_SCORE_H

#include "detect.h"

#define BASELINES(X) \
    X(FIRST_LAST, "first/last", "mean of the last hour over 1.1 times that of the first") \
    X(OLS_1H, "1-h OLS", "any whole hour rises by more than 10 % of its mean") \
    X(PREDICT, "predict_linear", "6 h of slope, 4 h ahead, over twice the first day's median, twice in a row") \
    X(BUCKET, "bucket minimum", "the minimum of every day is above that of the day before") \
    X(MANN_KENDALL, "Mann-Kendall", "hourly means, p < 0.01") \
    X(THEIL_SEN, "Theil-Sen", "3-h means: lower 95 % bound above 0, and more than 5 % of the level a week") \
    X(EBB, "ebb test", "every day's floor at 02-05 h is above the last, by 0.3 % and more")

enum baseline_id {
#define X(id, name, rule) BASELINE_##id,
    BASELINES(X)
#undef X
    BASELINE_N
};
const char *baseline_name(enum baseline_id b);
const char *baseline_rule(enum baseline_id b);
void baselines(const struct series *s, bool ret[BASELINE_N]); /* on rss_anon */

#define DAYS_SCORED 8
struct result {
    struct label label;
    struct outcome out;
    bool baseline[BASELINE_N];
    bool daily;            /* any leak verdict at a daily cut */
    double detected_s;     /* since the onset, by the first daily cut; NaN: never */
    bool done;
};

struct ratio { double value, lo, hi; };
struct ratio wilson(size_t hits, size_t n); /* 95 % */
struct counts { size_t tp, fp, fn, tn; };

static inline bool says_leak(const struct outcome *o) { return o->verdict == VERDICT_LEAK || o->verdict == VERDICT_EXTERNAL; }
/* TRUTH_N: undecided. What is labelled ok has pools that fill, warms up and is held by its allocator: there bounded and
 * retention are true as well, and count as ok. */
enum truth outcome_class(const struct outcome *o, enum truth label);

void score_text(const struct result *r, size_t n, bool daily, double days);
int score_json(const char *path, const struct result *r, size_t n, bool daily, double days);

#endif
