/* The verb top, in parts: rows and their history (rows.c), filled by live.c or stored.c; a frame as text (view.c); the
 * terminal (screen.c); options and the loop (top.c). */
#ifndef LT_CMD_TOP_TOP_H
#define LT_CMD_TOP_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "source/sample.h"

#define TOP_ROWS_MAX 16384
#define TOP_HISTORY 120

/* ---- rows ----------------------------------------------------------------------------------------------------- */

struct top_row {
    int64_t life_id;
    int32_t pid;              /* 0: the target as a whole */
    char target[64];
    char what[ROLE_MAX];
    int64_t ts_ns;            /* of the last sample, CLOCK_INVALID: none yet */
    int64_t v[METRIC_N];      /* the last sample */
    int64_t first_anon;       /* of the first sample seen, METRIC_NA: none */
    double cpu_pct;           /* NaN until known */
    double history[TOP_HISTORY];
    size_t nhistory;          /* rss_anon, oldest first */
};

struct top_rows {
    struct vec rows;          /* struct top_row */
    struct map index;         /* life id to place in rows; rebuilt by top_rows_sort */
    char note[256];           /* what the user should know: no permission and the like */
};

void top_rows_init(struct top_rows *t);
void top_rows_release(struct top_rows *t);
void top_rows_clear(struct top_rows *t);
struct top_row *top_rows_find(const struct top_rows *t, int64_t life_id);
struct top_row *top_rows_add(struct top_rows *t, int64_t life_id, const struct life_info *info, const char *target); /* NULL: full */
void top_rows_remove(struct top_rows *t, int64_t life_id);
void top_row_sample(struct top_row *r, int64_t ts_ns, const int64_t v[METRIC_N]);

enum top_order { TOP_BY_ANON, TOP_BY_GROWN, TOP_BY_FDS, TOP_BY_CPU, TOP_BY_PID, TOP_ORDER_N };
void top_rows_sort(struct top_rows *t, enum top_order order);
const char *top_order_name(enum top_order order);

/* ---- where the samples come from ------------------------------------------------------------------------------ */

struct top_source {
    void *state;
    int (*refresh)(void *state, struct top_rows *rows, struct err *err);
    void (*close)(void *state);
    bool needs_two;           /* rates are known from the second refresh on */
};

/* selector is borrowed. A port with two listeners is found out by the first refresh. */
int top_live_open(const char *selector, struct top_source *ret, struct err *err);
/* target NULL: all of them. Processes whose last sample is no older than window_ns. */
int top_stored_open(const struct args *args, const char *target, int64_t window_ns, struct top_source *ret, struct err *err);

/* ---- a frame -------------------------------------------------------------------------------------------------- */

struct top_view {
    char title[96];
    enum top_order order;
    size_t selected, scroll;
    size_t width, height;     /* height 0: all rows, no key line */
    bool colored;
};

/* Lines ended by '\n', none wider than view->width. Keeps the selected row within the page. */
int top_draw(struct top_view *view, const struct top_rows *rows, int64_t now_ns, struct buf *out);

/* ---- the terminal --------------------------------------------------------------------------------------------- */

enum top_key { KEY_NONE, KEY_QUIT, KEY_SORT, KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_REDRAW };

int screen_open(struct err *err);   /* alternate screen, keys unbuffered; undone by screen_close and by any fatal signal */
void screen_close(void);
int screen_show(const struct buf *frame);             /* 0, or LT_EIO when the terminal is gone */
enum top_key screen_wait(int64_t until_mono_ns);      /* KEY_NONE: the time has come; KEY_QUIT also for a stop signal */

#endif
