/* Which store a verb works on. */
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "store/store.h"

int cmd_db_path(const struct args *args, bool create, char *out, size_t size, struct err *err)
{
    const char *path = args->db ? args->db : getenv("LOWTIDE_DB");
    if (!path || !*path)
        return store_default_path(create, out, size, err);
    if (str_fmt(out, size, "%s", path) + 1 >= size)
        return err_set(err, LT_EUSAGE, "--db: the path is longer than %zu bytes; choose a shorter one", size - 2);
    return 0;
}

int cmd_open_store(const struct args *args, struct store **ret, struct err *err)
{
    char path[4096];
    int r = cmd_db_path(args, false, path, sizeof path, err);
    if (!r)
        r = store_open(ret, path, STORE_READ, NULL, err);
    if (!r && store_damage(*ret))
        log_warn("%s", store_damage(*ret));
    return r;
}

int cmd_open_store_to_write(const struct args *args, struct store **ret, struct err *err)
{
    char path[4096];
    int r = cmd_db_path(args, true, path, sizeof path, err);
    return r ? r : store_open(ret, path, STORE_WRITE, NULL, err);
}
