#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "analysis/nnls.h"
#include "base/mem.h"

#define RIDGE 1e-10 /* of the diagonal: columns that say the same share it instead of blowing up */

struct active {
    size_t n;
    size_t at[NNLS_MAX];
    double z[NNLS_MAX];
};

/* Cholesky of the active columns, then two triangular solves. False: they are not independent. */
static bool solve_active(const struct nnls *p, struct active *a)
{
    double l[NNLS_MAX][NNLS_MAX];

    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double sum = p->gram[a->at[i]][a->at[j]];

            if (i == j)
                sum *= 1 + RIDGE;
            for (size_t k = 0; k < j; k++)
                sum -= l[i][k] * l[j][k];
            if (i == j && !(sum > 1e-12 * p->gram[a->at[i]][a->at[i]]))
                return false;
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        double sum = p->rhs[a->at[i]];

        for (size_t k = 0; k < i; k++)
            sum -= l[i][k] * a->z[k];
        a->z[i] = sum / l[i][i];
    }
    for (size_t i = a->n; i-- > 0;) {
        for (size_t k = i + 1; k < a->n; k++)
            a->z[i] -= l[k][i] * a->z[k];
        a->z[i] /= l[i][i];
    }
    return true;
}

/* The column that would lessen the residual most, by its correlation with it; NNLS_MAX: none. */
static size_t most_useful(const struct nnls *p, uint32_t may, const double *x)
{
    double best = 1e-7 * sqrt(p->yy);
    size_t at = NNLS_MAX;

    for (size_t i = 0; i < p->n; i++) {
        double w = p->rhs[i];

        if (!(may >> i & 1) || !(p->gram[i][i] > 0))
            continue;
        for (size_t k = 0; k < p->n; k++)
            w -= p->gram[i][k] * x[k];
        w /= sqrt(p->gram[i][i]);
        if (w > best) {
            best = w;
            at = i;
        }
    }
    return at;
}

/* From x towards z as far as nothing becomes negative; what reached zero leaves. True when z itself was reached. */
static bool step_towards(struct active *a, double *x, uint32_t *in)
{
    double alpha = 1;
    struct active left = { 0 };

    for (size_t i = 0; i < a->n; i++)
        if (a->z[i] <= 0)
            alpha = MIN(alpha, x[a->at[i]] / MAX(x[a->at[i]] - a->z[i], 1e-300));
    for (size_t i = 0; i < a->n; i++) {
        size_t c = a->at[i];

        x[c] += alpha * (a->z[i] - x[c]);
        if (a->z[i] <= 0 && x[c] <= 1e-12 * fabs(a->z[i])) {
            x[c] = 0;
            *in &= ~(1u << c);
        } else {
            left.at[left.n++] = c;
        }
    }
    *a = left;
    return alpha >= 1;
}

static void list_active(struct active *a, uint32_t in)
{
    a->n = 0;
    for (size_t i = 0; i < NNLS_MAX; i++)
        if (in >> i & 1)
            a->at[a->n++] = i;
}

static double residual(const struct nnls *p, const double *x)
{
    double rss = p->yy;

    for (size_t i = 0; i < p->n; i++) {
        double g = 0;

        if (x[i] == 0)
            continue;
        for (size_t k = 0; k < p->n; k++)
            g += p->gram[i][k] * x[k];
        rss += x[i] * (g - 2 * p->rhs[i]);
    }
    return MAX(rss, 0.0);
}

double nnls_solve(const struct nnls *p, uint32_t use, double x[NNLS_MAX])
{
    uint32_t in = 0, refused = 0;
    struct active a;

    memset(x, 0, sizeof(double) * NNLS_MAX);
    for (size_t turn = 0; turn < 3 * NNLS_MAX; turn++) {
        size_t at = most_useful(p, use & ~in & ~refused, x);

        if (at == NNLS_MAX)
            break;
        in |= 1u << at;
        list_active(&a, in);
        for (size_t i = 0; i < NNLS_MAX && a.n; i++) {
            if (!solve_active(p, &a)) { /* says the same as those that are in */
                in &= ~(1u << at);
                refused |= 1u << at;
                break;
            }
            if (step_towards(&a, x, &in))
                break;
        }
    }
    return residual(p, x);
}
