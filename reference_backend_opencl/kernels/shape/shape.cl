/* Movement: elements, taken as bits, from one place to another. The head defines D, RANK, and CONTIGUOUS (both sides are,
 * along the innermost dimension). Strides of the source may be 0 or negative. */
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[2];
  long start[2];
  long chunk, chunks_per_row, chunks, per_item;
} space;

/* Where the work-items of a group are to lie side by side, a chunk of LOCAL * 4 elements is the group's: it places chunks
 * and steps through one. */
#ifdef BY_GROUPS
#define FIRST get_group_id(0)
#define OWN (long)get_local_id(0)
#define STEP LOCAL
#else
#define FIRST get_global_id(0)
#define OWN 0
#define STEP 1
#endif

/* How far on the row of the source is that lies so many rows later: a processor does not see it coming where rows are short and
 * apart. Longer ones it does, and what is read so early would be gone again. */
#define ROWS_AHEAD 4
#define SHORT_BYTES 1024
static long rows_ahead(const space *shape) {
#if RANK > 1
  if (shape->size[0] * (long)sizeof(RAW(D)) <= SHORT_BYTES) return ROWS_AHEAD * shape->stride[1].along[1];
#endif
  return 0;
}

KERNEL move(PLACE(out), CONST_PLACE(in), space shape) {
  long first = (long)FIRST * shape.per_item, last = min(first + shape.per_item, shape.chunks);
  const long ahead = rows_ahead(&shape);
  for (long chunk = first; chunk < last; chunk++) {
    long outer = chunk / shape.chunks_per_row;
    long i = (chunk - outer * shape.chunks_per_row) * shape.chunk, end = min(i + shape.chunk, shape.size[0]);
    long at_to = shape.start[0], at_from = shape.start[1];
    for (int d = 1; d < RANK; d++) {
      long place = outer % shape.size[d];
      outer /= shape.size[d];
      at_to += place * shape.stride[0].along[d];
      at_from += place * shape.stride[1].along[d];
    }
    __global RAW(D) *to = POINTER(D, out) + at_to;
    __global const RAW(D) *from = CONST_POINTER(D, in) + at_from;
#ifdef CONTIGUOUS
    for (; i + VEC <= end; i += VEC) {
      PREFETCH(from + i + ahead);
      VSTORE(VLOAD(from + i), to + i);
    }
    for (; i < end; i++) to[i] = from[i];
#else
    long stride_to = shape.stride[0].along[0], stride_from = shape.stride[1].along[0];
    for (i += OWN; i < end; i += STEP) to[i * stride_to] = from[i * stride_from];
#endif
  }
}

/* The target runs along dimension 0, the source along dimension 1: a work-item turns TILES tiles of TILE x TILE, which lie
 * side by side in the source. Where the head defines SQUARE, one is as wide as a vector and is turned in registers. */
#if RANK > 1
typedef struct {
  long size[RANK];
  STRIDES(RANK) stride[2];
  long start[2];
  long tiles[2];
} tiled_space;

#ifndef TILE
#define TILE 4
#define TILES 1
#endif

static void turn_tile(__global RAW(D) *to, __global const RAW(D) *from, long stride_to, long stride_from) {
#ifdef SQUARE
  SQUARE lanes[TILE];
  for (int r = 0; r < TILE; r++) lanes[r] = VLOAD(from + r * stride_from);
  turn_square(lanes);
  for (int c = 0; c < TILE; c++) VSTORE(lanes[c], to + c * stride_to);
#else
  RAW(D) lanes[TILE][TILE];
  for (int r = 0; r < TILE; r++) {
    for (int c = 0; c < TILE; c++) lanes[c][r] = from[r * stride_from + c];
  }
  for (int c = 0; c < TILE; c++) {
    for (int r = 0; r < TILE; r++) to[c * stride_to + r] = lanes[c][r];
  }
#endif
}

KERNEL transpose(PLACE(out), CONST_PLACE(in), tiled_space shape) {
  long tile = get_global_id(0), i = tile % shape.tiles[0] * TILE, outer = tile / shape.tiles[0];
  long j = outer % shape.tiles[1] * (TILE * TILES);
  outer /= shape.tiles[1];
  long stride_to = shape.stride[0].along[1], stride_from = shape.stride[1].along[0];
  long at_to = shape.start[0] + i + j * stride_to, at_from = shape.start[1] + i * stride_from + j;
  for (int d = 2; d < RANK; d++) {
    long place = outer % shape.size[d];
    outer /= shape.size[d];
    at_to += place * shape.stride[0].along[d];
    at_from += place * shape.stride[1].along[d];
  }
  if (outer > 0) return; /* beyond the last tile */
  __global RAW(D) *to = POINTER(D, out) + at_to;
  __global const RAW(D) *from = CONST_POINTER(D, in) + at_from;
  const long rows = min((long)TILE, shape.size[0] - i), columns = min((long)(TILE * TILES), shape.size[1] - j);
  long c = 0;
  if (rows == TILE) {
    for (; c + TILE <= columns; c += TILE) turn_tile(to + c * stride_to, from + c, stride_to, stride_from);
  }
  for (; c < columns; c++) {
    for (long r = 0; r < rows; r++) to[c * stride_to + r] = from[r * stride_from + c];
  }
}
#endif

/* Rows on one side of a diagonal: of row r the columns before first + r (lower), or those from there on; zeros beside. */
#ifdef TRIANGLE
typedef struct {
  long rows, rows_per_matrix, columns, per_item;
} triangle_space;

#ifdef IS_CPU
KERNEL triangle(PLACE(out), CONST_PLACE(in), long first, long lower, triangle_space shape) {
  long row = (long)get_global_id(0) * shape.per_item, last = min(row + shape.per_item, shape.rows);
  for (; row < last; row++) {
    __global RAW(D) *to = POINTER(D, out) + row * shape.columns;
    __global const RAW(D) *from = CONST_POINTER(D, in) + row * shape.columns;
    long cut = clamp(first + row % shape.rows_per_matrix, 0L, shape.columns), begin = lower ? 0 : cut;
    long end = lower ? cut : shape.columns;
    for (long i = 0; i < begin; i++) to[i] = (RAW(D))0;
    for (long i = begin; i < end; i++) to[i] = from[i];
    for (long i = end; i < shape.columns; i++) to[i] = (RAW(D))0;
  }
}
#else
/* A work-item takes a column of ROWS_AT_ONCE rows, and goes on with others. What is not kept is not read. */
KERNEL triangle(PLACE(out), CONST_PLACE(in), long first, long lower, triangle_space shape) {
  const long i = (long)get_global_id(0), step = (long)get_num_groups(1) * ROWS_AT_ONCE;
  if (i >= shape.columns) return;
  for (long row = (long)get_group_id(1) * ROWS_AT_ONCE; row < shape.rows; row += step) {
    long place = shape.rows >> 32 ? row % shape.rows_per_matrix : (uint)row % (uint)shape.rows_per_matrix;
    RAW(D) value[ROWS_AT_ONCE];
#pragma unroll
    for (int k = 0; k < ROWS_AT_ONCE; k++) {
      bool before = i < first + place;
      value[k] = (RAW(D))0;
      if (row + k < shape.rows && before == (lower != 0)) value[k] = CONST_POINTER(D, in)[(row + k) * shape.columns + i];
      place = place + 1 == shape.rows_per_matrix ? 0 : place + 1;
    }
#pragma unroll
    for (int k = 0; k < ROWS_AT_ONCE; k++) {
      if (row + k < shape.rows) POINTER(D, out)[(row + k) * shape.columns + i] = value[k];
    }
  }
}
#endif
#endif
