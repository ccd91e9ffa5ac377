/* Tensors one behind the other along a dim, up to PARTS of them by one kernel. Of each row of the result, which has `width`
 * elements, part k is those from start[k] on, as many as its own rows have. A work-item moves VEC of them, or the rest of
 * a row; the parts' come one after the other. The head defines D, an element's bits. */
#define PARTS 8
typedef struct {
  long width, columns[PARTS], start[PARTS];
  long pieces[PARTS], end[PARTS]; /* of a row; where the part's work-items end */
} joined;

#define PART(k) CONST_PLACE(in_##k)
#define FROM_PART(k)                       \
  if (me >= before && me < shape.end[k]) { \
    from = CONST_POINTER(D, in_##k);       \
    place = me - before;                   \
    pieces = shape.pieces[k];              \
    columns = shape.columns[k];            \
    start = shape.start[k];                \
  }                                        \
  before = shape.end[k];

KERNEL join(PLACE(out), PART(0), PART(1), PART(2), PART(3), PART(4), PART(5), PART(6), PART(7), joined shape) {
  const long me = get_global_id(0);
  __global const RAW(D) *from = CONST_POINTER(D, in_0);
  long before = 0, place = 0, pieces = 0, columns = 0, start = 0;
  FROM_PART(0)
  FROM_PART(1)
  FROM_PART(2)
  FROM_PART(3)
  FROM_PART(4)
  FROM_PART(5)
  FROM_PART(6)
  FROM_PART(7)
  if (!pieces) return;
  const long row = (place | pieces) >> 32 ? place / pieces : (long)((uint)place / (uint)pieces);
  long i = (place - row * pieces) * VEC;
  const long end = min(i + VEC, columns);
  __global RAW(D) *to = POINTER(D, out) + row * shape.width + start;
  from += row * columns;
  if (i + VEC == end) VSTORE(VLOAD(from + i), to + i);
  else
    for (; i < end; i++) to[i] = from[i];
}
