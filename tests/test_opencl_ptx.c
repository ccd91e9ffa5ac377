/* What runtime/ptx.c makes of NVIDIA's PTX: marked lines stand bare, the target is the one that has them, and all else
 * is as it was. */
#include <stdlib.h>

#include "reference_backend_opencl/runtime/ptx.h"
#include "suite.h"

static const struct {
  const char *ptx, *uncovered;
} texts[] = {
    {"", ""},
    {".version 9.0\n.target sm_90, texmode_independent\n", ".version 9.0\n.target sm_90a, texmode_independent\n"},
    {".target sm_90a\n", ".target sm_90a\n"},
    {".target sm_90\nmov.u32 %r1, %tid.x; // .target sm_90\n",
     ".target sm_90a\nmov.u32 %r1, %tid.x; // .target sm_90\n"},
    {"// begin inline asm\n//@ wgmma.fence.sync.aligned;\n// end inline asm\n",
     "// begin inline asm\n wgmma.fence.sync.aligned;\n// end inline asm\n"},
    {"//@ { .reg .pred p;\n//@ }\n", " { .reg .pred p;\n }\n"},
    {".target sm_80\n//@", ".target sm_80\n"},
    {"//", "//"},
};

START_TEST(test_uncovers) {
  char *text = ocl_ptx_uncover(texts[_i].ptx);
  ck_assert_ptr_nonnull(text);
  ck_assert_str_eq(text, texts[_i].uncovered);
  free(text);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(test_uncovers, ROWS(texts)), {0}};
  return run_suite("opencl_ptx", tests, (suite_options){0});
}
