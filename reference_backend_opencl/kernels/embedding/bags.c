/* Bags of embeddings: sums, means or maxima of the rows of a table that indices name. */
#include "kernels/core/direct.h"

/* As bags.cl counts them. */
enum { WIDTH, BAGS, COUNT, TABLE, PADDING, OFFSETS, NUMBERS };
enum { SUM_OF_ROWS, MEAN_OF_ROWS, LARGEST_OF_ROWS };

typedef struct bags {
  const graft_args_embedding_bag *args;
  int64_t wide; /* vectors of a row that are summed side by side */
  const char *whole;
} bags;

static void write_head(ocl_text *head, const void *of) {
  const bags *b = of;
  ocl_text_add(head, "#define MODE %d\n#define WEIGHTED %d\n#define WIDE %d\n#define D_WHOLE %s\n#define OP_ID %u\n",
               (int)b->args->mode, b->args->per_sample_weights != NULL, (int)b->wide, b->whole,
               (unsigned)GRAFT_OP_EMBEDDING_BAG);
}

static const ocl_dtype *whole_of(const graft_exec *exec, const graft_args_embedding_bag *args) {
  if (!args->out0 || !args->out1 || !args->out2) return NULL;
  if (args->mode == LARGEST_OF_ROWS && !args->out3) return NULL;
  if (args->indices->dl.dtype != GRAFT_I64 || args->offsets->dl.dtype != GRAFT_I64) return NULL;
  return ocl_dtype_of(exec->device, args->out1->dl.dtype);
}

/* A work-item of a CPU goes to a row once for several vectors; those of a GPU are many, and take one each. */
static int64_t wide_of(const graft_device *device, int64_t mode, int64_t vectors) {
  if (!device->is_cpu || mode == LARGEST_OF_ROWS) return 1;
  return vectors >= 4 ? 4 : vectors >= 2 ? 2 : 1;
}

graft_status ocl_op_embedding_bag(const graft_exec *exec, const graft_args_embedding_bag *args) {
  const ocl_dtype *whole = whole_of(exec, args);
  if (!whole) return GRAFT_UNIMPLEMENTED;
  const graft_dl_tensor *weight = &args->weight->dl, *out = &args->out0->dl;
  const int64_t numbers[NUMBERS] = {
      [WIDTH] = weight->shape[1],
      [BAGS] = out->shape[0],
      [COUNT] = ocl_elements(args->indices),
      [TABLE] = weight->shape[0],
      [PADDING] = args->padding_idx < 0 ? -1 : args->padding_idx,
      [OFFSETS] = ocl_elements(args->offsets),
  };
  const unsigned lanes = ocl_lanes_within(ocl_direct_lanes(exec->device), numbers[WIDTH]);
  const bags b = {
      .args = args, .whole = whole->name, .wide = wide_of(exec->device, args->mode, numbers[WIDTH] / lanes)};
  ocl_direct call = {.file = "core/direct core/places embedding/bags",
                     .dtype = weight->dtype,
                     .lanes = lanes,
                     .head = write_head,
                     .of = &b,
                     .numbers = numbers,
                     .count = NUMBERS,
                     .reports = true,
                     .places = 6};
  const ocl_place indices = ocl_place_of(args->indices), offsets = ocl_place_of(args->offsets);
  call.stages[0] = (ocl_stage){.entry = "places",
                               .units = numbers[COUNT] + numbers[OFFSETS],
                               .places = {ocl_place_of(args->out1), ocl_place_of(args->out2), indices, offsets}};
  call.stages[1] =
      (ocl_stage){.entry = "bags",
                  .units = numbers[BAGS] * ocl_ceil_divide(numbers[WIDTH], b.wide * lanes),
                  .places = {ocl_place_of(args->out0), ocl_place_of(args->out3), ocl_place_of(args->weight), indices,
                             offsets, ocl_place_of(args->per_sample_weights)}};
  return ocl_direct_run(exec, &call);
}
