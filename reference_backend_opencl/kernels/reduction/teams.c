/* How a pass of a reduction is laid over a GPU: see teams.cl. */
#include <string.h>

#include "kernels/reduction/reduction.h"

typedef ocl_reduction_pass pass;

enum {
  LOCAL = 256,
  GROUPS_A_UNIT = 8, /* of LOCAL: what a compute unit can have at once */
  SIDE_BY_SIDE = 32, /* work-items along a row of columns: a warp's loads lie in one run */
  STEPS_LEAST = 4,   /* for a work-item, of steps that are split */
  NUMBERS = 9        /* of the kernel's struct, behind those of dimensions */
};

typedef ocl_reduction_layout layout;

static int64_t power_of_2(int64_t least, int64_t most) {
  int64_t power = 1;
  while (power < least && power < most) power *= 2;
  return power;
}

static bool are_multiples(const int64_t *strides, const int64_t *sizes, int from, int rank, int64_t of) {
  for (int d = from; d < rank; d++) {
    if (sizes[d] > 1 && strides[d] % of != 0) return false;
  }
  return true;
}

/* Whether vectors of so many lanes begin where such vectors may, if the tensor does. */
static bool is_laid_for(const pass *pass, int64_t vec) {
  const ocl_geometry *kept = &pass->kept, *reduced = &pass->reduced;
  if (pass->rows) {
    return reduced->stride[0][0] == 1 && reduced->size[0] >= vec &&
           (reduced->rank == 1 || reduced->size[0] % vec == 0) &&
           are_multiples(reduced->stride[0], reduced->size, 1, reduced->rank, vec) &&
           are_multiples(kept->stride[1], kept->size, 0, kept->rank, vec);
  }
  /* Outputs are written lane by lane: that should be the smaller part. */
  return kept->stride[1][0] == 1 && kept->size[0] % vec == 0 && ocl_geometry_elements(reduced) >= 16 &&
         are_multiples(kept->stride[1], kept->size, 1, kept->rank, vec) &&
         are_multiples(reduced->stride[0], reduced->size, 0, reduced->rank, vec);
}

/* Up to 16 bytes, and no more than 8 lanes. */
static int64_t choose_vec(const pass *pass) {
  int64_t vec = pass->in->bytes <= 2 ? 8 : pass->in->bytes == 4 ? 4 : 1;
  if (pass->accumulator->class == OCL_CLASS_COMPLEX) vec = 1;
  while (vec > 1 && !is_laid_for(pass, vec)) vec = vec == 8 ? 4 : 1;
  return vec;
}

/* Work-items of a row: two steps each, up to a warp; beyond, as many steps as are read at once. */
static int64_t depth_of_row(const layout *l) {
  const int64_t few = power_of_2(ocl_ceil_divide(l->steps, 2), SIDE_BY_SIDE);
  return ocl_larger(few, power_of_2(ocl_ceil_divide(l->steps, l->at_once), LOCAL));
}

layout ocl_reduction_lay_team(const pass *pass) {
  const ocl_geometry *kept = &pass->kept, *reduced = &pass->reduced;
  layout l = {.vec = choose_vec(pass), .width = 1};
  int64_t outer = ocl_geometry_elements(kept) / kept->size[0], bytes = l.vec * (int64_t)pass->accumulator->bytes;
  l.at_once = bytes <= 8 ? 8 : bytes <= 32 ? 4 : 2;
  l.steps = ocl_geometry_elements(reduced);
  l.units_per_row = kept->size[0];
  if (pass->rows) {
    l.rest = l.steps % l.vec; /* 0 where there is more than one row: is_laid_for */
    l.steps /= l.vec;
    l.depth = depth_of_row(&l);
  } else {
    int64_t columns = ocl_ceil_divide(kept->size[0], l.vec);
    l.width = power_of_2(columns, SIDE_BY_SIDE);
    l.depth = power_of_2(ocl_ceil_divide(l.steps, STEPS_LEAST), LOCAL / l.width);
    l.units_per_row = ocl_ceil_divide(columns, l.width);
  }
  l.units = l.units_per_row * outer;
  return l;
}

int64_t ocl_reduction_team_splits(const graft_device *device, const pass *pass) {
  const layout l = ocl_reduction_lay_team(pass);
  int64_t groups = ocl_ceil_divide(l.units * l.width * l.depth, LOCAL);
  int64_t splits = GROUPS_A_UNIT * (int64_t)device->compute_units / groups;
  const int64_t least = pass->rows ? ocl_larger(STEPS_LEAST, l.at_once) : STEPS_LEAST,
                most = l.steps / (least * l.depth);
  if (splits > most) splits = most;
  return splits > 1 ? splits : 1;
}

bool ocl_reduction_team_finds_first(const graft_device *device, const pass *pass) {
  const ocl_reduction *formula = &pass->formula, *first = formula->first;
  return pass->shifted && !ocl_reduction_shift(device, pass).shifted && !first->of_one &&
         strcmp(first->init, formula->init) == 0 && strcmp(first->combine, formula->combine) == 0 &&
         ocl_reduction_team_splits(device, pass) == 1;
}

/* The struct that the kernel takes. Returns how many numbers it is. */
static int fill_space(int64_t *space, const pass *pass, const layout *l, int64_t splits) {
  int n = ocl_geometry_numbers(&pass->kept, space), rank = pass->reduced.rank;
  int64_t *size = space + n, *stride = size + rank, *advance = stride + rank, depth = l->depth;
  for (int d = 0; d < rank; d++) {
    bool is_vector = d == 0 && pass->rows;
    size[d] = ocl_larger(is_vector ? pass->reduced.size[d] / l->vec : pass->reduced.size[d], 1);
    stride[d] = pass->reduced.stride[0][d] * (is_vector ? l->vec : 1);
    advance[d] = d < rank - 1 ? depth % size[d] : depth;
    depth /= size[d];
  }
  const int64_t rest[NUMBERS] = {
      l->steps, ocl_ceil_divide(l->steps, splits),    l->rest, pass->split_stride, l->units_per_row, l->units, l->width,
      l->depth, ocl_geometry_elements(&pass->reduced)};
  memcpy(advance + rank, rest, sizeof rest);
  return n + 3 * rank + NUMBERS;
}

static const char *packed(int64_t bytes) {
  return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : "uint";
}

graft_status ocl_reduction_prepare_teams(ocl_kernel *kernel, graft_device *device, const pass *exact) {
  pass shared = *exact;
  const layout l =
      ocl_reduction_lay_team(exact); /* before ranks are shared: the order of additions does not depend on that */
  ocl_reduction_widen_if_small(&shared);
  ocl_text head = {0};
  ocl_reduction_head(&head, &shared, (unsigned)l.vec, LOCAL);
  ocl_text_add(&head, "#define KEPT %d\n#define REDUCED %d\n#define AT_ONCE %d\n#define PACKED %s\n", shared.kept.rank,
               shared.reduced.rank, (int)l.at_once, packed(l.vec * exact->in->bytes));
  if (shared.finds_first) {
    ocl_text_add(&head, "#define FIRST_MAP(v) %s\n#define FIRST_FINISH(v) %s\n", shared.formula.first->map,
                 shared.formula.first->finish);
    if (shared.first_out) ocl_text_add(&head, "#define D_FIRST %s\n", shared.first_out->name);
  }
  graft_status status = ocl_kernel_make(kernel, device, &head, "core/exp reduction/formula reduction/teams", "reduce");
  if (status != GRAFT_OK) return status;
  int64_t space[6 * OCL_DIMS_MAX + NUMBERS];
  int n = fill_space(space, &shared, &l, exact->splits);
  ocl_kernel_size(kernel, l.units * l.width * l.depth, LOCAL);
  kernel->global[1] = (size_t)exact->splits;
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space * (size_t)n, space});
}
