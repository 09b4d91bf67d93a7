/* clock_parse: whatever it takes is a time that prints and reads back as itself, to the millisecond. */
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t t = 42, again;
    char text[CLOCK_TEXT_MAX];
    int r = clock_parse((const char *)data, size, &t);

    if (r < 0) {
        FUZZ_PROMISE(r == LT_EPARSE && t == 42);
        return 0;
    }
    FUZZ_PROMISE(t != CLOCK_INVALID);
    clock_rfc3339(t, text);
    /* The text leaves out what is below a millisecond; before the earliest time there is, that is a time no more. */
    if (clock_parse(text, strlen(text), &again) < 0)
        FUZZ_PROMISE(t < INT64_MIN + NS_PER_MS);
    else
        FUZZ_PROMISE(again <= t && t - again < NS_PER_MS);
    return 0;
}
