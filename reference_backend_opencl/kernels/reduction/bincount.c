/* bincount: the greatest number, which is waited for and says how many bins there are, then counts or sums. */
#include "kernels/core/radix.h"
#include "kernels/indexing/search.h"

/* As bincount.cl has it. */
typedef struct space {
  int64_t n, chunk;
} space;

typedef struct memo {
  ocl_kernel greatest, greatest_of_all;
  ocl_kernel parts;           /* on a CPU: many bins */
  ocl_kernel count, join;     /* and few */
  ocl_kernel global, local;   /* elsewhere: counts */
  ocl_kernel make_items, add; /* and sums of weights */
  ocl_kernel radix[OCL_RADIX_KERNELS];
  ocl_radix_plan plan;
  space space;
  int64_t groups;
  int64_t stretch, stretches; /* numbers that have bins of their own, on a CPU, and how many times that is */
  bool weighted;
} memo;

enum {
  KERNELS = 9 + OCL_RADIX_KERNELS,
  LOCAL_BINS = 4096, /* 16 KiB, which OpenCL asks each device for */
  GROUP = 256,
  PER_ITEM = 16,
  STRETCH_LEAST = 16384,
  STRETCHES_MOST = 16,
  BINS_OF_STRETCH = 16384, /* which is no more than a stretch has numbers */
  BINS_AT_ONCE = 1024
};
#define BINS_MOST  (INT64_C(1) << 40) /* as the rule has it */
#define CHUNK_MOST (INT64_C(1) << 31) /* a work-group counts in 32 bits */

static graft_status make_radix(memo *memo, graft_device *device, const ocl_dtype *dtype) {
  memo->plan = ocl_radix_plan_of(device, 1, memo->space.n, 32, true); /* as many bits as a key may have */
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, memo->plan.local);
  ocl_radix_head(&head, &memo->plan);
  graft_status status =
      ocl_radix_init(memo->radix, device, &head, "core/items core/warps core/sums core/radix", &memo->plan);
  ocl_text_free(&head);
  return status;
}

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype, const ocl_dtype *weight) {
  const bool is_cpu = device->is_cpu, counts = !is_cpu && !weight, sorts = !is_cpu && weight;
  const size_t local = is_cpu ? 1 : GROUP;
  const int64_t chunks = memo->groups * (int64_t)local;
  const struct {
    ocl_kernel *kernel;
    const char *entry;
    int64_t items;
    bool wanted, takes_space;
  } rows[] = {{&memo->greatest, "greatest", chunks, true, true},
              {&memo->greatest_of_all, "greatest_of_all", 1, true, false},
              {&memo->parts, "add_parts", 1, is_cpu, true},
              {&memo->count, "count_stretches", memo->stretches, is_cpu && memo->stretches > 1, true},
              {&memo->join, "join_stretches", 1, is_cpu && memo->stretches > 1, false},
              {&memo->global, "count_global", chunks, counts, true},
              {&memo->local, "count_local", chunks, counts, true},
              {&memo->make_items, "make_items", memo->space.n, sorts, true},
              {&memo->add, "add_sorted", memo->space.n, sorts, true}};
  const ocl_argument space = OCL_VALUE(memo->space);
  graft_status status = GRAFT_OK;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define NARROW\n#define D %s\n#define LOCAL_BINS %d\n", dtype->name, LOCAL_BINS);
  if (weight) ocl_text_add(&head, "#define WEIGHT %s\n", weight->code == GRAFT_F64 ? "double" : "float");
  for (size_t i = 0; i < sizeof rows / sizeof *rows && status == GRAFT_OK; i++) {
    if (!rows[i].wanted) continue;
    status = ocl_kernel_init(rows[i].kernel, device, &head, "core/items reduction/bincount", rows[i].entry);
    if (status == GRAFT_OK && rows[i].takes_space) status = ocl_kernel_set(rows[i].kernel, 1, &space);
    ocl_kernel_size(rows[i].kernel, rows[i].items, local);
  }
  ocl_text_free(&head);
  return status == GRAFT_OK && sorts ? make_radix(memo, device, dtype) : status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_args_bincount *args = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->self->dl.dtype);
  const ocl_dtype *weight = args->weights ? ocl_dtype_of(device, args->weights->dl.dtype) : NULL;
  if (!dtype || dtype->class != OCL_CLASS_INT || (args->weights && !weight)) return GRAFT_UNIMPLEMENTED;
  if (weight && weight->code != GRAFT_F32 && weight->code != GRAFT_F64) return GRAFT_UNIMPLEMENTED;
  space *s = &memo->space;
  s->n = ocl_elements(args->self);
  memo->weighted = weight;
  if (memo->weighted && !device->is_cpu && s->n >= UINT32_MAX) return GRAFT_UNIMPLEMENTED;
  const int64_t units = 4 * (int64_t)device->compute_units;
  s->chunk = ocl_larger(ocl_ceil_divide(s->n, units), device->is_cpu ? 4096 : GROUP * PER_ITEM);
  if (s->chunk > CHUNK_MOST) s->chunk = CHUNK_MOST;
  memo->groups = ocl_ceil_divide(s->n, s->chunk);
  memo->stretch = ocl_larger(ocl_ceil_divide(s->n, STRETCHES_MOST), STRETCH_LEAST);
  memo->stretches = device->is_cpu ? ocl_ceil_divide(s->n, memo->stretch) : 0;
  return make_kernels(memo, device, dtype, weight);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = KERNELS, .prepare = prepare};

/* The greatest number; waited for. */
static graft_status find_greatest(const graft_exec *exec, memo *memo, const graft_args_bincount *args, ocl_place work,
                                  int64_t *most) {
  const ocl_argument each[] = {OCL_PLACE(work), OCL_TENSOR(args->self)};
  const ocl_argument all[] = {OCL_PLACE(work), OCL_VALUE(memo->groups)};
  graft_status status = ocl_launch(&memo->greatest, exec->stream, OCL_ALL(each));
  if (status == GRAFT_OK) status = ocl_launch(&memo->greatest_of_all, exec->stream, OCL_ALL(all));
  if (status != GRAFT_OK) return status;
  const ocl_place at = {work.buffer, work.offset + (uint64_t)memo->groups * sizeof *most};
  status = ocl_read_total(exec->stream, at, most);
  if (status != GRAFT_OK) return status;
  if (*most >= 0 && *most < BINS_MOST) return GRAFT_OK;
  return ocl_fail(exec->device->plugin, GRAFT_INVALID_ARGUMENT,
                  "aten::bincount: self has the number %lld; expected 0 to 2^40 - 1", (long long)*most);
}

static graft_status fill_zeros(graft_stream *stream, const graft_tensor_desc *out, int64_t bins) {
  const uint8_t zero = 0;
  const uint64_t bytes = (uint64_t)bins * GRAFT_DTYPE_BYTES(out->dl.dtype);
  return ocl_memory_api.fill(stream, out->dl.data, out->dl.byte_offset, bytes, &zero, 1);
}

static graft_status count(const graft_exec *exec, memo *memo, const graft_args_bincount *args,
                          const graft_tensor_desc *out, int64_t bins) {
  const cl_int few = (cl_int)bins;
  const ocl_argument local[] = {OCL_TENSOR(out), OCL_TENSOR(args->self), OCL_VALUE(few)};
  const ocl_argument global[] = {OCL_TENSOR(out), OCL_TENSOR(args->self)};
  return bins <= LOCAL_BINS ? ocl_launch(&memo->local, exec->stream, OCL_ALL(local))
                            : ocl_launch(&memo->global, exec->stream, OCL_ALL(global));
}

static graft_status add_weights(const graft_exec *exec, memo *memo, const graft_args_bincount *args,
                                const graft_tensor_desc *out, int64_t most, ocl_place items) {
  ocl_radix_plan plan = memo->plan;
  ocl_place other = {items.buffer, items.offset + plan.items_bytes};
  const ocl_place counts = {items.buffer, other.offset + plan.items_bytes};
  ocl_radix_plan_bits(&plan, ocl_radix_bits((uint64_t)most));
  const ocl_argument make[] = {OCL_PLACE(items), OCL_TENSOR(args->self)};
  graft_status status = ocl_launch(&memo->make_items, exec->stream, OCL_ALL(make));
  if (status == GRAFT_OK) status = ocl_radix_sort(exec, memo->radix, &plan, &items, &other, counts);
  const ocl_argument add[] = {OCL_TENSOR(out), OCL_PLACE(items), OCL_TENSOR(args->weights)};
  return status == GRAFT_OK ? ocl_launch(&memo->add, exec->stream, OCL_ALL(add)) : status;
}

/* Few bins: each stretch of numbers has its own, which are joined in their order. */
static graft_status add_stretches(const graft_exec *exec, memo *memo, const graft_args_bincount *args,
                                  const graft_tensor_desc *out, int64_t bins, ocl_place work) {
  const graft_tensor_desc *weights = args->weights ? args->weights : args->self; /* not looked at */
  const int64_t part = BINS_AT_ONCE;
  const ocl_argument count[] = {OCL_PLACE(work), OCL_TENSOR(args->self), OCL_TENSOR(weights), OCL_VALUE(bins),
                                OCL_VALUE(memo->stretch)};
  const ocl_argument join[] = {OCL_TENSOR(out), OCL_PLACE(work), OCL_VALUE(bins), OCL_VALUE(part),
                               OCL_VALUE(memo->stretches)};
  graft_status status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
  if (status != GRAFT_OK) return status;
  return ocl_launch_groups(&memo->join, exec->stream, (size_t)ocl_ceil_divide(bins, part), OCL_ALL(join));
}

/* Bins are shared out among a CPU's work-items, so that sums have the order of places. */
static graft_status add_parts(const graft_exec *exec, memo *memo, const graft_args_bincount *args,
                              const graft_tensor_desc *out, int64_t bins) {
  const int64_t part = ocl_ceil_divide(bins, exec->device->compute_units);
  const graft_tensor_desc *weights = args->weights ? args->weights : args->self; /* not looked at */
  const ocl_argument add[] = {OCL_TENSOR(out), OCL_TENSOR(args->self), OCL_TENSOR(weights), OCL_VALUE(bins),
                              OCL_VALUE(part)};
  return ocl_launch_groups(&memo->parts, exec->stream, (size_t)ocl_ceil_divide(bins, part), OCL_ALL(add));
}

graft_status ocl_op_bincount(const graft_exec *exec, const graft_args_bincount *args) {
  const graft_host *host = exec->device->plugin->host;
  const graft_tensor_desc *out;
  int64_t most = 0, bins = args->minlength;
  memo *memo;
  ocl_place work;
  graft_status status;
  if (ocl_elements(args->self) == 0) {
    status = host->output_shape(exec, args->out, 1, &bins, &out);
    return status == GRAFT_OK && bins ? fill_zeros(exec->stream, out, bins) : status;
  }
  status = ocl_memo_get(exec, &memo_type, args, &memo);
  if (status != GRAFT_OK) return status;
  const uint64_t found = (uint64_t)ocl_round_up((memo->groups + 1) * (int64_t)sizeof most, 64);
  const uint64_t own_bins = memo->stretches > 1 ? (uint64_t)memo->stretches * BINS_OF_STRETCH * sizeof(int64_t) : 0;
  status = ocl_workspace(exec, found + own_bins + 2 * memo->plan.items_bytes + memo->plan.counts_bytes, &work);
  if (status == GRAFT_OK) status = find_greatest(exec, memo, args, work, &most);
  if (status != GRAFT_OK) return status;
  const bool sorts = memo->weighted && !exec->device->is_cpu;
  if (sorts && most >= UINT32_MAX) return GRAFT_UNIMPLEMENTED;
  bins = ocl_larger(bins, most + 1);
  status = host->output_shape(exec, args->out, 1, &bins, &out);
  const ocl_place items = {work.buffer, work.offset + found};
  if (status == GRAFT_OK && exec->device->is_cpu)
    return memo->stretches > 1 && bins <= BINS_OF_STRETCH ? add_stretches(exec, memo, args, out, bins, items)
                                                          : add_parts(exec, memo, args, out, bins);
  if (status == GRAFT_OK) status = fill_zeros(exec->stream, out, bins);
  if (status != GRAFT_OK) return status;
  return sorts ? add_weights(exec, memo, args, out, most, items) : count(exec, memo, args, out, bins);
}
