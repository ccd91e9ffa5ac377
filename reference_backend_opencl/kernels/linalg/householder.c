/* QR, and what reflectors make and are applied to, of matrices that are worth more than a work-group, on a GPU: see
 * householder.cl. */
#include "kernels/linalg/householder.h"

enum { BEGIN, PANEL, COMBINE, REFLECT, TRIANGLE, KERNELS };
enum { LEAST = 96, ITEMS = 256, PANEL_LANES = 512, ACROSS = 8, WIDEST = 32 };

/* Rows of a panel that fit the registers of a work-group. */
typedef struct panel {
  int64_t rows;
  int wide, each;
} panel;

static const panel panels[] = {{128, 32, 8}, {256, 32, 16}, {512, 32, 32}, {1024, 16, 32}, {2048, 8, 32}, {4096, 4, 32},
                               {0}};

/* What `panel` of householder_panel.cl has in local memory. */
static uint64_t panel_bytes(const panel *p, size_t element) {
  const uint64_t groups = (uint64_t)(PANEL_LANES / p->wide), wide = (uint64_t)p->wide;
  return (groups * ((uint64_t)p->each + 1 + wide + 1) + wide) * element + groups * sizeof(double);
}

/* What `combine` and `reflect_blocks` of householder.cl have there at most, by blocks as wide as can be. */
static uint64_t blocks_bytes(size_t element) {
  const uint64_t tall = ocl_stack_tall(element), row = WIDEST + 1, parts = 4 * ITEMS;
  const uint64_t combined = (tall + WIDEST) * row, reflected = tall * (row + ACROSS + 1) + parts;
  return (combined > reflected ? combined : reflected) * element;
}

static const panel *panel_of(const graft_exec *exec, int64_t rows, size_t element) {
  const panel *p = panels;
  while (p->rows && p->rows < rows) p++;
  return p->rows && panel_bytes(p, element) <= exec->device->local_bytes ? p : NULL;
}

static size_t element_of(const graft_exec *exec, const graft_tensor_desc *like) {
  return ocl_dtype_of(exec->device, like->dl.dtype)->bytes;
}

bool ocl_householder_reflects(const graft_exec *exec, const graft_tensor_desc *vectors, int64_t count) {
  return !exec->device->is_cpu && exec->device->local_bytes >= blocks_bytes(element_of(exec, vectors)) &&
         exec->device->largest_group >= PANEL_LANES && ocl_stack_size(vectors, 2) >= LEAST && count >= WIDEST &&
         ocl_stack_count(vectors, 2) > 0;
}

bool ocl_householder_factors(const graft_exec *exec, const graft_tensor_desc *a) {
  const int64_t rows = ocl_stack_size(a, 2), count = ocl_smaller(rows, ocl_stack_size(a, 1));
  return ocl_householder_reflects(exec, a, count) && count >= LEAST && panel_of(exec, rows, element_of(exec, a));
}

/* As householder.cl has it. */
typedef struct reflecting {
  int64_t rows, columns, count, blocks, turned;
  int64_t rights, parts, step, next, apart, begins;
  int64_t forward, identity, copied, first, taken;
} reflecting;

typedef struct householder {
  const graft_exec *exec;
  int64_t matrices, wide;
  ocl_place a, tau, t;
  reflecting of;
  ocl_kernel *kernels[KERNELS];
} householder;

static graft_status get_kernels(householder *h, const ocl_dtype *dtype, const panel *panel) {
  static const char blocks[] = "core/direct linalg/stacks linalg/householder";
  static const struct {
    const char *entry, *file;
    size_t lanes;
  } kernels[] = {
      [BEGIN] = {"begin", blocks, ITEMS},
      [PANEL] = {"panel", "core/direct linalg/stacks linalg/reflector linalg/householder_panel", PANEL_LANES},
      [COMBINE] = {"combine", blocks, ITEMS},
      [REFLECT] = {"reflect_blocks", blocks, ITEMS},
      [TRIANGLE] = {"upper_triangle", blocks, ITEMS}};
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, ITEMS);
  ocl_text_add(&head, "#define D %s\n#define WIDE %d\n", dtype->name, (int)h->wide);
  if (panel) ocl_text_add(&head, "#define EACH %d\n", panel->each);
  graft_status status = GRAFT_OK;
  for (int k = 0; k < KERNELS && status == GRAFT_OK; k++) {
    if (k == PANEL && !panel) continue;
    status =
        ocl_kernel_shared(&h->kernels[k], h->exec->device, &head, kernels[k].file, kernels[k].entry, kernels[k].lanes);
  }
  ocl_text_free(&head);
  return status;
}

/* So many reflectors, columns of matrices of the dtype of `like`; they become panels where one is given. */
static graft_status init(householder *h, const graft_exec *exec, const graft_tensor_desc *like,
                         ocl_reflectors_shape shape, const panel *panel, ocl_place a, ocl_place tau) {
  *h = (householder){.exec = exec,
                     .matrices = shape.matrices,
                     .wide = panel ? panel->wide : WIDEST,
                     .a = a,
                     .tau = tau,
                     .of = {.rows = shape.rows, .columns = shape.columns, .count = shape.count}};
  h->of.blocks = ocl_ceil_divide(shape.count, h->wide);
  graft_status status = get_kernels(h, ocl_dtype_of(exec->device, like->dl.dtype), panel);
  if (status != GRAFT_OK) return status;
  return ocl_stack_work(exec, like, h->matrices * h->of.blocks * h->wide * h->wide, &h->t);
}

/* T of blocks [first, first + taken). */
static graft_status combine(householder *h, int64_t first, int64_t taken) {
  h->of.first = first;
  h->of.taken = taken;
  const ocl_argument arguments[] = {OCL_PLACE(h->t), OCL_PLACE(h->a), OCL_PLACE(h->tau), OCL_VALUE(h->of)};
  return ocl_launch_groups(h->kernels[COMBINE], h->exec->stream, (size_t)(h->matrices * taken), OCL_ALL(arguments));
}

static graft_status reflect(householder *h, ocl_place c, ocl_place in) {
  h->of.parts = ocl_ceil_divide(h->of.rights, ACROSS);
  if (h->of.parts <= 0) return GRAFT_OK;
  const ocl_argument arguments[] = {OCL_PLACE(c), OCL_PLACE(h->a), OCL_PLACE(h->t), OCL_PLACE(in), OCL_VALUE(h->of)};
  return ocl_launch_groups(h->kernels[REFLECT], h->exec->stream, (size_t)(h->matrices * h->of.parts),
                           OCL_ALL(arguments));
}

/* The columns of a block become reflectors, and the columns behind are reflected by them. */
static graft_status take_panel(householder *h, int64_t which) {
  reflecting *of = &h->of;
  const int64_t first = which * h->wide;
  const ocl_argument panel[] = {OCL_PLACE(h->a),        OCL_PLACE(h->tau),    OCL_VALUE(of->rows),
                                OCL_VALUE(of->columns), OCL_VALUE(of->count), OCL_VALUE(first)};
  graft_status status = ocl_launch_groups(h->kernels[PANEL], h->exec->stream, (size_t)h->matrices, OCL_ALL(panel));
  if (status == GRAFT_OK) status = combine(h, which, 1);
  of->rights = of->columns - first - h->wide;
  of->begins = first + h->wide;
  return status == GRAFT_OK ? reflect(h, h->a, h->a) : status;
}

/* The factors of what `from` is. */
static graft_status factor(householder *h, const graft_tensor_desc *from) {
  const int64_t elements = ocl_elements(from);
  const ocl_argument begin[] = {OCL_PLACE(h->a), OCL_TENSOR(from), OCL_VALUE(elements)};
  graft_status status =
      ocl_launch_groups(h->kernels[BEGIN], h->exec->stream, (size_t)ocl_ceil_divide(elements, ITEMS), OCL_ALL(begin));
  h->of.forward = h->of.next = 1;
  h->of.step = h->of.columns;
  h->of.apart = h->of.rows * h->of.columns;
  for (int64_t which = 0; which < h->of.blocks && status == GRAFT_OK; which++) status = take_panel(h, which);
  return status;
}

/* All blocks, which are combined: the vectors of c, so many rows and columns, begin as those of `from`; of no buffer:
 * as the identity's. */
static graft_status reflect_by_all(householder *h, ocl_place c, ocl_place from, int64_t rows, int64_t columns,
                                   bool left, bool forward) {
  reflecting *of = &h->of;
  of->rights = left ? columns : rows;
  of->step = left ? columns : 1;
  of->next = left ? 1 : columns;
  of->apart = rows * columns;
  of->begins = of->first = 0;
  of->taken = of->blocks;
  of->forward = forward;
  of->identity = !from.buffer;
  of->copied = 1;
  return reflect(h, c, from.buffer ? from : h->a);
}

static ocl_reflectors_shape shape_of(const graft_tensor_desc *vectors, int64_t count) {
  return (ocl_reflectors_shape){ocl_stack_count(vectors, 2), ocl_stack_size(vectors, 2), ocl_stack_size(vectors, 1),
                                count};
}

graft_status ocl_householder_geqrf(const graft_exec *exec, const graft_tensor_desc *from, ocl_place a, ocl_place tau) {
  householder h;
  const int64_t rows = ocl_stack_size(from, 2), count = ocl_smaller(rows, ocl_stack_size(from, 1));
  graft_status status =
      init(&h, exec, from, shape_of(from, count), panel_of(exec, rows, element_of(exec, from)), a, tau);
  return status == GRAFT_OK ? factor(&h, from) : status;
}

graft_status ocl_householder_apply(const graft_exec *exec, const graft_tensor_desc *vectors,
                                   const graft_tensor_desc *tau, const graft_tensor_desc *c,
                                   const graft_tensor_desc *from, bool left, bool forward) {
  householder h;
  const ocl_reflectors_shape shape = shape_of(vectors, ocl_stack_size(tau, 1));
  graft_status status = init(&h, exec, vectors, shape, NULL, ocl_place_of(vectors), ocl_place_of(tau));
  h.of.turned = !left;
  if (status == GRAFT_OK) status = combine(&h, 0, h.of.blocks);
  if (status != GRAFT_OK) return status;
  return reflect_by_all(&h, ocl_place_of(c), ocl_place_of(from), ocl_stack_size(c, 2), ocl_stack_size(c, 1), left,
                        forward);
}

graft_status ocl_householder_product(const graft_exec *exec, const graft_tensor_desc *like, ocl_reflectors_shape shape,
                                     ocl_place vectors, ocl_place tau, ocl_place product) {
  householder h;
  graft_status status = init(&h, exec, like, shape, NULL, vectors, tau);
  if (status == GRAFT_OK) status = combine(&h, 0, h.of.blocks);
  return status == GRAFT_OK ? reflect_by_all(&h, product, (ocl_place){0}, shape.rows, shape.rows, true, false) : status;
}

graft_status ocl_householder_qr(const graft_exec *exec, const graft_tensor_desc *from, const graft_tensor_desc *q,
                                const graft_tensor_desc *r) {
  householder h;
  ocl_place a;
  const int64_t rows = ocl_stack_size(from, 2), columns = ocl_stack_size(from, 1), count = ocl_smaller(rows, columns);
  const int64_t elements = ocl_elements(from), height = ocl_stack_size(r, 2), triangle = ocl_elements(r);
  graft_status status = ocl_stack_work(exec, from, elements + ocl_stack_count(from, 2) * count, &a);
  if (status != GRAFT_OK) return status;
  const ocl_place tau = ocl_stack_behind(exec, from, a, elements);
  status = init(&h, exec, from, shape_of(from, count), panel_of(exec, rows, element_of(exec, from)), a, tau);
  if (status == GRAFT_OK) status = factor(&h, from);
  const ocl_argument upper[] = {OCL_TENSOR(r),      OCL_PLACE(h.a),    OCL_VALUE(rows),
                                OCL_VALUE(columns), OCL_VALUE(height), OCL_VALUE(triangle)};
  if (status == GRAFT_OK)
    status =
        ocl_launch_groups(h.kernels[TRIANGLE], exec->stream, (size_t)ocl_ceil_divide(triangle, ITEMS), OCL_ALL(upper));
  if (status != GRAFT_OK || !q) return status;
  return reflect_by_all(&h, ocl_place_of(q), (ocl_place){0}, rows, ocl_stack_size(q, 1), true, false);
}
