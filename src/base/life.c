#include "base/life.h"

const char *life_end_name(enum life_end_cause c)
{
    static const char *const names[LIFE_END_N] = {
#define X(id, name, title) name,
        LIFE_ENDS(X)
#undef X
    };

    return (unsigned)c < LIFE_END_N ? names[c] : "?";
}
