/* The terminal: whether colour may be used (a tty, TERM not dumb, NO_COLOR unset or empty), width, sparklines. */
#ifndef LT_BASE_TERM_H
#define LT_BASE_TERM_H

#include <stdbool.h>
#include <stddef.h>

enum term_color { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW, TERM_CYAN };

bool term_colored(int fd);
int term_width(int fd);              /* columns, 100 when unknown */
int term_height(int fd);             /* rows, 24 when unknown */
const char *term_on(enum term_color c, bool colored);  /* escape sequence, "" when not colored */
const char *term_off(bool colored);
/* Draws n values into `cells` cells of U+2581..U+2588, NaN as space; scaled min..max of the values (a constant line is
 * low). Each cell shows the last value of its share. out needs 3*cells+1 bytes. ASCII when the locale is not UTF-8. */
void term_sparkline(const double *v, size_t n, size_t cells, char *out);

#endif
