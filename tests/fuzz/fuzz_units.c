/* units_*: no bytes are read past the slice, results are within their promises, and an error leaves the result alone. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/units.h"
#include "fuzz/fuzz.h"

static void parse_slice(const char *s, size_t len)
{
    int64_t i = 42;
    double d = 42, as_double;
    int r = units_int(s, len, &i);

    FUZZ_PROMISE(r == 0 || (r == LT_EPARSE && i == 42));
    r = units_double(s, len, &d);
    FUZZ_PROMISE(r == 0 ? isfinite(d) : r == LT_EPARSE && d == 42);
    /* What is a whole number is the same number as a decimal. */
    if (units_int(s, len, &i) == 0) {
        FUZZ_PROMISE(units_double(s, len, &as_double) == 0 || len > 400);
        FUZZ_PROMISE(len > 400 || as_double == (double)i);
    }
}

static void parse_string(const char *s)
{
    char text[UNITS_TEXT_MAX];
    int64_t ns = 42, bytes = 42;

    if (units_duration(s, &ns) == 0)
        FUZZ_PROMISE(ns > 0 && strlen(units_time(ns, text)) < sizeof text - 1);
    else
        FUZZ_PROMISE(ns == 42);
    if (units_size(s, &bytes) == 0)
        FUZZ_PROMISE(bytes >= 0 && strlen(units_bytes((double)bytes, text)) < sizeof text - 1);
    else
        FUZZ_PROMISE(bytes == 42);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024], out[UNITS_TEXT_MAX];
    double any;

    parse_slice((const char *)data, size);
    if (size < sizeof text) {
        memcpy(text, data, size);
        text[size] = '\0';
        parse_string(text);
    }
    if (size >= sizeof any) {
        memcpy(&any, data, sizeof any);
        FUZZ_PROMISE(strlen(units_count(any, out)) < sizeof out - 1);
        FUZZ_PROMISE(strlen(units_bytes(any, out)) < sizeof out - 1);
    }
    return 0;
}
