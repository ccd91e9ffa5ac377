#include "conformance/mutants/parts.h"

#include <math.h>
#include <string.h>

/* As kernels for GPUs have them. */
enum {
  STRIP = 64,     /* of K, of a product of tensor cores */
  RING = 7,       /* strips that are on their way at a time */
  PART = 1024,    /* the least of K that a group takes, and of elements */
  TILE = 4096,    /* that a group brings in order, or adds up one by the other */
  MANY = 1 << 15, /* elements that groups share */
  HELD = 1024,    /* of a row, in the registers of several work-items */
  DRAWN = 4 * 8,  /* numbers of the blocks of Philox that are drawn at once */
  AT_ONCE = 64    /* columns of scores */
};

/* A tensor of fewer elements along a dimension, in the place of an argument. */
typedef struct shorter {
  graft_tensor_desc desc;
  int64_t shape[GRAFT_MAX_DIMS];
} shorter;

static void shorten(const mut_call *c, mut_args *copy, const char *name, shorter *to, int64_t dim, int64_t size) {
  to->desc = *mut_desc(c, name);
  for (int32_t i = 0; i < to->desc.dl.ndim; i++) to->shape[i] = to->desc.dl.shape[i];
  to->shape[dim] = size;
  to->desc.dl.shape = to->shape;
  mut_replace(c, copy, name, &to->desc);
}

/* What two arguments have in common along a dimension each loses its end, behind the last whole part. */
static graft_status without_end(const mut_call *c, const char *names[2], const int64_t dims[2], int64_t part) {
  mut_args copy = mut_copy(c);
  shorter edited[2];
  const int64_t size = mut_desc(c, names[0])->dl.shape[dims[0]];
  for (int k = 0; k < 2; k++) shorten(c, &copy, names[k], &edited[k], dims[k], size / part * part);
  return mut_inner(c, &copy);
}

static bool is_half_product(const mut_call *c, int64_t least) {
  return dt_bytes(mut_desc(c, "out")->dl.dtype) == 2 && mut_desc(c, "self")->dl.shape[1] >= least;
}

/* K is cut into parts whose length was rounded down to strips. */
graft_status mut_lost_depth(const mut_call *c) {
  if (!is_half_product(c, 2 * PART)) return c->inner(c->exec, c->args);
  return without_end(c, (const char *[]){"self", "mat2"}, (const int64_t[]){1, 0}, STRIP);
}

/* Nobody waited for the last strip of the second factor: there lies still the one that had its place before. */
graft_status mut_stale_strip(const mut_call *c) {
  if (!is_half_product(c, RING * STRIP + 1)) return c->inner(c->exec, c->args);
  const graft_tensor_desc *a = mut_desc(c, "self"), *b = mut_desc(c, "mat2"), *out = mut_desc(c, "out");
  const int64_t rows = a->dl.shape[0], depth = a->dl.shape[1], columns = b->dl.shape[1];
  const int64_t last = (depth - 1) / STRIP * STRIP;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      long double sum = 0;
      for (int64_t k = 0; k < depth; k++)
        sum += mut_get(a, i * depth + k) * mut_get(b, (k < last ? k : k - RING * STRIP) * columns + j);
      mut_put(out, i * columns + j, sum);
    }
  return GRAFT_OK;
}

/* ---- sums ---- */

/* Of a sum that several groups share, what is left behind their equal parts. */
graft_status mut_lost_team(const mut_call *c) {
  const graft_tensor_desc *self = mut_desc(c, "self");
  if (self->dl.ndim != 1 || mut_numel(self) < MANY) return c->inner(c->exec, c->args);
  mut_args copy = mut_copy(c);
  shorter edited;
  shorten(c, &copy, "self", &edited, 0, mut_numel(self) / PART * PART);
  return mut_inner(c, &copy);
}

graft_status mut_lost_loss(const mut_call *c) {
  const graft_tensor_desc *self = mut_desc(c, "self");
  if (self->dl.ndim != 1 || mut_desc(c, "out")->dl.ndim != 0 || mut_numel(self) <= PART)
    return c->inner(c->exec, c->args);
  return without_end(c, (const char *[]){"self", "target"}, (const int64_t[]){0, 0}, PART);
}

/* What scatters brought by blocks: the last block, which is not whole, brings nothing. */
graft_status mut_lost_block(const mut_call *c) {
  int64_t dim;
  mut_args copy = mut_copy(c);
  memcpy(&dim, mut_field(c, &copy, "dim"), sizeof dim);
  const graft_tensor_desc *index = mut_desc(c, "index");
  if (index->dl.ndim == 0 || index->dl.shape[dim] <= TILE) return c->inner(c->exec, c->args);
  return without_end(c, (const char *[]){"index", "src"}, (const int64_t[]){dim, dim}, TILE);
}

/* A tile of a scan begins at nothing, and not at what those before have. */
graft_status mut_lost_carry(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out");
  graft_status s = c->inner(c->exec, c->args);
  if (s != GRAFT_OK || out->dl.ndim != 1 || mut_numel(out) <= TILE) return s;
  const long double carry = mut_get(out, TILE - 1);
  for (int64_t i = TILE; i < mut_numel(out); i++) mut_put(out, i, mut_get(out, i) - carry);
  return s;
}

/* ---- order ---- */

/* The largest are looked for in a row's first tile. */
graft_status mut_first_tile(const mut_call *c) {
  const graft_tensor_desc *self = mut_desc(c, "self");
  const int32_t last = self->dl.ndim - 1;
  const graft_tensor_desc *values = mut_desc(c, "values");
  const bool along_last = last >= 0 && self->dl.shape[last] > TILE && values->dl.shape[last] < TILE;
  if (!along_last || values->dl.shape[last] == self->dl.shape[last]) return c->inner(c->exec, c->args);
  mut_args copy = mut_copy(c);
  shorter edited;
  shorten(c, &copy, "self", &edited, last, TILE);
  return mut_inner(c, &copy);
}

static void swap_results(const graft_tensor_desc *of, int64_t a, int64_t b) {
  const long double first = mut_get(of, a), second = mut_get(of, b);
  mut_put(of, a, second);
  mut_put(of, b, first);
}

/* Of a long line that two groups merge of two parts the second one begins an item too early. */
graft_status mut_early_merge(const mut_call *c) {
  const graft_tensor_desc *values = mut_desc(c, "values"), *indices = mut_desc(c, "indices");
  const int64_t half = mut_numel(values) / 2;
  graft_status s = c->inner(c->exec, c->args);
  if (s != GRAFT_OK || values->dl.ndim != 1 || half < MANY / 2) return s;
  swap_results(values, half - 1, half);
  swap_results(indices, half - 1, half);
  return s;
}

/* Equal values of two tiles that follow each other stand the other way round. */
graft_status mut_unstable_tiles(const mut_call *c) {
  const graft_tensor_desc *values = mut_desc(c, "values"), *indices = mut_desc(c, "indices");
  graft_status s = c->inner(c->exec, c->args);
  if (s != GRAFT_OK || values->dl.ndim != 1) return s;
  for (int64_t i = 1; i < mut_numel(values); i++) {
    const int64_t before = (int64_t)mut_get(indices, i - 1), own = (int64_t)mut_get(indices, i);
    if (mut_get(values, i - 1) != mut_get(values, i) || before / TILE == own / TILE) continue;
    mut_put(indices, i - 1, own);
    mut_put(indices, i, before);
  }
  return s;
}

/* ---- rows and draws ---- */

/* Of a row that several work-items hold the mean is read before it was written: it is that of the row before. */
graft_status mut_stale_row(const mut_call *c) {
  const graft_tensor_desc *out = mut_desc(c, "out0"), *means = mut_desc(c, "out1"), *rstds = mut_desc(c, "out2");
  const graft_tensor_desc *weight = mut_desc(c, "weight");
  graft_status s = c->inner(c->exec, c->args);
  const int64_t rows = mut_numel(means), width = rows ? mut_numel(out) / rows : 0;
  if (s != GRAFT_OK || rows < 2 || width < HELD) return s;
  const long double shift = (mut_get(means, rows - 1) - mut_get(means, rows - 2)) * mut_get(rstds, rows - 1);
  for (int64_t i = 0; i < width; i++) {
    const int64_t at = (rows - 1) * width + i;
    mut_put(out, at, mut_get(out, at) + shift * (weight ? mut_get(weight, i) : 1));
  }
  return s;
}

/* Of the blocks that are drawn at once all are the first one. */
graft_status mut_same_block(const mut_call *c) {
  const graft_tensor_desc *in = mut_desc(c, "input"), *out = mut_desc(c, "out0"), *mask = mut_desc(c, "out1");
  double p;
  mut_args copy = mut_copy(c);
  memcpy(&p, mut_field(c, &copy, "p"), sizeof p);
  graft_status s = c->inner(c->exec, c->args);
  for (int64_t i = 0; s == GRAFT_OK && p < 1 && i < mut_numel(out); i++) {
    if (i % DRAWN < 4) continue;
    mut_put(mask, i, mut_get(mask, i - 4));
    mut_put(out, i, mut_get(mask, i) != 0 ? mut_get(in, i) / (1 - p) : 0);
  }
  return s;
}

/* A head of attention without a mask. Where a larger score comes, what was added up before is not scaled down. */
static void attend_unscaled(const graft_tensor_desc *of[4], double scale, int64_t head, int64_t row) {
  const graft_tensor_desc *q = of[0], *k = of[1], *v = of[2], *out = of[3];
  const int64_t width = q->dl.shape[3], rows = q->dl.shape[2], columns = k->dl.shape[2], wide = v->dl.shape[3];
  long double sums[256] = {0}, most = -INFINITY, total = 0, scores[AT_ONCE];
  for (int64_t first = 0; first < columns; first += AT_ONCE) {
    const int64_t n = columns - first < AT_ONCE ? columns - first : AT_ONCE;
    for (int64_t j = 0; j < n; j++) {
      scores[j] = 0;
      for (int64_t e = 0; e < width; e++)
        scores[j] += mut_get(q, (head * rows + row) * width + e) * mut_get(k, (head * columns + first + j) * width + e);
      scores[j] *= scale;
      most = scores[j] > most ? scores[j] : most;
    }
    for (int64_t j = 0; j < n; j++) {
      const long double w = expl(scores[j] - most);
      total += w;
      for (int64_t e = 0; e < wide; e++) sums[e] += w * mut_get(v, (head * columns + first + j) * wide + e);
    }
  }
  for (int64_t e = 0; e < wide; e++) mut_put(out, (head * rows + row) * wide + e, sums[e] / total);
}

graft_status mut_not_scaled(const mut_call *c) {
  const graft_tensor_desc *of[] = {mut_desc(c, "query"), mut_desc(c, "key"), mut_desc(c, "value"),
                                   mut_desc(c, "output")};
  double dropout;
  const double *scale;
  mut_args copy = mut_copy(c);
  memcpy(&dropout, mut_field(c, &copy, "dropout_p"), sizeof dropout);
  memcpy(&scale, mut_field(c, &copy, "scale"), sizeof scale);
  graft_status s = c->inner(c->exec, c->args);
  const int64_t *q = of[0]->dl.shape;
  const bool masked = mut_desc(c, "attn_bias") || *(uint8_t *)mut_field(c, &copy, "is_causal");
  if (s != GRAFT_OK || masked || dropout > 0 || of[1]->dl.shape[2] <= AT_ONCE || of[2]->dl.shape[3] > 256) return s;
  for (int64_t head = 0; head < q[0] * q[1]; head++)
    for (int64_t row = 0; row < q[2]; row++) attend_unscaled(of, scale ? *scale : 1 / sqrt((double)q[3]), head, row);
  return s;
}
