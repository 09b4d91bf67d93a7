/* JSON on standard output. */
#include <jansson.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/cmd.h"

int cmd_print_json(struct json_t *doc, struct err *err)
{
    if (!doc)
        return err_set(err, LT_ENOMEM, "the answer: no memory for it; free some and try again");
    int r = json_dumpf(doc, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    fputc('\n', stdout);
    json_decref(doc);
    return r && !ferror(stdout) ? err_set(err, LT_ENOMEM, "the answer: no memory to print it; free some and try again") : 0;
}

struct json_t *cmd_json_time(int64_t wall_ns)
{
    char text[CLOCK_TEXT_MAX];
    return wall_ns == CLOCK_INVALID ? json_null() : json_string(clock_rfc3339(wall_ns, text));
}

struct json_t *cmd_json_text(const char *text)
{
    _cleanup_mem_ char *copy = mem_strdup(text);
    if (!copy)
        return NULL;
    str_printable(copy);
    return json_string(copy);
}
