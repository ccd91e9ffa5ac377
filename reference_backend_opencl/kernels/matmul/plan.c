/* How a matrix product is cut, for which kernels, and what each of them takes. */
#include "kernels/matmul/product.h"

/* As in panels.cl and matmul.cl. */
typedef struct factor {
  int64_t rows, depth, row_stride, depth_stride, batch_stride;
  int64_t part, part_stride, width; /* of a sum over a batch: K of one product, and how far that of the next is */
  int64_t odd;
} factor;

typedef struct product {
  int64_t m, n, k, panels_m, panels_n, panels_per_item, splits, split_depth;
  int64_t a_batch, a_panel, a_row, a_depth, b_batch, b_panel, b_column, b_depth;
  int64_t out_batch, out_row, out_column;
  int64_t addend_batch, addend_row, addend_column;
  int64_t packed_a, odd;
} product;

/* How much of K a work-item packs: as much as a reduction adds up in one go, so that it can make a subtotal of that. */
enum { STEP = OCL_SEGMENT };

/* As panels.cl has them. */
enum { TILES_MOST = 32, SPAN = 256 };
/* For how many tiles a work-item's own panel of B should serve, and up to which K it is worth leaving cores idle. */
enum { OWN_TILES = 4, OWN_DEPTH = 512 };
/* Below so many multiplications a launch that packs takes longer than it saves; of numbers that are converted, fewer.
 */
enum { UNPACKED = 1 << 28, UNPACKED_HALVES = 1 << 24 };
/* From so many panels of B on it pays to pack an A that could be read as it lies. */
enum { A_READ_OFTEN = 16 };
/* Of so many elements an A that is read once comes from memory. */
enum { A_STREAMED = 1 << 18 };

/* A result of so few columns is made turned, as one of few rows. */
enum { FEW_COLUMNS = 16 };

/* So many multiplications take some ten microseconds. What a compiler takes for a tile grows with its sums. */
enum { SMALL_PRODUCTS = 1 << 20 };

/* As thin.cl has them, rows of columns whose K lies side by side too, and from how many elements of B on it is worth a
 * program of its own. */
enum { THIN_ROWS = 8, THIN_BY_COLUMNS = 32, THIN_VECTORS = 32, THIN_LEAST = 1 << 14 };

/* COMBINED as splits.cl has it; how short and how long a split of K should be, how many tiles a compute unit should
 * get, and how much of K is summed in one go where it isn't split. */
enum {
  COMBINED = 32,
  SPLIT_LEAST = 256,
  TENSOR_SPLIT_LEAST = 1024,
  SPLIT_MOST = 512,
  TILES_WANTED = 4,
  GPU_DEPTH_MAX = 1024
};

/* What a CPU core's cache holds beside the rest: the rows of A that a work-item takes, and how long a panel of B may
 * be. A longer K is cut into blocks, whose sums meet in the workspace; not into many, each of which is a launch. */
enum { CACHE_BYTES = 2048 << 10, DEPTH_MAX = 2048, BLOCKS_MAX = 64 };

static ocl_matrix matrix_of(const graft_tensor_desc *t, bool turned) {
  const graft_dl_tensor *dl = &t->dl;
  int row = dl->ndim - 2 + turned, column = dl->ndim - 1 - turned;
  bool batched = dl->ndim > 2;
  return (ocl_matrix){.batches = batched ? dl->shape[0] : 1,
                      .rows = dl->shape[row],
                      .columns = dl->shape[column],
                      .batch_stride = batched ? dl->strides[0] : 0,
                      .row_stride = dl->strides[row],
                      .column_stride = dl->strides[column]};
}

/* ---- The tile ---- */

/* As in tiles.cl. */
enum { SIDE = 16, STRIP = 16 };

/* The tile that fills the registers of the machine: 8 x 32 f32 with vectors of 16, 6 x 16 with vectors of 8. */
static ocl_tile cpu_tile(const graft_device *device, bool complex, bool wide) {
  ocl_tile t;
  t.vec = complex ? 1 : wide && device->vector_width > 4 ? device->vector_width / 2 : device->vector_width;
  t.m = device->vector_width == 16 ? 8 : device->vector_width == 8 ? 6 : 4;
  t.v = complex ? 4 : 2;
  t.n = t.v * t.vec;
  return t;
}

/* 64 x 64, or 128 x 128 of 4-byte numbers where there are enough such tiles for all of the machine. Of numbers of 16
 * bytes 32 x 32 where the strips of larger ones have no room in local memory. */
static ocl_tile gpu_tile(const graft_device *device, const ocl_dtype *compute, bool wide, const ocl_matrix *out) {
  const bool complex = compute->class == OCL_CLASS_COMPLEX;
  ocl_tile t;
  t.vec = complex ? 1 : wide ? 2 : 4;
  t.v = 4 / t.vec;
  t.m = t.n = SIDE * t.vec * t.v;
  int64_t large = 2 * t.m,
          count = ocl_ceil_divide(out->rows, large) * ocl_ceil_divide(out->columns, large) * out->batches;
  if (t.vec == 4 && count >= (int64_t)device->compute_units) t.v *= 2, t.m = t.n = large;
  const cl_ulong strips = 2 * (cl_ulong)(STRIP * (t.m + t.vec)) * compute->bytes;
  if (complex && strips > device->local_bytes) t.v /= 2, t.m /= 2, t.n /= 2;
  return t;
}

/* Half as many rows and vectors, where nothing is packed. The sums are the same, in the same order. */
static ocl_tile small_tile(ocl_tile t) {
  t.m /= 2;
  t.v /= 2;
  t.n = t.v * t.vec;
  return t;
}

/* Rows in a panel of A: see panels.cl. */
static int64_t rows_of_panel(const ocl_tile *t) {
  int64_t rows = t->m;
  while (t->n % t->m != 0 && rows % t->n != 0) rows += t->m;
  return rows;
}

static ocl_tile choose_tile(const graft_device *device, const ocl_dtype *compute, const ocl_matrix *out) {
  bool complex = compute->class == OCL_CLASS_COMPLEX;
  bool wide = compute->compute[0] == 'd' || compute->compute[0] == 'l' || compute->code == GRAFT_U64;
  return device->is_cpu ? cpu_tile(device, complex, wide) : gpu_tile(device, compute, wide, out);
}

static graft_status make_kernels(ocl_product *memo, graft_device *device, const ocl_operands *call,
                                 const ocl_tensor_plan *tensor, const ocl_tile *t) {
  const char *files = !device->is_cpu ? "matmul/matmul matmul/splits matmul/tiles"
                      : memo->thin    ? "core/pairs matmul/matmul matmul/thin"
                                      : "core/square core/pairs matmul/matmul matmul/panels";
  ocl_text head = {0};
  ocl_head_types(&head, memo->compute, (unsigned)t->vec, 1);
  ocl_text_add(&head, "#define D %s\n#define TILE_M %d\n#define TILE_V %d\n%s%s%s%s", memo->compute->name, (int)t->m,
               (int)t->v, call->addend ? "#define ADDEND\n" : "", call->relu ? "#define RELU\n" : "",
               call->scales ? "#define SCALED\n" : "", memo->pairs ? "#define PAIRS\n" : "");
  if (device->is_cpu)
    ocl_text_add(&head, "#define ROWS_A %d\n#define STEP %d\n", (int)rows_of_panel(t), (int)STEP);
  else
    ocl_text_add(&head, "#define TILE_N %d\n", (int)t->n);
  if (memo->tensor) files = ocl_tensor_head(&head, tensor, t);
  if (memo->f32) {
    const graft_tensor_desc *first = memo->swapped ? call->b : call->a, *second = memo->swapped ? call->a : call->b;
    const ocl_matrix a = matrix_of(first, memo->swapped), b = matrix_of(second, memo->swapped);
    files = ocl_f32_head(&head, &memo->way, &a, first->dl.byte_offset, &b, second->dl.byte_offset);
  }
  const char *entry = memo->own ? "multiply_own" : "multiply";
  if (head.failed) return GRAFT_OUT_OF_MEMORY;
  graft_status status = ocl_writing_init(&memo->multiply, device, call, &head, files, entry);
  if (status == GRAFT_OK && memo->splits)
    status = ocl_writing_init(&memo->combine, device, call, &head, files, "combine");
  const bool packs = device->is_cpu && !memo->thin;
  ocl_kernel *const first = memo->swapped ? &memo->pack_b : &memo->pack_a; /* of the call's factors */
  ocl_kernel *const second = memo->swapped ? &memo->pack_a : &memo->pack_b;
  if (status == GRAFT_OK && packs) status = ocl_kernel_init(second, device, &head, files, "pack");
  if (call->row_sums_to) ocl_text_add(&head, "#define SUMMED\n");
  if (status == GRAFT_OK && head.failed) status = GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK && packs) status = ocl_kernel_init(first, device, &head, files, "pack");
  ocl_text_free(&head);
  return status;
}

/* ---- The plan ---- */

static uint64_t bytes_of(int64_t elements, int64_t bytes) {
  return (uint64_t)ocl_round_up(elements * bytes, 256);
}

/* Factors that tensor cores can't read as they are, or not at this precision, are turned into the workspace. */
static graft_status plan_turning(ocl_product *memo, product *p, graft_device *device, const ocl_operands *call,
                                 const ocl_tensor_plan *tensor) {
  const ocl_matrix a = matrix_of(call->a, false), b = matrix_of(call->b, true);
  memo->packs_a = tensor->turns_a;
  memo->packs_b = tensor->turns_b;
  memo->bytes_a =
      tensor->turns_a ? bytes_of(tensor->a.batches * tensor->a.rows * tensor->a.row_stride, tensor->way->bytes) : 0;
  memo->bytes_b =
      tensor->turns_b ? bytes_of(tensor->b.batches * tensor->b.rows * tensor->b.row_stride, tensor->way->bytes) : 0;
  p->a_batch = tensor->a.batch_stride;
  p->a_row = tensor->a.row_stride;
  p->a_depth = tensor->a.column_stride;
  p->b_batch = tensor->b.batch_stride;
  p->b_column = tensor->b.row_stride;
  p->b_depth = tensor->b.column_stride;
  graft_status status = GRAFT_OK;
  if (memo->packs_a)
    status = ocl_turn_make(&memo->pack_a, device, ocl_dtype_of(device, call->a->dl.dtype), tensor->way, &a);
  if (status == GRAFT_OK && memo->packs_b)
    status = ocl_turn_make(&memo->pack_b, device, ocl_dtype_of(device, call->b->dl.dtype), tensor->way, &b);
  return status;
}

static bool is_at_most(const product *p, int64_t batches, int64_t multiplications) {
  return p->m * p->n * batches <= multiplications / (p->k > 0 ? p->k : 1);
}

/* How a factor is packed; one that is the same for all of a batch is so once. */
static graft_status set_packing(ocl_kernel *pack, const ocl_matrix *f, const factor *as, bool sums) {
  factor packed = *as;
  packed.part = sums ? as->depth / f->batches : as->depth;
  packed.part_stride = sums ? f->batch_stride : 0;
  if (sums || f->batch_stride == 0) pack->global[2] = 1;
  return ocl_kernel_set(pack, 1, &(ocl_argument)OCL_VALUE(packed));
}

/* Which factors are packed. A GPU packs nothing. */
static void choose_packing(ocl_product *memo, product *p, const graft_device *device, const ocl_matrix *a,
                           const ocl_matrix *b, const ocl_tile *t, bool sums) {
  if (!device->is_cpu || memo->thin || p->k == 0) return;
  const bool in_place = memo->compute->bytes >= 4 && !sums; /* nothing is computed in less */
  const bool small = memo->own && !memo->pairs && is_at_most(p, a->batches, in_place ? UNPACKED : UNPACKED_HALVES);
  const bool strided = a->column_stride != 1 && p->panels_n > 1;
  memo->packs_a = !small && (!in_place || strided || p->panels_n >= A_READ_OFTEN);
  memo->packs_b = !memo->own && (!in_place || b->column_stride != 1 || p->panels_m > 1 || p->n % t->n != 0);
}

/* How a factor lies as the product reads it. */
static graft_status plan_packing(ocl_product *memo, product *p, const graft_device *device, const ocl_matrix *a,
                                 const ocl_matrix *b, const ocl_tile *t, int64_t element, bool sums) {
  const int64_t step = memo->pairs && !memo->thin ? 2 : 1;
  p->a_batch = a->batch_stride;
  const int64_t rows_a = rows_of_panel(t);
  p->a_panel = rows_a * a->row_stride;
  p->a_row = a->row_stride;
  p->a_depth = a->column_stride;
  p->b_batch = b->batch_stride;
  p->b_panel = t->n * b->column_stride;
  p->b_column = b->column_stride;
  p->b_depth = step * b->row_stride;
  if (!device->is_cpu || memo->thin || p->k == 0) return GRAFT_OK;

  p->packed_a = memo->packs_a;
  if (memo->packs_a) {
    p->a_panel = rows_a * p->k;
    const int64_t panels = ocl_round_up(p->m, rows_a > t->n ? rows_a : t->n) * p->k,
                  batches = sums || a->batch_stride == 0 ? 1 : a->batches;
    p->a_batch = batches > 1 ? panels : 0;
    p->a_row = 1;
    p->a_depth = rows_a;
    memo->bytes_a = bytes_of(batches * panels, element);
  }
  if (memo->packs_b) {
    p->b_panel = t->n * p->k;
    const int64_t panels = p->panels_n * p->b_panel, batches = sums || b->batch_stride == 0 ? 1 : b->batches;
    p->b_batch = batches > 1 ? panels : 0;
    p->b_column = 1;
    p->b_depth = t->n;
    memo->bytes_b = bytes_of(batches * panels, element);
  }
  const factor fa = {.rows = p->m,
                     .depth = p->k,
                     .width = rows_a,
                     .row_stride = a->row_stride,
                     .depth_stride = step * a->column_stride,
                     .batch_stride = a->batch_stride,
                     .odd = p->odd};
  const factor fb = {.rows = p->n,
                     .depth = p->k,
                     .width = t->n,
                     .row_stride = b->column_stride,
                     .depth_stride = step * b->row_stride,
                     .batch_stride = b->batch_stride,
                     .odd = p->odd};
  graft_status status = set_packing(&memo->pack_a, a, &fa, sums);
  return status != GRAFT_OK ? status : set_packing(&memo->pack_b, b, &fb, sums);
}

/* Of bf16, two elements of K at a time, where the processor multiplies pairs and the product is large enough for both
 * factors to be packed. Then K counts these from here on; of a sum over a batch each product has its own. Few rows are
 * read as they lie. */
static void pair_depth(ocl_product *memo, product *p, const graft_device *device, int64_t batches, int64_t parts) {
  memo->pairs = ocl_multiplies_pairs(device, memo->compute) && p->k > 0 && !is_at_most(p, batches, UNPACKED_HALVES);
  if (!memo->pairs || memo->thin) return;
  const int64_t depth = p->k / parts;
  p->k = parts * ocl_ceil_divide(depth, 2);
  p->odd = depth % 2;
}

static void set_global(ocl_kernel *kernel, int64_t x, int64_t y, int64_t z) {
  kernel->global[0] = (size_t)x;
  kernel->global[1] = (size_t)y;
  kernel->global[2] = (size_t)z;
}

/* How much of K a launch takes. */
static int64_t block_of(int64_t k, int64_t most) {
  int64_t blocks = ocl_ceil_divide(k, most);
  if (blocks > BLOCKS_MAX) blocks = BLOCKS_MAX;
  return blocks > 1 ? ocl_ceil_divide(k, blocks) : k;
}

/* How many tiles each work-item takes. Those of neighbouring columns follow each other on one core and find their rows
 * of A in its cache; there must be enough items for all cores to end together. Where an item has all tiles of its
 * columns it makes their panel of B itself, and where the product is small, each of a few does; a sum over a batch has
 * its K in pieces. An A that is read once, from memory, is so row by row: the item then has one tile. */
static void share_tiles(ocl_product *memo, product *p, const graft_device *device, int64_t batches, const ocl_tile *t,
                        bool sums, bool tiny) {
  const int64_t element = memo->compute->bytes < 4 ? 4 : memo->compute->bytes, columns = p->panels_n * batches;
  const bool streams = p->panels_n == 1 && p->k > SPAN && p->m * p->k > A_STREAMED;
  memo->block = block_of(p->k, DEPTH_MAX);
  const int64_t cached = ocl_ceil_divide(p->panels_m * t->m * memo->block * element, CACHE_BYTES);
  const int64_t held = ocl_ceil_divide(p->panels_m, TILES_MOST), least = cached > held ? cached : held;
  int64_t enough = columns > 0 ? ocl_ceil_divide(8 * (int64_t)device->compute_units, columns) : 1;
  const int64_t few = ocl_ceil_divide(p->panels_m, OWN_TILES);
  const bool small = is_at_most(p, batches, UNPACKED) && (p->k <= OWN_DEPTH || enough <= few);
  memo->own = tiny || (!sums && !streams && (small || (enough == 1 && least <= 1)));
  if (memo->own && enough > few) enough = few;
  int64_t parts = enough > least ? enough : least;
  if (streams || parts > p->panels_m) parts = p->panels_m;
  p->panels_per_item = parts > 0 ? ocl_ceil_divide(p->panels_m, parts) : 1;
}

static void plan_items(ocl_product *memo, const product *p, int64_t batches, const ocl_tile *t) {
  set_global(&memo->pack_a, ocl_ceil_divide(p->k, STEP), ocl_ceil_divide(ocl_round_up(p->m, rows_of_panel(t)), t->n),
             batches);
  set_global(&memo->pack_b, ocl_ceil_divide(p->k, STEP), p->panels_n, batches);
  set_global(&memo->multiply, p->panels_n, ocl_ceil_divide(p->panels_m, p->panels_per_item), batches);
}

/* Strips of columns, of which each core gets some. */
static void plan_strips(ocl_product *memo, product *p, const graft_device *device, int64_t batches, const ocl_tile *t) {
  int64_t vectors = ocl_ceil_divide(p->n, t->vec);
  int64_t width = ocl_ceil_divide(vectors * batches, 4 * (int64_t)device->compute_units);
  memo->block = p->k;
  p->panels_per_item = width > THIN_VECTORS ? THIN_VECTORS : width;
  set_global(&memo->multiply, ocl_ceil_divide(vectors, p->panels_per_item), 1, batches);
}

/* Few tiles leave units idle: K is cut so that each gets one, where that saves more than it takes to add the parts up,
 * a launch. Of f64 two small ones run on a unit at once. */
static int64_t tensor_splits(const graft_device *device, const ocl_matrix *out, int64_t k, const ocl_tile *t,
                             const ocl_tensor_way *way) {
  const bool wide = way->bytes == 8;
  int64_t tiles = ocl_ceil_divide(out->rows, t->m) * ocl_ceil_divide(out->columns, t->n) * out->batches;
  int64_t units = device->compute_units * (wide && t->m == 64 ? 2 : 1);
  int64_t most = k / (wide ? SPLIT_LEAST : TENSOR_SPLIT_LEAST);
  int64_t wanted = tiles > 0 ? units / tiles : 1;
  if (wanted > most) wanted = most;
  return wanted > 1 ? wanted : 1;
}

/* Of too few tiles for the device K is cut, too: into as many parts as fill it, and more where those are long. */
static int64_t splits_of(const graft_device *device, const ocl_matrix *out, int64_t k, const ocl_tile *t) {
  int64_t tiles = ocl_ceil_divide(out->rows, t->m) * ocl_ceil_divide(out->columns, t->n) * out->batches;
  int64_t units = device->compute_units, most = k / SPLIT_LEAST;
  if (device->is_cpu || tiles == 0 || tiles >= units) return 1;
  int64_t fill = ocl_ceil_divide(TILES_WANTED * units, tiles), exact = ocl_ceil_divide(k, SPLIT_MOST);
  if (exact > BLOCKS_MAX) exact = BLOCKS_MAX;
  int64_t wanted = fill > exact ? fill : exact;
  if (wanted > most) wanted = most;
  return wanted > 1 ? wanted : 1;
}

/* All groups count along the first dimension: GPUs have at most 65,535 along the others. */
static void set_groups(ocl_kernel *kernel, int64_t groups, int64_t lanes) {
  set_global(kernel, groups * lanes, 1, 1);
  kernel->local[0] = (size_t)lanes;
}

static void plan_groups(ocl_product *memo, product *p, int64_t batches, const ocl_tile *t) {
  const int64_t groups = p->panels_n * p->panels_m * batches * p->splits;
  p->split_depth = ocl_round_up(ocl_ceil_divide(p->k, p->splits),
                                memo->tensor ? OCL_TENSOR_STRIP_BYTES / memo->tensor->bytes : STRIP);
  if (memo->f32) {
    memo->block = p->k;
    set_groups(&memo->multiply, groups, memo->way.lanes);
  } else if (memo->tensor) {
    memo->block = p->k;
    set_groups(&memo->multiply, groups, OCL_TENSOR_LANES(t->m));
  } else {
    memo->block = memo->splits ? p->k : block_of(p->k, GPU_DEPTH_MAX);
    set_groups(&memo->multiply, groups, SIDE);
    memo->multiply.global[1] = memo->multiply.local[1] = SIDE;
  }
  set_groups(&memo->combine, ocl_ceil_divide(p->n, t->vec * COMBINED) * p->m * batches, COMBINED);
}

static void plan_workspace(ocl_product *memo, const product *p, int64_t batches, const ocl_tile *t, int64_t element) {
  int64_t padded = batches * p->panels_m * t->m * p->panels_n * t->n;
  int64_t sums = memo->splits ? p->splits * padded : memo->block < p->k ? padded : 0;
  memo->skip_partial = memo->bytes_a + memo->bytes_b;
  memo->skip_scales = memo->skip_partial + bytes_of(sums, element);
  memo->workspace_bytes = memo->skip_partial + (uint64_t)(sums * element);
}

/* Whether a factor of few rows (turned: B, of few columns) meets a large matrix that lies row by row or column by
 * column. Of f32 that lies row by row the tiles of panels.cl are better from a third row on; a half type that lies
 * column by column would be converted for these. */
static bool is_thin(const graft_device *device, const ocl_dtype *compute, const ocl_operands *call, bool turned) {
  const ocl_matrix large = matrix_of(turned ? call->a : call->b, turned), out = matrix_of(call->out, turned);
  const ocl_matrix few = matrix_of(turned ? call->b : call->a, turned);
  bool by_rows = large.column_stride == 1, by_columns = large.row_stride == 1;
  int64_t most = compute->bytes == 2 || !by_rows ? THIN_ROWS : 2;
  if (compute->bytes == 2 && !by_rows && few.column_stride == 1) most = THIN_BY_COLUMNS;
  return device->is_cpu && compute->class == OCL_CLASS_FLOAT && compute->bytes <= 4 && (by_rows || by_columns) &&
         out.rows <= most && large.rows * large.columns >= THIN_LEAST;
}

/* Of few rows or, turned, of few columns, each in its way; else in tiles. */
static void plan_f32(ocl_product *memo, const graft_device *device, const ocl_operands *call, ocl_tile *t) {
  for (int turned = 0; turned < 2; turned++) {
    const ocl_matrix b = matrix_of(turned ? call->a : call->b, turned), out = matrix_of(call->out, turned);
    memo->swapped = turned;
    if (ocl_f32_rows(device, &b, &out, &memo->way)) break;
  }
  if (!memo->way.rows) {
    ocl_matrix out = matrix_of(call->out, false);
    memo->swapped = out.columns <= FEW_COLUMNS && out.rows > out.columns;
    out = matrix_of(call->out, memo->swapped);
    const ocl_matrix b = matrix_of(memo->swapped ? call->a : call->b, memo->swapped);
    memo->way = ocl_f32_tiles(device, &b, &out);
  }
  *t = memo->way.tile;
}

bool ocl_product_on_tensor_cores(ocl_tensor_plan *plan, graft_device *device, const ocl_operands *call, ocl_tile *t) {
  const ocl_product_factor a = {call->a->dl.dtype, call->a->dl.byte_offset, matrix_of(call->a, false)};
  const ocl_product_factor b = {call->b->dl.dtype, call->b->dl.byte_offset, matrix_of(call->b, true)};
  const ocl_matrix out = matrix_of(call->out, false);
  return (call->tf32 || a.dtype != GRAFT_F32) && ocl_tensor_plan_for(plan, device, &a, &b, &out, t);
}

/* How a product is cut, as far as no kernel is asked for that. */
typedef struct cut {
  ocl_matrix a, b, out; /* as the kernels take them, perhaps turned */
  ocl_tile tile;
  ocl_tensor_plan tensor;
  bool tiles; /* on a CPU, of any but few rows */
} cut;

static cut cut_product(ocl_product *memo, product *p, graft_device *device, const ocl_operands *call) {
  cut c = {.a = matrix_of(call->a, false), .b = matrix_of(call->b, false), .out = matrix_of(call->out, false)};
  ocl_tile *t = &c.tile;
  *t = choose_tile(device, memo->compute, &c.out);
  memo->tensor = ocl_product_on_tensor_cores(&c.tensor, device, call, t) ? c.tensor.way : NULL;
  memo->f32 = !memo->tensor && ocl_registers_serve(device, memo->compute);
  if (memo->f32) plan_f32(memo, device, call, t);
  bool thin_turned = !call->sums && is_thin(device, memo->compute, call, true);
  memo->thin = thin_turned || (!call->sums && is_thin(device, memo->compute, call, false));
  const int64_t sums = c.out.rows * c.out.columns * c.out.batches, depth = c.a.columns > 0 ? c.a.columns : 1;
  c.tiles = device->is_cpu && !memo->thin;
  const bool tiny = c.tiles && !call->sums && sums <= SMALL_PRODUCTS / depth;
  if (tiny) *t = small_tile(*t);
  const int64_t splits = memo->tensor ? tensor_splits(device, &c.out, c.a.columns, t, memo->tensor)
                         : memo->f32  ? memo->way.splits
                                      : splits_of(device, &c.out, c.a.columns, t);
  memo->splits = splits > 1;
  /* A few rows times a matrix that lies transposed, a layer's weight: the weight serves as it is in A's place. */
  if (!memo->f32)
    memo->swapped = memo->thin ? thin_turned
                               : device->is_cpu && c.b.row_stride == 1 && c.b.column_stride != 1 &&
                                     c.out.rows <= t->n && c.out.columns > c.out.rows;
  if (memo->swapped) {
    c.a = matrix_of(call->b, true);
    c.b = matrix_of(call->a, true);
    c.out = matrix_of(call->out, true);
  }
  *p = (product){
      .m = c.out.rows, .n = c.out.columns, .k = c.a.columns * (call->sums ? c.a.batches : 1), .splits = splits};
  p->panels_m = ocl_ceil_divide(p->m, t->m);
  p->panels_n = ocl_ceil_divide(p->n, t->n);
  if (memo->thin || (c.tiles && !tiny)) pair_depth(memo, p, device, c.out.batches, call->sums ? c.a.batches : 1);
  if (c.tiles) share_tiles(memo, p, device, c.out.batches, t, call->sums, tiny);
  choose_packing(memo, p, device, &c.a, &c.b, t, call->sums);
  return c;
}

bool ocl_product_packs_first(graft_device *device, const ocl_operands *call) {
  ocl_product memo = {.compute = ocl_dtype_of(device, call->out->dl.dtype)};
  product p;
  cut_product(&memo, &p, device, call);
  return memo.swapped ? memo.packs_b : memo.packs_a;
}

/* Subtotals of the rows of the call's first factor: one for each item that packs it. */
static graft_status plan_subtotals(ocl_product *memo, graft_device *device, const ocl_operands *call) {
  ocl_reduction_pass part = *call->row_sums_pass;
  const int64_t rows = part.kept.size[0] / memo->parts;
  memo->row_sums_step = (uint64_t)(rows * part.kept.stride[0][0] * memo->compute->bytes);
  memo->skip_subtotals = memo->workspace_bytes;
  memo->workspace_bytes += bytes_of(rows * ocl_ceil_divide(memo->depth, STEP), memo->compute->bytes);
  part.kept.size[0] = rows;
  return ocl_subtotals_prepare(&memo->subtotals, device, &part);
}

graft_status ocl_product_plan(ocl_product *memo, graft_device *device, const ocl_operands *call) {
  product p;
  cut c = cut_product(memo, &p, device, call);
  graft_status status = make_kernels(memo, device, call, &c.tensor, &c.tile);
  if (status != GRAFT_OK) return status;
  if (call->epilogue) c.out = matrix_of(call->epilogue->to, memo->swapped);
  p.out_batch = c.out.batch_stride;
  p.out_row = c.out.row_stride;
  p.out_column = c.out.column_stride;
  if (call->addend) {
    ocl_matrix addend = matrix_of(call->addend, memo->swapped);
    p.addend_batch = addend.batch_stride;
    p.addend_row = addend.row_stride;
    p.addend_column = addend.column_stride;
  }
  int64_t element = memo->compute->bytes < 4 ? 4 : memo->compute->bytes;
  memo->depth = p.k;
  if (memo->thin) {
    plan_strips(memo, &p, device, c.out.batches, &c.tile);
  } else if (c.tiles) {
    plan_items(memo, &p, c.out.batches, &c.tile);
  } else {
    plan_groups(memo, &p, c.out.batches, &c.tile);
  }
  status = memo->tensor ? plan_turning(memo, &p, device, call, &c.tensor)
                        : plan_packing(memo, &p, device, &c.a, &c.b, &c.tile, element, call->sums);
  if (status != GRAFT_OK) return status;
  plan_workspace(memo, &p, c.out.batches, &c.tile, element);
  if (call->scales) {
    memo->workspace_bytes = memo->skip_scales + (uint64_t)ocl_scales_count(p.m, p.n) * sizeof(float);
    status = ocl_scales_make(&memo->scale, device, call->scales, p.m, p.n);
    if (status != GRAFT_OK) return status;
  }
  if (call->row_sums_to) status = plan_subtotals(memo, device, call);
  if (status != GRAFT_OK) return status;
  if (memo->splits) status = ocl_kernel_set(&memo->combine, 1, &(ocl_argument)OCL_VALUE(p));
  return status != GRAFT_OK ? status : ocl_kernel_set(&memo->multiply, 1, &(ocl_argument)OCL_VALUE(p));
}
