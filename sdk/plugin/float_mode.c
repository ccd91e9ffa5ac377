#include "plugin/float_mode.h"

#include <stdbool.h>

#include "base/error.h"

#if defined(__x86_64__)

enum { MXCSR_CONTROL = 0xffc0 }; /* below lie the flags of exceptions that were seen */

plg_float_mode plg_float_mode_now(void) {
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (plg_float_mode){mxcsr & MXCSR_CONTROL, x87};
}

static void set_mode(plg_float_mode mode) {
  uint32_t mxcsr = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  mxcsr = (mxcsr & ~(uint32_t)MXCSR_CONTROL) | (uint32_t)mode.control;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
  __asm__ volatile("fldcw %0" : : "m"(mode.x87));
}

#elif defined(__aarch64__)

plg_float_mode plg_float_mode_now(void) {
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return (plg_float_mode){fpcr, 0};
}

static void set_mode(plg_float_mode mode) {
  __asm__ volatile("msr fpcr, %0" : : "r"(mode.control));
}

#else
#include <fenv.h>

plg_float_mode plg_float_mode_now(void) {
  return (plg_float_mode){(uint64_t)fegetround(), 0};
}

static void set_mode(plg_float_mode mode) {
  fesetround((int)mode.control);
}

#endif

void plg_float_mode_restore(plg_float_mode before, const char *plugin, const char *what) {
  plg_float_mode now = plg_float_mode_now();
  if (now.control == before.control && now.x87 == before.x87) return;
  set_mode(before);
  err_log(GRAFT_LOG_WARNING,
          "%s: %s changed the floating-point mode of the process (control word 0x%llx became 0x%llx, that of the x87 "
          "0x%x became 0x%x); it is put back. Link the plugin and its libraries without -ffast-math",
          plugin, what, (unsigned long long)before.control, (unsigned long long)now.control, before.x87, now.x87);
}
