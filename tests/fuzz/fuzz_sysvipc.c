/* Lines of /proc/sysvipc/shm: no bytes are read past the line; a row has no value below 0; garbage leaves the result alone. */
#include <string.h>

#include "base/base.h"
#include "fuzz/fuzz.h"
#include "source/shm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct shm_row row, before;

    memset(&row, 0x5a, sizeof row);
    before = row;
    if (shm_parse((const char *)data, size, &row))
        FUZZ_PROMISE(row.id >= 0 && row.cpid >= 0 && row.lpid >= 0 && row.size >= 0 && row.ctime_s >= 0 && row.rss >= 0 && row.swap >= 0);
    else
        FUZZ_PROMISE(!memcmp(&row, &before, sizeof row)); // NOLINT(bugprone-suspicious-memory-comparison): padding counts too
    return 0;
}
