/* Lines of /proc/net/{tcp,udp,unix}: no bytes are read past the line, a garbled line gives no row and leaves the result alone. */
#include <string.h>

#include "base/base.h"
#include "fuzz/fuzz.h"
#include "source/sockets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data;
    struct socket_row row, before;
    uint64_t inode = 42;

    memset(&row, 0x5a, sizeof row);
    before = row;
    if (sockets_parse_inet(line, size, &row, &inode)) {
        FUZZ_PROMISE(row.state >= SOCKET_ESTABLISHED && row.state <= 12);
        FUZZ_PROMISE(str_eq(socket_state_name(row.state), "?") == (row.state == 12));
        static const uint8_t none[16];
        FUZZ_PROMISE(row.peer_port || !memcmp(row.peer, none, sizeof none));
    } else {
        FUZZ_PROMISE(inode == 42 && !memcmp(&row, &before, sizeof row));
    }
    inode = 42;
    FUZZ_PROMISE(sockets_parse_unix(line, size, &inode) || inode == 42);
    return 0;
}
