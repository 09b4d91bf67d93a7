/* varint_get: never past the end, never without progress, and what it read goes back into at most the same bytes. */
#include "base/buf.h"
#include "base/err.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t pos = 0;

    while (pos < size) {
        _cleanup_buf_ struct buf b;
        size_t before = pos, back_pos = 0;
        uint64_t v, back;
        int r = varint_get(data, size, &pos, &v);

        buf_init(&b, 10);
        if (r < 0) {
            FUZZ_PROMISE(r == LT_ECORRUPT && pos == before);
            return 0;
        }
        FUZZ_PROMISE(pos > before && pos <= size && pos - before <= 10);
        FUZZ_PROMISE(buf_put_varint(&b, v) == 0 && b.len <= pos - before);
        FUZZ_PROMISE(varint_get((const uint8_t *)b.p, b.len, &back_pos, &back) == 0 && back == v);
        FUZZ_PROMISE(zigzag(unzigzag(v)) == v);
    }
    return 0;
}
