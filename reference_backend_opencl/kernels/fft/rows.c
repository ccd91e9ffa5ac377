/* Transforms of whole lines at a time, on a CPU: see rows.cl. */
#include "kernels/fft/fft.h"

enum {
  LANES_LEAST = 4,
  ROW_MOST = 32768,  /* points, of which a tile holds two copies: as much as a core's own cache */
  BESIDE_MOST = 2048 /* the same for lines side by side */
};

/* As rows.cl has it. */
typedef struct rows {
  int64_t units, per_item, size, rank, flags, stages, radices, lanes, halves, step_in, step_out;
  int64_t batch_size[OCL_FFT_BATCH_DIMS], stride_in[OCL_FFT_BATCH_DIMS], stride_out[OCL_FFT_BATCH_DIMS];
} rows;

static bool from_real(const ocl_fft_line *line) {
  return line->load_flags & OCL_FFT_FROM_REAL;
}

/* Complex points of a line: of real ones half as many. */
static int64_t points_of(const ocl_fft_line *line) {
  return from_real(line) ? line->points / 2 : line->points;
}

static void add_radix(rows *s, int64_t radix, int64_t *rest) {
  s->radices |= radix << OCL_FFT_RADIX_BITS * s->stages++;
  *rest /= radix;
}

/* False where another prime is left over. Of two, eights as far as they go without one alone being left. */
static bool choose_radices(rows *s) {
  int64_t rest = s->size;
  while (rest % 5 == 0) add_radix(s, 5, &rest);
  while (rest % 3 == 0) add_radix(s, 3, &rest);
  while (rest % 8 == 0 && rest != 16) add_radix(s, 8, &rest);
  while (rest % 4 == 0) add_radix(s, 4, &rest);
  if (rest % 2 == 0) add_radix(s, 2, &rest);
  return rest == 1;
}

static bool lie_beside(const ocl_fft_plan *p) {
  const int64_t last = p->kept - 1;
  return p->kept > 0 && p->in[last] == 1 && p->out[last] == 1 && p->size[last] % (int64_t)ocl_fft_vector(p) == 0;
}

/* How many lanes share a line in a row: as many as divide it, and have points enough for a square; 0: none. */
static int64_t lanes_of(const ocl_fft_plan *p, int64_t points) {
  for (int64_t lanes = (int64_t)ocl_fft_vector(p); lanes >= LANES_LEAST; lanes /= 2) {
    if (points % lanes == 0 && points >= lanes * lanes)
      return choose_radices(&(rows){.size = points / lanes}) ? lanes : 0;
  }
  return 0;
}

bool ocl_fft_rows_serve(const ocl_fft_plan *p, const ocl_fft_line *line) {
  const int64_t points = points_of(line);
  if (!p->device->is_cpu || p->batches * line->points <= OCL_SMALL) return false;
  if ((line->load_flags & OCL_FFT_FROM_HALF) || line->store_flags) return false;
  if (from_real(line) ? line->points % 2 || line->points_out != points + 1 : line->points_out != points) return false;
  if (line->from.strides[line->dim] != 1 || line->to.strides[line->dim] != 1) {
    return !from_real(line) && points <= BESIDE_MOST && lie_beside(p) && choose_radices(&(rows){.size = points});
  }
  return points <= ROW_MOST && lanes_of(p, points);
}

static void lay_batches(rows *s, const ocl_fft_plan *p) {
  s->rank = p->kept;
  for (int64_t d = 0; d < p->kept; d++) {
    s->batch_size[d] = p->size[d], s->stride_in[d] = p->in[d], s->stride_out[d] = p->out[d];
  }
}

static graft_status make_kernel(ocl_fft_plan *p, ocl_fft_step *step, const rows *s, unsigned vec, bool beside,
                                double scale, int64_t items) {
  ocl_text head = {0};
  ocl_head_types(&head, p->real, vec, 1);
  ocl_text_add(&head, "#define BATCH_DIMS %d\n#define RADIX_BITS %d\n%s%s", OCL_FFT_BATCH_DIMS, OCL_FFT_RADIX_BITS,
               beside ? "#define BESIDE\n" : "", s->halves ? "#define HALVES\n" : "");
  graft_status status =
      ocl_kernel_make(&step->kernel, p->device, &head, "core/square fft/butterflies fft/rows", "fft_rows");
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&step->kernel, items, 1);
  const ocl_number factor = {.re = scale};
  ocl_value value;
  const size_t bytes = ocl_number_as(&factor, p->real, &value);
  const ocl_argument constants[] = {OCL_VALUE(step->table), {bytes, &value}, OCL_VALUE(*s)};
  return ocl_kernel_set(&step->kernel, OCL_ALL(constants));
}

graft_status ocl_fft_add_rows(ocl_fft_plan *p, const ocl_fft_line *line) {
  const int64_t points = points_of(line);
  const int64_t step_in = line->from.strides[line->dim], step_out = line->to.strides[line->dim];
  const bool beside = step_in != 1 || step_out != 1;
  const int64_t vec = beside ? (int64_t)ocl_fft_vector(p) : lanes_of(p, points);
  rows s = {.size = beside ? points : points / vec, .step_in = step_in, .step_out = step_out};
  if (line->backward) s.flags = OCL_FFT_SWAP_LOADED | OCL_FFT_SWAP_STORED;
  choose_radices(&s);
  lay_batches(&s, p);
  s.units = beside ? p->batches / vec : p->batches;
  s.per_item = ocl_ceil_divide(s.units, 4 * (int64_t)p->device->compute_units);
  const int64_t items = ocl_ceil_divide(s.units, s.per_item);
  const uint64_t bytes = (uint64_t)(items * 4 * (s.size + 1) * vec) * p->real->bytes;
  if (bytes > p->tile_bytes) p->tile_bytes = bytes;
  const ocl_fft_table table = {.wide = p->real->code == GRAFT_F64,
                               .size = s.size,
                               .lanes = beside ? 0 : vec,
                               .halves = from_real(line) ? points : 0};
  const ocl_fft_parts parts = ocl_fft_parts_of(&table);
  s.lanes = parts.lanes, s.halves = parts.halves;
  ocl_fft_step *step = &p->memo->steps[p->memo->count++];
  step->from = line->from.where, step->to = line->to.where;
  graft_status status = ocl_fft_table_get(p->device, &table, &step->table);
  return status == GRAFT_OK
             ? make_kernel(p, step, &s, (unsigned)vec, beside, from_real(line) ? line->scale / 2 : line->scale, items)
             : status;
}
