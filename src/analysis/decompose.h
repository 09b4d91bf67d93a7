/* Days of memory taken apart (methods.md 2.3 to 2.6): floor = base of each life + steps + load + high water + excuses + leak.
 * Part of analysis.h, which includes it; the formulas are explained in decompose.c. */
#ifndef LT_ANALYSIS_DECOMPOSE_H
#define LT_ANALYSIS_DECOMPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_MAX 32

/* A lasting jump. event: index into series.events, -1: none near. */
struct step { int64_t at_ns; double delta; int event; };

/* One look at the bins up to a moment. Amounts in the series' unit. */
struct evaluation {
    bool usable;               /* enough bins to fit */
    size_t bins;
    double hours;              /* of bins looked at, all lives together */
    double life_hours;         /* the longest life */
    double score;              /* (RSS without the leak - RSS with it) / RSS with it x effective number of bins */
    double score_generous;     /* the same, had every excuse been admitted whose bend could just have been seen */
    double rho, n_eff, noise;  /* lag-1 autocorrelation of what is left over, effective bins, its standard deviation */
    double rise;               /* of the leak's part, all lives together */
    double per_day;            /* its rate at the end */
    double per_request;        /* the same by request; NaN when no requests are known */
    double se_day;             /* standard error of the mean rate */
    double gain_last;          /* what the last 24 h added besides load, steps and excuses; NaN: not known */
    double gain_fitted;        /* what the leak's part says they should have added */
    double gain_noise;         /* standard error of gain_last */
    double late_in_life;       /* slope within the second halves of all lives, as a share of what the fit says; NaN: one life */
    double load_part;          /* highest minus lowest of what load and high water explain */
    double excuse_part;        /* what the excuses explain */
    double excuse_tau_h;       /* time constant of the largest excuse; 0: none; INFINITY: logarithmic */
};

struct decomposition {
    bool usable;
    bool load_known;           /* by requests or CPU time; else by the time of day */
    double level;              /* median floor */
    size_t lives;              /* with bins */
    bool staircase;            /* so many steps up that they are the growth; none was removed */
    size_t nsteps;
    struct step steps[STEPS_MAX];
    double steps_total;        /* sum of those removed */
    double covered[3];         /* share of each of the last three days that was sampled, newest first; NaN: before the window */
    double work_ratio;         /* work of the last day over that of the day before; NaN: not known */
    double hours;              /* of the window */
    struct evaluation now, day_before;
};

#endif
