/* Exit waits for what the OpenCL backend's streams were given, where the driver compiles in threads of the process:
 * they would crash it (runtime/exit.c). */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bad_input.h"
#include "device/device.h"
#include "suite.h"

#define POCL "/etc/OpenCL/vendors/pocl.icd"

enum { BYTES = 1 << 26, FILLS = 40 };

/* Other drivers are not waited for. */
static bool has_pocl(void) {
  return has_opencl() && access(POCL, R_OK) == 0 && setenv("OCL_ICD_VENDORS", POCL, 1) == 0;
}

/* A kernel, so that there is a program; then work for a good while, of which the last number goes to *last. */
static void submit_much(uint8_t *last) {
  const float number = 1;
  graft_tensor *one, *negative = NULL;
  graft_rt_device *opened = device_at(OPENCL, NULL, 0);
  OK(graft_tensor_from_host(opened, GRAFT_F32, 0, NULL, &number, &one));
  const graft_value arguments[] = {graft_value_tensor(one)};
  OK(graft_call(graft_op_find("aten::neg"), arguments, 1, &negative, 1));
  const graft_memory_api *memory = opened->backend->plugin.memory;
  graft_allocation request = {.struct_size = sizeof request, .bytes = BYTES, .kind = GRAFT_MEMORY_DEVICE};
  graft_stream *stream;
  OK(opened->backend->plugin.stream->create(opened->handle, 0, 0, &stream));
  OK(memory->allocate(opened->handle, &request));
  for (uint8_t i = 1; i <= FILLS; i++) OK(memory->fill(stream, request.buffer, 0, BYTES, &i, 1));
  OK(memory->copy_to_host(stream, last, request.buffer, BYTES - 1, 1, 0));
}

START_TEST(it_waits_for_streams) {
  if (!has_pocl()) return;
  uint8_t *last = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert(last != MAP_FAILED);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    submit_much(last);
    exit(0);
  }
  int how;
  ck_assert_int_eq(waitpid(child, &how, 0), child);
  ck_assert(WIFEXITED(how));
  ck_assert_int_eq(WEXITSTATUS(how), 0);
  ck_assert_int_eq(*last, FILLS);
}
END_TEST

/* A child made by fork has neither the driver's threads nor anything to wait for. */
START_TEST(a_child_does_not) {
  if (!has_pocl()) return;
  uint8_t *last = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert(last != MAP_FAILED);
  submit_much(last);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) exit(3);
  int how;
  ck_assert_int_eq(waitpid(child, &how, 0), child);
  ck_assert(WIFEXITED(how));
  ck_assert_int_eq(WEXITSTATUS(how), 3);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(it_waits_for_streams), ONCE(a_child_does_not), {0}};
  return run_suite("opencl_exit", tests, (suite_options){0});
}
