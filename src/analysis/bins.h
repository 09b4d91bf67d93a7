/* Half-hour bins of one series: the rows that days are taken apart by. Private to analysis/. */
#ifndef LT_ANALYSIS_BINS_H
#define LT_ANALYSIS_BINS_H

#include "analysis/parts.h"

#define BINS_MAX 1344          /* 28 days of half hours; a longer window gets wider bins */
#define BIN_NS (30 * 60 * NS_PER_S)

struct bin {
    int64_t end_ns;
    size_t life;               /* epoch */
    double floor;              /* p10 */
    double still;              /* the same without what load explains; steps are looked for there */
    double load;               /* requests (or CPU seconds) a second */
    double age_h;              /* since the life began within the window */
    double work;               /* requests (or CPU seconds) since then */
    double high;               /* highest load so far in this life */
    double lagged;             /* load, smoothed over two hours */
    size_t segment;            /* life and step */
};

struct bins {
    size_t n;
    double hours;              /* width */
    enum load_source load;
    struct bin bin[BINS_MAX];
};

/* Bins of the whole window that end with it, oldest first; a bin that was hardly sampled or lies across two lives is left out. */
void bins_make(struct bins *b, const struct series *s, const struct curve *c, struct work *w);

/* Numbers the lives as segments. */
void bins_lives(struct bins *b);

/* Finds lasting jumps and numbers the segments between them; fills d->steps, staircase, steps_total. */
void bins_steps(struct bins *b, struct decomposition *d, const struct series *s);

#endif
