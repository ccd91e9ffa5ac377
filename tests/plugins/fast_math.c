/* What the start files of some compilers do in a library that is linked with -ffast-math: from then on the thread that
 * loads it flushes denormals to zero; and the x87 computes in single precision. */
#include <stdint.h>

__attribute__((constructor)) static void change_the_mode(void) {
#if defined(__x86_64__)
  uint32_t mxcsr = 0;
  uint16_t x87 = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  mxcsr |= 0x8040;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  x87 = (uint16_t)(x87 & ~0x300);
  __asm__ volatile("fldcw %0" : : "m"(x87));
#elif defined(__aarch64__)
  uint64_t fpcr = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  fpcr |= UINT64_C(1) << 24;
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}
