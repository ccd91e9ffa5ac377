/* A base holds [zone | the view, with its gaps | zone]; what lies outside the view's elements must not change, and an
 * input not at all. */
#include "conformance/run/guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/memory.h"

unsigned char cf_poison_of(int run) {
  static const unsigned char poisons[] = {0xFF, 0x5A};
  return poisons[run & 1];
}

static int64_t cf_span(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  int64_t last = 0;
  for (int32_t d = 0; d < ndim; d++) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

/* Where element i of a view lies, in elements from its first. */
static int64_t cf_place(const graft_tensor *view, int64_t i) {
  int64_t at = 0;
  for (int32_t d = view->ndim - 1; d >= 0; d--) {
    at += i % view->sizes[d] * view->strides[d];
    i /= view->sizes[d];
  }
  return at + view->offset;
}

/* The elements of a view that follow one another with one step: all, or those of the last dim. */
typedef struct cf_row {
  int64_t count, step;
} cf_row;

static cf_row cf_row_of(const graft_tensor *view) {
  const int32_t last = view->ndim - 1;
  if (last < 0 || tns_is_contiguous(view->ndim, view->sizes, view->strides)) return (cf_row){view->numel, 1};
  return (cf_row){view->sizes[last], view->strides[last]};
}

uint64_t cf_zone_bytes(const graft_rt_device *device) {
  if (mem_is_uncached()) return 0;
  return CF_ZONE_BYTES > device->alignment ? CF_ZONE_BYTES : device->alignment;
}

static graft_status cf_guard_make(graft_rt_device *device, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                                  const int64_t *strides, int64_t offset, unsigned char poison, const cf_array *values,
                                  cf_guarded *g) {
  uint64_t each = dt_bytes(dtype), zone = cf_zone_bytes(device);
  int64_t edge = (int64_t)(zone / each), span = cf_span(ndim, sizes, strides), total = 2 * edge + offset + span;
  memset(g, 0, sizeof *g);
  g->bytes = (uint64_t)total * each;
  g->image = malloc(g->bytes);
  if (!g->image)
    return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a tensor of %llu bytes", (unsigned long long)g->bytes);
  memset(g->image, poison, g->bytes);
  graft_tensor shape = {.ndim = ndim, .offset = edge + offset, .numel = tns_numel(ndim, sizes)};
  for (int32_t d = 0; d < ndim; d++) shape.sizes[d] = sizes[d], shape.strides[d] = strides[d];
  const cf_row row = cf_row_of(&shape);
  for (int64_t i = 0; values && i < values->numel; i += row.count) {
    unsigned char *to = g->image + (uint64_t)cf_place(&shape, i) * each;
    dt_store_row(dtype, to, row.step * (int64_t)each, row.count, dt_parts_of(&values->v[i]));
  }
  graft_status s = graft_tensor_from_host(device, dtype, 1, &total, g->image, &g->base);
  if (s == GRAFT_OK) s = tns_view(g->base, ndim, sizes, strides, edge + offset, &g->view);
  if (s != GRAFT_OK) cf_guard_free(g);
  return s;
}

graft_status cf_guard_input(graft_rt_device *device, const txt_tensor *t, const cf_array *values, unsigned char zone,
                            cf_guarded *g) {
  return cf_guard_make(device, t->dtype, t->ndim, t->sizes, t->strides, t->offset, zone, values, g);
}

graft_status cf_guard_output(graft_rt_device *device, const graft_meta *meta, bool gaps, int poison, cf_guarded *g) {
  int64_t strides[GRAFT_MAX_DIMS];
  int64_t step = 2;
  for (int32_t d = meta->ndim - 1; d >= 0; d--) {
    strides[d] = gaps ? step : meta->strides[d];
    step = step * meta->sizes[d] + 1;
  }
  return cf_guard_make(device, meta->dtype, meta->ndim, meta->sizes, strides, gaps ? 5 : 0, cf_poison_of(poison), NULL,
                       g);
}

void cf_guard_free(cf_guarded *g) {
  graft_tensor_release(g->view);
  graft_tensor_release(g->base);
  free(g->image);
  memset(g, 0, sizeof *g);
}

/* One byte an element of the base: 1 where the view may have been written. */
static unsigned char *cf_guard_mask(const cf_guarded *g) {
  unsigned char *mask = calloc(g->bytes / dt_bytes(g->view->dtype) + 1, 1);
  const cf_row row = cf_row_of(g->view);
  for (int64_t i = 0; mask && i < g->view->numel; i += row.count) {
    const int64_t first = cf_place(g->view, i);
    for (int64_t k = 0; k < row.count; k++) mask[first + k * row.step] = 1;
  }
  return mask;
}

static const char *cf_zone_name(const cf_guarded *g, uint64_t element) {
  int64_t span = cf_span(g->view->ndim, g->view->sizes, g->view->strides);
  if ((int64_t)element < g->view->offset) return "before the tensor";
  return (int64_t)element >= g->view->offset + span ? "behind the tensor" : "in a gap between its strides";
}

bool cf_guard_check(const cf_guarded *g, bool may_write, unsigned char **after, char *problem, size_t capacity) {
  uint64_t each = dt_bytes(g->view->dtype);
  unsigned char *now = malloc(g->bytes), *mask = may_write ? cf_guard_mask(g) : NULL;
  bool room = now && (mask || !may_write), ok = room && graft_tensor_to_host(g->base, now) == GRAFT_OK;
  if (!ok) snprintf(problem, capacity, "cannot be read back: %s", room ? graft_last_error() : "no host memory");
  const bool same = ok && memcmp(now, g->image, g->bytes) == 0;
  for (uint64_t i = 0; ok && !same && i < g->bytes / each; i++) {
    if ((mask && mask[i]) || memcmp(now + i * each, g->image + i * each, each) == 0) continue;
    long long at = (long long)i - (long long)g->view->offset;
    if (may_write)
      snprintf(problem, capacity, "wrote %s (element %lld of its memory)", cf_zone_name(g, i), at);
    else
      snprintf(problem, capacity, "was changed (element %lld of its memory)", at);
    ok = false;
  }
  free(mask);
  if (after && ok)
    *after = now;
  else
    free(now);
  return ok;
}

bool cf_guard_values(const cf_guarded *g, const unsigned char *image, cf_array *a) {
  uint64_t each = dt_bytes(g->view->dtype);
  if (!cf_array_new(a, g->view->dtype, g->view->ndim, g->view->sizes)) return false;
  const cf_row row = cf_row_of(g->view);
  for (int64_t i = 0; i < a->numel; i += row.count) {
    const unsigned char *from = image + (uint64_t)cf_place(g->view, i) * each;
    dt_load_row(a->dtype, from, row.step * (int64_t)each, row.count, dt_parts_of(&a->v[i]));
  }
  return true;
}

int64_t cf_guard_unwritten(const cf_guarded *a, const unsigned char *after_a, const cf_guarded *b,
                           const unsigned char *after_b) {
  uint64_t each = dt_bytes(a->view->dtype);
  for (int64_t i = 0; i < a->view->numel; i++) {
    uint64_t at = (uint64_t)cf_place(a->view, i) * each;
    if (memcmp(after_a + at, a->image + at, each) == 0 && memcmp(after_b + at, b->image + at, each) == 0) return i;
  }
  return -1;
}
