/* Non-negative least squares on normal equations (Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23). */
#ifndef LT_ANALYSIS_NNLS_H
#define LT_ANALYSIS_NNLS_H

#include <stddef.h>
#include <stdint.h>

#define NNLS_MAX 32

/* Gram matrix and right-hand side of all columns; n <= NNLS_MAX. yy is the target's own square. */
struct nnls {
    size_t n;
    double gram[NNLS_MAX][NNLS_MAX];
    double rhs[NNLS_MAX];
    double yy;
};

/* Minimises the residual over x >= 0 using only the columns whose bit is set in `use`; x of the others is 0.
 * Returns the residual sum of squares, at least 0. */
double nnls_solve(const struct nnls *p, uint32_t use, double x[NNLS_MAX]);

#endif
