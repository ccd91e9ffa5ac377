/* The LU factorization of matrices that are worth more than a work-group, on a GPU: see lu.cl. */
#include "kernels/linalg/linalg.h"

enum { BEGIN, PANEL, ACROSS, UPDATE, KERNELS };
enum { LEAST = 96, SQUARE_LANES = 64, TILE_LANES = 256, LOCAL_BYTES = 40 << 10, CHUNK_BYTES = 32 };

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

bool ocl_lu_serves(const graft_exec *exec, const graft_tensor_desc *a) {
  const int64_t rows = ocl_stack_size(a, 2), columns = ocl_stack_size(a, 1);
  return !exec->device->is_cpu && exec->device->local_bytes >= LOCAL_BYTES && rows >= LEAST && columns >= LEAST &&
         ocl_elements(a) > 0 && panel_of(exec, rows) && ocl_stack_serves(exec, a);
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
  const int chunk = CHUNK_BYTES / (int)dtype->bytes;
  ocl_text_add(&head, "#define CHUNK %d\n", chunk < f->panel->wide ? chunk : f->panel->wide);
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
                 .exchanged = exchanged,
                 .tile = dtype->bytes > 8 ? 32 : 64};
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
