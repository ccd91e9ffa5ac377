/* What the ops of this family share. */
#include "kernels/linalg/linalg.h"

int64_t ocl_stack_count(const graft_tensor_desc *desc, int32_t tail) {
  int64_t count = 1;
  for (int32_t d = 0; d < desc->dl.ndim - tail; d++) count *= desc->dl.shape[d];
  return count;
}

int64_t ocl_stack_size(const graft_tensor_desc *desc, int32_t from_end) {
  return desc->dl.shape[desc->dl.ndim - from_end];
}

static int64_t units_of(const graft_exec *exec, int64_t matrices) {
  return exec->device->is_cpu ? matrices : 64 * matrices;
}

bool ocl_stack_serves(const graft_exec *exec, const graft_tensor_desc *desc) {
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, desc->dl.dtype);
  return dtype && (dtype->class == OCL_CLASS_COMPLEX || (dtype->class == OCL_CLASS_FLOAT && dtype->bytes >= 4));
}

/* The numbers of a vector, and the rows of a strip whose sums fill the registers of the machine: see blocks.cl. */
typedef struct registers {
  int lanes, rows;
} registers;

static const registers *registers_of(const graft_device *device, const ocl_dtype *dtype) {
  static const registers single = {1, 4}, of_f32[] = {{4, 4}, {8, 4}, {16, 8}}, of_f64[] = {{2, 4}, {4, 4}, {8, 8}};
  int width = device->vector_width == 16 ? 2 : device->vector_width == 8;
  if (!device->is_cpu || !dtype || dtype->class != OCL_CLASS_FLOAT) return &single;
  return dtype->bytes == 4 ? &of_f32[width] : &of_f64[width];
}

static void add_registers(ocl_text *head, const void *of) {
  const registers *r = of;
  ocl_text_add(head, "#define LANES %d\n#define TILE %d\n", r->lanes, r->rows);
}

ocl_direct ocl_stack_call(const graft_exec *exec, const graft_tensor_desc *like, const char *file, int places) {
  return (ocl_direct){.file = file,
                      .dtype = like->dl.dtype,
                      .head = add_registers,
                      .of = registers_of(exec->device, ocl_dtype_of(exec->device, like->dl.dtype)),
                      .places = places};
}

enum { BLOCK = OCL_STACK_BLOCK, TILE_MAX = 8 }; /* as in blocks.cl */

int64_t ocl_stack_block_width(int64_t count) {
  return count < BLOCK ? ocl_round_up(count, TILE_MAX) : BLOCK;
}

int64_t ocl_stack_block_work(int64_t rows, int64_t count) {
  int64_t width = ocl_stack_block_width(count);
  return (rows + width) * width;
}

enum { PART_MIN = 64 }; /* columns that are worth a work-group */

int64_t ocl_stack_parts(const graft_exec *exec, int64_t matrices, int64_t columns) {
  int64_t most = ocl_ceil_divide(columns, PART_MIN),
          enough = ocl_ceil_divide(2 * (int64_t)exec->device->compute_units, matrices ? matrices : 1);
  return most < 1 ? 1 : exec->device->is_cpu && enough < most ? enough : most;
}

int64_t ocl_stack_parts_of_steps(const graft_exec *exec, int64_t matrices, int64_t columns) {
  int64_t parts = ocl_stack_parts(exec, matrices, columns), cores = (int64_t)exec->device->compute_units;
  return exec->device->is_cpu && parts > cores ? cores : parts;
}

ocl_stage *ocl_stack_stage(const graft_exec *exec, ocl_direct *call, const char *entry, int64_t matrices,
                           const ocl_place *places) {
  ocl_stage *stage = call->stages;
  while (stage->entry) stage++;
  *stage = (ocl_stage){.entry = entry, .units = units_of(exec, matrices)};
  for (int i = 0; i < call->places; i++) stage->places[i] = places[i];
  return stage;
}

static uint64_t bytes_of(const graft_exec *exec, const graft_tensor_desc *like, int64_t elements) {
  return (uint64_t)elements * ocl_dtype_of(exec->device, like->dl.dtype)->bytes;
}

graft_status ocl_stack_work(const graft_exec *exec, const graft_tensor_desc *like, int64_t elements, ocl_place *work) {
  return ocl_workspace(exec, bytes_of(exec, like, elements) + 8, work); /* memory, where there are no elements, too */
}

ocl_place ocl_stack_behind(const graft_exec *exec, const graft_tensor_desc *like, ocl_place place, int64_t elements) {
  return (ocl_place){place.buffer, place.offset + bytes_of(exec, like, elements)};
}
