/* Stands between the OpenCL backend and the loader (LD_PRELOAD), and makes the first device one of NVIDIA's with
 * Hopper's tensor cores, of which nothing runs: the text of each program is written to the folder GRAFT_TEXTS, and
 * nothing is compiled. For tests/opencl_texts.py. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "idle_device.h"

__attribute__((constructor)) static void describe(void) {
  static const idle_answer h100[] = {IDLE_H100, {0}};
  idle_describe(h100);
}

void idle_program_made(const idle_program *program) {
  const char *folder = getenv("GRAFT_TEXTS");
  static atomic_int number;
  char path[512];
  if (!folder || !program->text[0]) return;
  snprintf(path, sizeof path, "%s/%d-%d.cl", folder, (int)getpid(), atomic_fetch_add(&number, 1));
  FILE *file = fopen(path, "w");
  if (!file) return;
  fputs(program->text, file);
  fclose(file);
}

void idle_launched(const idle_program *program, const char *kernel, cl_uint dims, const size_t *global,
                   const size_t *local) {
  (void)program, (void)kernel, (void)dims, (void)global, (void)local;
}

void idle_buffer_made(size_t bytes) {
  (void)bytes;
}
