/* doctor: the verdict of a minute, and which descriptors made it. */
#include <jansson.h>

#include "output/parts.h"

#define CHANGES_SHOWN 12

static void put_changes(struct buf *out, const struct output_doctor *d)
{
    for (size_t i = 0; i < d->n && i < CHANGES_SHOWN; i++) {
        const struct output_change *c = &d->changes[i];

        if (!i)
            buf_printf(out, "\n  %-8s%10s%10s%10s   %s\n", "what", "before", "after", "change", "which");
        buf_printf(out, "  %-8s%10lld%10lld%+10lld   ", c->what, (long long)c->before, (long long)c->after, (long long)(c->after - c->before));
        put_wrapped(out, c->key, 43, 43);
    }
}

int output_doctor_text(struct buf *out, const struct verdict *v, const struct output_doctor *d, const struct output_options *o)
{
    int r;

    buf_printf(out, "process %d (%s), %zu process%s in its tree, watched for %.0f s\n", (int)d->pid, d->name, d->processes,
               d->processes == 1 ? "" : "es", d->seconds);
    for (const char *const *m = d->missing; m && *m; m++) {
        buf_puts(out, "not looked at: ");
        put_wrapped(out, *m, 15, 4);
    }
    r = output_text(out, v, o);
    put_changes(out, d);
    return r;
}

struct json_t *output_doctor_json(const struct verdict *v, const struct output_doctor *d)
{
    json_t *doc = output_json(v, true), *changes = json_array(), *missing = json_array();

    for (size_t i = 0; changes && i < d->n; i++)
        json_array_append_new(changes, json_pack("{s:s, s:s, s:I, s:I}", "what", d->changes[i].what, "key", d->changes[i].key, "before",
                                                 (json_int_t)d->changes[i].before, "after", (json_int_t)d->changes[i].after));
    for (const char *const *m = d->missing; missing && m && *m; m++)
        json_array_append_new(missing, json_string(*m));
    if (!doc || json_object_set_new(doc, "pid", json_integer(d->pid)) || json_object_set_new(doc, "seconds", json_real(d->seconds))) {
        json_decref(doc);
        json_decref(changes);
        json_decref(missing);
        return NULL;
    }
    json_object_set_new(doc, "changes", changes);
    json_object_set_new(doc, "not_looked_at", missing);
    return doc;
}
