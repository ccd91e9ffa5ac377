/* What runtime/dtype.c makes of a number that a call brings: the host's element of the dtype, to the bit. */
#include <math.h>
#include <string.h>

#include "graft/tensor.h"
#include "reference_backend_opencl/runtime/ocl.h"
#include "suite.h"
#include "tensor/dtype.h"

static const graft_dtype dtypes[] = {GRAFT_F16, GRAFT_BF16, GRAFT_F8_E4M3FN, GRAFT_F8_E5M2, GRAFT_F32};

static void expect_stored(graft_dtype code, float value) {
  const graft_device device = {.has_f64 = true};
  const ocl_number number = {.re = value};
  uint32_t ours = 0, expected = 0;
  ocl_number_store(&number, ocl_dtype_of(&device, code), &ours);
  dt_store(code, &expected, (dt_value){value, 0});
  ck_assert_msg(ours == expected, "%a as %s: %x, not %x", (double)value, graft_dtype_name(code), ours, expected);
}

/* Each number that f32 has with eight or thirteen bits of its mantissa, 0 of both signs among them, those beside it,
 * and what lies halfway to the next. NaN may have any bits. */
START_TEST(numbers_are_stored_as_the_host_does) {
  static const uint32_t beside[] = {0, 1, UINT32_MAX, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001};
  for (uint32_t high = 0; high < 1u << 19; high++) {
    for (int k = 0; k < ROWS(beside); k++) {
      const uint32_t bits = (high << 13) + beside[k];
      float value;
      memcpy(&value, &bits, sizeof value);
      if (!isnan(value)) expect_stored(dtypes[_i], value);
    }
  }
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(numbers_are_stored_as_the_host_does, ROWS(dtypes)), {0}};
  return run_suite("opencl_dtype", tests, (suite_options){.timeout_s = 60});
}
