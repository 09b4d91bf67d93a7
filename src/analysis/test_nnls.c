/* Non-negative least squares: the solution is checked by its own conditions (Karush, Kuhn, Tucker), on hundreds of problems. */
#include <math.h>
#include <string.h>

#include "analysis/nnls.h"
#include "base/mem.h"
#include "lib/harness.h"
#include "lib/synth.h"

#define ROWS 60

struct problem { double x[ROWS][NNLS_MAX], y[ROWS]; size_t n; };

static void draw(struct problem *p, uint64_t seed, size_t n)
{
    struct random r = { seed };

    p->n = n;
    for (size_t i = 0; i < ROWS; i++) {
        p->y[i] = synth_normal(&r);
        for (size_t c = 0; c < n; c++) {
            p->x[i][c] = synth_normal(&r) + (c % 3 ? p->x[i][c - 1] : 0); /* some columns say much the same */
            p->y[i] += (c % 2 ? 0.7 : -0.4) * p->x[i][c];
        }
    }
}

static void equations(const struct problem *p, struct nnls *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->n = p->n;
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t a = 0; a < p->n; a++) {
            for (size_t b = 0; b < p->n; b++)
                ret->gram[a][b] += p->x[i][a] * p->x[i][b];
            ret->rhs[a] += p->x[i][a] * p->y[i];
        }
        ret->yy += p->y[i] * p->y[i];
    }
}

static double squares(const struct problem *p, const double *x)
{
    double sum = 0;

    for (size_t i = 0; i < ROWS; i++) {
        double d = p->y[i];

        for (size_t c = 0; c < p->n; c++)
            d -= x[c] * p->x[i][c];
        sum += d * d;
    }
    return sum;
}

static void check_conditions(const struct nnls *e, uint32_t use, const double *x)
{
    for (size_t c = 0; c < e->n; c++) {
        double gradient = e->rhs[c];

        for (size_t k = 0; k < e->n; k++)
            gradient -= e->gram[c][k] * x[k];
        gradient /= sqrt(e->gram[c][c] * e->yy);
        assert_true(x[c] >= 0);
        if (!(use >> c & 1))
            assert_true(x[c] == 0);
        else if (x[c] > 0)
            assert_true(fabs(gradient) < 1e-6);
        else
            assert_true(gradient < 1e-6);
    }
}

static void test_conditions_hold(void **state)
{
    struct problem p;
    struct nnls e;
    double x[NNLS_MAX];

    (void)state;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        size_t n = 1 + seed % NNLS_MAX;
        uint32_t use = seed % 5 ? UINT32_MAX : (uint32_t)(seed * 2654435761u);
        double rss;

        draw(&p, seed, n);
        equations(&p, &e);
        rss = nnls_solve(&e, use, x);
        check_conditions(&e, use, x);
        assert_true(fabs(rss - squares(&p, x)) < 1e-8 * e.yy);
    }
}

/* What was put in comes out, where it was not negative. */
static void test_known_mixture(void **state)
{
    struct problem p;
    struct nnls e;
    double x[NNLS_MAX];

    (void)state;
    draw(&p, 7, 5);
    for (size_t i = 0; i < ROWS; i++)
        p.y[i] = 3 * p.x[i][0] + 0.5 * p.x[i][3];
    equations(&p, &e);
    assert_true(nnls_solve(&e, UINT32_MAX, x) < 1e-8 * e.yy);
    assert_true(fabs(x[0] - 3) < 1e-5 && fabs(x[3] - 0.5) < 1e-5);
}

/* Equal columns, columns of nothing, nothing to explain: an answer all the same. */
static void test_degenerate(void **state)
{
    struct problem p;
    struct nnls e;
    double x[NNLS_MAX];

    (void)state;
    draw(&p, 9, 6);
    for (size_t i = 0; i < ROWS; i++) {
        p.x[i][2] = p.x[i][1];
        p.x[i][4] = 0;
        p.y[i] = 2 * p.x[i][1];
    }
    equations(&p, &e);
    assert_true(nnls_solve(&e, UINT32_MAX, x) < 1e-6 * e.yy);
    assert_true(fabs(x[1] + x[2] - 2) < 1e-4 && x[4] == 0);
    memset(p.y, 0, sizeof p.y);
    equations(&p, &e);
    assert_true(nnls_solve(&e, UINT32_MAX, x) == 0);
    for (size_t c = 0; c < 6; c++)
        assert_true(x[c] == 0);
}

HARNESS_MAIN(CASE(test_conditions_hold), CASE(test_known_mixture), CASE(test_degenerate))
