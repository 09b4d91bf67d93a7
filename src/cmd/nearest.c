/* Which known word a mistyped one was meant to be: edit distance with swaps of neighbours. */
#include <string.h>

#include "base/mem.h"
#include "cmd/args.h"

#define WORD_MAX 32

static size_t min3(size_t a, size_t b, size_t c)
{
    return MIN(MIN(a, b), c);
}

/* Optimal string alignment distance; words longer than WORD_MAX are never near. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][WORD_MAX + 1];
    if (na > WORD_MAX || nb > WORD_MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = min3(up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = MIN(row[j], up2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

void nearest_init(struct nearest *n, const char *word, size_t len)
{
    *n = (struct nearest){ .word = word, .word_len = len, .best_distance = len / 3 + 2 };
}

void nearest_feed(struct nearest *n, const char *candidate)
{
    size_t len = strlen(candidate);
    size_t d = distance(n->word, n->word_len, candidate, len);
    /* A word begun and not ended ("verb" for "verbose") is near however much is missing. */
    if (n->word_len >= 3 && len > n->word_len && !strncmp(candidate, n->word, n->word_len))
        d = MIN(d, (size_t)1);
    if (d < n->best_distance && d < len) {
        n->best_distance = d;
        n->best = candidate;
    }
}

const char *nearest_verb(const char *word, size_t len)
{
    struct nearest n;
    nearest_init(&n, word, len);
    for (const struct cmd *const *c = cmds; *c; c++)
        if (!(*c)->hidden)
            nearest_feed(&n, (*c)->name);
    return n.best;
}

const char *nearest_option(const struct cmd *cmd, const char *word, size_t len)
{
    struct nearest n;
    nearest_init(&n, word, len);
    for (const struct opt *o = cmd->opts; o && o->name; o++)
        nearest_feed(&n, o->name);
    for (const struct opt *o = args_common; o->name; o++)
        nearest_feed(&n, o->name);
    return n.best;
}
