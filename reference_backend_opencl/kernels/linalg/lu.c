/* The LU factorization of matrices that are worth more than a work-group, on a GPU: see lu.cl. */
#include "kernels/linalg/linalg.h"

enum { BEGIN, PANEL, ACROSS, UPDATE, KERNELS };
enum { LEAST = 96, SQUARE_LANES = 64, TILE_LANES = 256, CHUNK_BYTES = 32, FIRST_BIDS = 32 };
enum { LEAST_TILE = 32 };

/* Rows of a panel that a work-group has in its registers, 32 numbers for each lane. */
typedef struct panel {
  int64_t rows;
  int lanes, each, wide;
} panel;

static const panel panels[] = {{128, 128, 1, 32},  {256, 256, 1, 32}, {512, 512, 1, 32},
                               {1024, 512, 2, 16}, {2048, 512, 4, 8}, {4096, 512, 8, 4}};
enum { PANELS = sizeof panels / sizeof *panels };

static const panel *panel_of(const graft_exec *exec, int64_t rows) {
  for (int i = 0; i < PANELS; i++) {
    if (rows <= panels[i].rows) return (size_t)panels[i].lanes <= exec->device->largest_group ? &panels[i] : NULL;
  }
  return NULL;
}

/* Columns of a panel whose rows are whole pieces of memory. */
static int chunk_of(const panel *p, size_t element) {
  const int chunk = CHUNK_BYTES / (int)element;
  return chunk < p->wide ? chunk : p->wide;
}

/* What `panel` and `update` of lu.cl have in local memory. */
static uint64_t panel_bytes(const panel *p, size_t element) {
  const uint64_t staged = (uint64_t)p->lanes * (uint64_t)(chunk_of(p, element) + 1) + (uint64_t)p->wide;
  return staged * element + (uint64_t)(p->lanes + FIRST_BIDS) * (sizeof(double) + sizeof(int));
}

static uint64_t tile_bytes(const panel *p, int64_t tile, size_t element) {
  return 2 * (uint64_t)p->wide * (uint64_t)(tile + 1) * element;
}

/* The largest tile that local memory holds, or 0. */
static int64_t tile_of(const graft_exec *exec, const panel *p, size_t element) {
  for (int64_t tile = (int64_t)ocl_stack_tall(element); tile >= LEAST_TILE; tile /= 2) {
    if (tile_bytes(p, tile, element) <= exec->device->local_bytes) return tile;
  }
  return 0;
}

bool ocl_lu_serves(const graft_exec *exec, const graft_tensor_desc *a) {
  const int64_t rows = ocl_stack_size(a, 2), columns = ocl_stack_size(a, 1);
  if (exec->device->is_cpu || rows < LEAST || columns < LEAST || !ocl_elements(a) || !ocl_stack_serves(exec, a))
    return false;
  const panel *p = panel_of(exec, rows);
  const size_t element = ocl_dtype_of(exec->device, a->dl.dtype)->bytes;
  return p && panel_bytes(p, element) <= exec->device->local_bytes && tile_of(exec, p, element);
}

typedef struct factoring {
  const graft_exec *exec;
  const panel *panel;
  ocl_kernel *kernels[KERNELS];
  ocl_place lu, pivots, info, moves;
  int64_t count, rows, columns, exchanged, tile;
} factoring;

static graft_status get_kernels(factoring *f, const ocl_dtype *dtype) {
  static const char *const entries[] = {[BEGIN] = "begin", [PANEL] = "panel", [ACROSS] = "across", [UPDATE] = "update"};
  const size_t lanes[] = {TILE_LANES, (size_t)f->panel->lanes, SQUARE_LANES, TILE_LANES};
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, SQUARE_LANES);
  ocl_text_add(&head, "#define D %s\n#define LANES %d\n#define EACH %d\n#define WIDE %d\n#define TILE %d\n",
               dtype->name, f->panel->lanes, f->panel->each, f->panel->wide, (int)f->tile);
  ocl_text_add(&head, "#define CHUNK %d\n", chunk_of(f->panel, dtype->bytes));
  graft_status status = GRAFT_OK;
  for (int k = 0; k < KERNELS && status == GRAFT_OK; k++) {
    status = ocl_kernel_shared(&f->kernels[k], f->exec->device, &head, "core/direct linalg/stacks linalg/lu",
                               entries[k], lanes[k]);
  }
  ocl_text_free(&head);
  return status;
}

/* The columns from `first` on that are a panel, and what they leave to the others. */
static graft_status take_panel(const factoring *f, int64_t first) {
  const int64_t wide = f->panel->wide, steps = f->rows < f->columns ? f->rows : f->columns;
  const int64_t here = steps - first < wide ? steps - first : wide;
  const int64_t parts = ocl_ceil_divide(f->columns - here, SQUARE_LANES);
  const int64_t down = ocl_ceil_divide(f->rows - first - wide, f->tile);
  const int64_t over = ocl_ceil_divide(f->columns - first - wide, f->tile), tiles = down * over;
  const ocl_argument panel[] = {OCL_PLACE(f->lu),   OCL_PLACE(f->pivots),  OCL_PLACE(f->info),      OCL_PLACE(f->moves),
                                OCL_VALUE(f->rows), OCL_VALUE(f->columns), OCL_VALUE(f->exchanged), OCL_VALUE(first)};
  const ocl_argument across[] = {OCL_PLACE(f->lu),      OCL_PLACE(f->moves), OCL_VALUE(f->rows),
                                 OCL_VALUE(f->columns), OCL_VALUE(parts),    OCL_VALUE(first)};
  const ocl_argument update[] = {OCL_PLACE(f->lu), OCL_VALUE(f->rows), OCL_VALUE(f->columns),
                                 OCL_VALUE(tiles), OCL_VALUE(over),    OCL_VALUE(first)};
  graft_stream *stream = f->exec->stream;
  graft_status status = ocl_launch_groups(f->kernels[PANEL], stream, (size_t)f->count, OCL_ALL(panel));
  if (status == GRAFT_OK && parts > 0)
    status = ocl_launch_groups(f->kernels[ACROSS], stream, (size_t)(f->count * parts), OCL_ALL(across));
  if (status == GRAFT_OK && down > 0 && over > 0)
    status = ocl_launch_groups(f->kernels[UPDATE], stream, (size_t)(f->count * tiles), OCL_ALL(update));
  return status;
}

graft_status ocl_lu(const graft_exec *exec, const graft_tensor_desc *a, bool exchanged, ocl_place lu, ocl_place pivots,
                    ocl_place info) {
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, a->dl.dtype);
  factoring f = {.exec = exec,
                 .panel = panel_of(exec, ocl_stack_size(a, 2)),
                 .lu = lu,
                 .pivots = pivots,
                 .info = info,
                 .count = ocl_stack_count(a, 2),
                 .rows = ocl_stack_size(a, 2),
                 .columns = ocl_stack_size(a, 1),
                 .exchanged = exchanged};
  f.tile = tile_of(exec, f.panel, dtype->bytes);
  const int64_t elements = ocl_elements(a), steps = f.rows < f.columns ? f.rows : f.columns;
  const ocl_argument begin[] = {OCL_PLACE(f.lu), OCL_PLACE(f.info), OCL_TENSOR(a), OCL_VALUE(elements),
                                OCL_VALUE(f.count)};
  graft_status status = get_kernels(&f, dtype);
  if (status == GRAFT_OK) status = ocl_stack_work(exec, a, f.count * 2 * f.panel->wide, &f.moves);
  if (status == GRAFT_OK)
    status = ocl_launch_groups(f.kernels[BEGIN], exec->stream, (size_t)ocl_ceil_divide(elements, TILE_LANES),
                               OCL_ALL(begin));
  for (int64_t first = 0; first < steps && status == GRAFT_OK; first += f.panel->wide) status = take_panel(&f, first);
  return status;
}
