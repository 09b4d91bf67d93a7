/* CRC-32C (Castagnoli, reflected polynomial 0x82f63b78): the CPU's instruction where there is one, else a table. */
#include <pthread.h>
#include <string.h>

#include "base/buf.h"

static uint32_t table[256];

static void table_fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? (c >> 1) ^ UINT32_C(0x82f63b78) : c >> 1;
        table[i] = c;
    }
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    const uint8_t *p = data;

    pthread_once(&filled, table_fill);
    crc = ~crc;
    while (len--)
        crc = table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
    return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t c = (uint32_t)~crc;

    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;

        memcpy(&word, p, sizeof word);
        c = __builtin_ia32_crc32di(c, word);
    }
    for (; len; len--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return ~(uint32_t)c;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(crc, data, len);
#endif
    return crc32c_portable(crc, data, len);
}
