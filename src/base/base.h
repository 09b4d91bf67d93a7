/* The whole of base, for those who use most of it. */
#ifndef LT_BASE_BASE_H
#define LT_BASE_BASE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/life.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/str.h"
#include "base/term.h"
#include "base/units.h"
#include "base/vec.h"

#endif
