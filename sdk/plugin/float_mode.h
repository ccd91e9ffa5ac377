/* How a thread computes with floating numbers: rounding, flushing of denormals, traps, precision. A library that was
 * linked with -ffast-math changes it for the thread that loads it, and with it every result from then on. */
#ifndef GRAFT_SDK_FLOAT_MODE_H
#define GRAFT_SDK_FLOAT_MODE_H

#include <stdint.h>

typedef struct plg_float_mode {
  uint64_t control; /* MXCSR or FPCR, without what only tells of the past */
  uint16_t x87;
} plg_float_mode;

plg_float_mode plg_float_mode_now(void);

/* Puts the mode back where it was changed since, and says in the log that `plugin` did so while `what`. */
void plg_float_mode_restore(plg_float_mode before, const char *plugin, const char *what);

#endif
