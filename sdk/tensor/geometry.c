/* Sizes, strides and overlap: pure functions of numbers. The rules are PyTorch's (c10/core/Contiguity.h,
 * MemoryFormat.h, ATen/MemoryOverlap.cpp), corner cases with sizes 0 and 1 included, because output strides depend on
 * them. */
#include <string.h>

#include "tensor/tensor.h"

int64_t tns_numel(int32_t ndim, const int64_t *sizes) {
  int64_t numel = 1;
  bool empty = false, overflow = false;
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] == 0) empty = true;
    if (sizes[i] < 0 || __builtin_mul_overflow(numel, sizes[i], &numel)) overflow = true;
  }
  /* a zero rescues sizes whose product would not fit, but not negative ones */
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] < 0) return -1;
  }
  if (empty) return 0;
  return overflow ? -1 : numel;
}

void tns_contiguous_strides(int32_t ndim, const int64_t *sizes, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t i = ndim - 1; i >= 0; i--) {
    strides[i] = stride;
    if (sizes[i] > 1 && __builtin_mul_overflow(stride, sizes[i], &stride)) stride = 0; /* only where a size is 0 */
  }
}

static bool has_zero(int32_t ndim, const int64_t *sizes) {
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] == 0) return true;
  }
  return false;
}

/* Whether the dims in `order`, innermost first, lie one after another without gaps. Sizes may be those of a result that
 * has more elements than can be counted, which is refused later: products wrap around. */
static bool packed_in_order(int32_t ndim, const int64_t *sizes, const int64_t *strides, const int8_t *order) {
  uint64_t expected = 1;
  for (int32_t i = 0; i < ndim; i++) {
    int32_t d = order ? order[i] : ndim - 1 - i;
    if (sizes[d] == 1) continue;
    if ((uint64_t)strides[d] != expected) return false;
    expected *= (uint64_t)sizes[d];
  }
  return true;
}

bool tns_is_contiguous(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  return has_zero(ndim, sizes) || packed_in_order(ndim, sizes, strides, NULL);
}

/* Dims of a channels-last tensor, innermost first; NULL for other ranks. */
static const int8_t *channels_last_order(int32_t ndim) {
  static const int8_t rank4[] = {1, 3, 2, 0}, rank5[] = {1, 4, 3, 2, 0};
  return ndim == 4 ? rank4 : ndim == 5 ? rank5 : NULL;
}

bool tns_is_channels_last(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  const int8_t *order = channels_last_order(ndim);
  return order && packed_in_order(ndim, sizes, strides, order);
}

void tns_channels_last_strides(int32_t ndim, const int64_t *sizes, int64_t *strides) {
  const int8_t *order = channels_last_order(ndim);
  if (!order) {
    tns_contiguous_strides(ndim, sizes, strides);
    return;
  }
  uint64_t stride = 1; /* as in packed_in_order */
  for (int32_t i = 0; i < ndim; i++) {
    strides[order[i]] = (int64_t)stride;
    stride *= (uint64_t)sizes[order[i]];
  }
}

/* Strides that look channels-last even where there are gaps; ambiguous ones (N111 and the like) count as contiguous. */
static bool like_channels_last(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  const int8_t *order = channels_last_order(ndim);
  if (!order || strides[1] == 0) return false;
  int64_t least = 0;
  for (int32_t i = 0; i < ndim; i++) {
    int32_t d = order[i];
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (sizes[d] > 1 && __builtin_mul_overflow(least, sizes[d], &least)) return false;
  }
  return true;
}

graft_memory_format tns_suggest_format(const graft_tensor *tensor) {
  if (!like_channels_last(tensor->ndim, tensor->sizes, tensor->strides)) return GRAFT_FORMAT_CONTIGUOUS;
  return tensor->ndim == 4 ? GRAFT_FORMAT_CHANNELS_LAST : GRAFT_FORMAT_CHANNELS_LAST_3D;
}

/* Dims by growing stride, sizes below 2 last: an insertion sort, because ranks are small and equal ones keep order. */
static void order_by_stride(int32_t ndim, const int64_t *sizes, const int64_t *strides, int8_t *order) {
  for (int32_t i = 0; i < ndim; i++) {
    int32_t j = i;
    for (; j > 0; j--) {
      int32_t before = order[j - 1];
      bool swap = sizes[i] >= 2 && (sizes[before] < 2 || strides[i] < strides[before]);
      if (!swap) break;
      order[j] = order[j - 1];
    }
    order[j] = (int8_t)i;
  }
}

bool tns_has_sizes(const graft_tensor *t, int32_t ndim, const int64_t *sizes) {
  bool same = t->ndim == ndim;
  for (int32_t i = 0; same && i < ndim; i++) same = t->sizes[i] == sizes[i];
  return same;
}

bool tns_broadcasts_to(const graft_tensor *t, int32_t ndim, const int64_t *sizes) {
  bool fits = t->ndim <= ndim;
  for (int32_t i = 1; fits && i <= t->ndim; i++) {
    fits = t->sizes[t->ndim - i] == 1 || t->sizes[t->ndim - i] == sizes[ndim - i];
  }
  return fits;
}

bool tns_broadcast_sizes(int32_t *ndim, int64_t *sizes, int32_t other_ndim, const int64_t *other) {
  if (other_ndim > *ndim) {
    int32_t extra = other_ndim - *ndim;
    memmove(sizes + extra, sizes, (size_t)*ndim * sizeof *sizes);
    for (int32_t i = 0; i < extra; i++) sizes[i] = 1;
    *ndim = other_ndim;
  }
  for (int32_t i = 0; i < other_ndim; i++) {
    int64_t *size = &sizes[*ndim - other_ndim + i];
    if (other[i] == *size || other[i] == 1) continue;
    if (*size != 1) return false;
    *size = other[i];
  }
  return true;
}

bool tns_same_sizes(const graft_tensor *a, const graft_tensor *b) {
  return tns_has_sizes(a, b->ndim, b->sizes);
}

bool tns_is_dense(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  if (tns_is_contiguous(ndim, sizes, strides)) return true;
  int8_t order[GRAFT_MAX_DIMS];
  order_by_stride(ndim, sizes, strides, order);
  return packed_in_order(ndim, sizes, strides, order);
}

bool tns_dense_alike(const graft_tensor *a, const graft_tensor *b) {
  if (!tns_same_sizes(a, b)) return false;
  for (int32_t i = 0; i < a->ndim; i++) {
    if (a->sizes[i] > 1 && a->strides[i] != b->strides[i]) return false;
  }
  return tns_is_dense(a->ndim, a->sizes, a->strides);
}

/* Whether, for a dense copy, dim b should be outside dim a: strides decide, with ties (and zero strides) by size, and
 * what stays undecided as it was. */
static int compare_for_preserve(const int64_t *sizes, const int64_t *strides, int32_t a, int32_t b) {
  if (strides[a] == 0 || strides[b] == 0) return 0;
  if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
  return sizes[a] > sizes[b] ? 1 : 0;
}

void tns_preserve_strides(int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t *result) {
  if (tns_is_dense(ndim, sizes, strides)) {
    memcpy(result, strides, (size_t)ndim * sizeof *result);
    return;
  }
  int8_t order[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < ndim; i++) order[i] = (int8_t)(ndim - 1 - i);
  /* Each dim moves inward past those that are strictly outside of it; one that can't be compared is passed over. */
  for (int32_t i = 1; i < ndim; i++) {
    int32_t at = i;
    for (int32_t j = i - 1; j >= 0; j--) {
      int way = compare_for_preserve(sizes, strides, order[j], order[at]);
      if (way < 0) break;
      if (way == 0) continue;
      int8_t moved = order[at];
      order[at] = order[j], order[j] = moved;
      at = j;
    }
  }
  int64_t stride = 1;
  for (int32_t i = 0; i < ndim; i++) {
    result[order[i]] = stride;
    if (sizes[order[i]] > 1) stride *= sizes[order[i]];
  }
}

/* Elements from the first to the last one, both included: 1 + sum of (size - 1) * stride; -1 when it overflows. */
static int64_t extent(int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  int64_t last = 0;
  for (int32_t i = 0; i < ndim; i++) {
    int64_t reach;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(last, reach, &last))
      return -1;
  }
  return last == INT64_MAX ? -1 : last + 1;
}

int64_t tns_extent_bytes(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset) {
  if (has_zero(ndim, sizes)) return 0;
  int64_t elements = extent(ndim, sizes, strides), bytes;
  if (elements < 0 || offset < 0 || __builtin_add_overflow(elements, offset, &elements) ||
      __builtin_mul_overflow(elements, (int64_t)dt_bytes(dtype), &bytes)) {
    return -1;
  }
  return bytes;
}

bool tns_overlaps_itself(const graft_tensor *tensor) {
  int32_t ndim = tensor->ndim;
  const int64_t *sizes = tensor->sizes, *strides = tensor->strides;
  if (tns_is_dense(ndim, sizes, strides)) return false;
  for (int32_t i = 0; i < ndim; i++) {
    if (sizes[i] > 1 && strides[i] == 0) return true;
  }
  return false;
}

/* Whether two views of one storage and one element size never meet because their positions differ modulo what all
 * their strides have in common, as columns 0 and 1 of a matrix do. */
static bool interleaved(const graft_tensor *a, const graft_tensor *b) {
  if (dt_bytes(a->dtype) != dt_bytes(b->dtype)) return false;
  int64_t common = 0;
  for (int pass = 0; pass < 2; pass++) {
    const graft_tensor *t = pass ? b : a;
    for (int32_t i = 0; i < t->ndim; i++) {
      if (t->sizes[i] < 2) continue;
      for (int64_t x = t->strides[i]; x != 0;) {
        int64_t rest = common % x;
        common = x, x = rest;
      }
    }
  }
  return common > 1 && (a->offset - b->offset) % common != 0;
}

static bool same_strides(const graft_tensor *a, const graft_tensor *b) {
  size_t bytes = (size_t)a->ndim * sizeof(int64_t);
  return a->ndim == b->ndim && memcmp(a->strides, b->strides, bytes) == 0;
}

tns_overlap tns_overlap_of(const graft_tensor *a, const graft_tensor *b) {
  if (a == b) return TNS_OVERLAP_FULL;
  if (a->numel == 0 || b->numel == 0 || !a->storage || a->storage != b->storage) return TNS_OVERLAP_NONE;
  int64_t item_a = (int64_t)dt_bytes(a->dtype), item_b = (int64_t)dt_bytes(b->dtype);
  int64_t begin_a = a->offset * item_a, end_a = begin_a + item_a * extent(a->ndim, a->sizes, a->strides);
  int64_t begin_b = b->offset * item_b, end_b = begin_b + item_b * extent(b->ndim, b->sizes, b->strides);
  if (end_a <= begin_b || end_b <= begin_a) return TNS_OVERLAP_NONE;
  bool dense = tns_is_dense(a->ndim, a->sizes, a->strides) && tns_is_dense(b->ndim, b->sizes, b->strides);
  bool same_place = begin_a == begin_b && end_a == end_b && same_strides(a, b);
  if (dense) return same_place ? TNS_OVERLAP_FULL : TNS_OVERLAP_PARTIAL;
  if (same_place && tns_same_sizes(a, b) && item_a == item_b) return TNS_OVERLAP_FULL;
  return interleaved(a, b) ? TNS_OVERLAP_NONE : TNS_OVERLAP_MAYBE;
}
