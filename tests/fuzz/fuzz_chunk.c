/* chunk_parse and chunk_decode: never past the end; what is taken keeps FORMAT.md's promises (C3, C4, K1, K4), says the same
 * column by column as whole, and raw chunks written again read back the same. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/chunk.h"

static struct chunk_view view;
static struct chunk whole, part, back;
static struct chunk_scratch scratch;

static void check_values(size_t parts)
{
    for (size_t i = 1; i < whole.n; i++)
        FUZZ_PROMISE(whole.ts[i] > whole.ts[i - 1]);
    for (uint64_t left = whole.mask; left; left &= left - 1) {
        int m = __builtin_ctzll(left);
        for (size_t k = 0; k < parts; k++)
            for (size_t i = 0; i < whole.n; i++)
                FUZZ_PROMISE(whole.v[m][k][i] >= METRIC_NA);
        FUZZ_PROMISE(chunk_decode(&view, 1000, UINT64_C(1) << m, &part) == 0 && part.mask == UINT64_C(1) << m);
        for (size_t k = 0; k < parts; k++)
            FUZZ_PROMISE(!memcmp(part.v[m][k], whole.v[m][k], whole.n * sizeof(int64_t)));
        int64_t f[PART_N];
        if (chunk_footer(&view, m, f))
            FUZZ_PROMISE(f[PART_MIN] >= 0 && f[PART_MIN] <= f[PART_P10] && f[PART_P10] <= f[PART_MAX]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t len;
    if (chunk_parse(&view, data, size))
        return 0;
    FUZZ_PROMISE(view.n >= 1 && view.n <= COLUMN_MAX);
    (void)chunk_values(&view);
    if (chunk_decode(&view, 1000, UINT64_MAX, &whole))
        return 0;
    check_values(whole.form == CHUNK_RAW ? 1 : PART_N);
    if (whole.form != CHUNK_RAW)
        return 0;
    FUZZ_PROMISE(chunk_encode(&whole, &scratch, &len) == 0);
    FUZZ_PROMISE(chunk_parse(&view, scratch.out, len) == 0 && chunk_decode(&view, 1000, UINT64_MAX, &back) == 0);
    FUZZ_PROMISE(back.n == whole.n && back.mask == whole.mask && back.prev_ms == whole.prev_ms);
    for (uint64_t left = whole.mask; left; left &= left - 1)
        FUZZ_PROMISE(!memcmp(back.v[__builtin_ctzll(left)][0], whole.v[__builtin_ctzll(left)][0], whole.n * sizeof(int64_t)));
    return 0;
}
