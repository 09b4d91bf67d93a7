#include "base/metric.h"

#include <string.h>

const struct metric metrics[METRIC_N] = {
#define X(id, name, scope, unit, kind, judge, title) \
    { name, title, METRIC_SCOPE_##scope, METRIC_UNIT_##unit, METRIC_KIND_##kind, METRIC_JUDGE_##judge },
    METRICS(X)
#undef X
};

/* Lengths beside the names: a look-up compares bytes of few names only. */
static const uint8_t name_len[METRIC_N] = {
#define X(id, name, scope, unit, kind, judge, title) sizeof(name) - 1,
    METRICS(X)
#undef X
};

int metric_by_name(const char *name, size_t len)
{
    for (int i = 0; i < METRIC_N; i++)
        if (name_len[i] == len && memcmp(metrics[i].name, name, len) == 0)
            return i;
    return -1;
}

const char *metric_unit_name(enum metric_unit unit)
{
    switch (unit) {
    case METRIC_UNIT_BYTES:
        return "bytes";
    case METRIC_UNIT_COUNT:
        return "count";
    case METRIC_UNIT_NS:
        return "ns";
    }
    return "?";
}
