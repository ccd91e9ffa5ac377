/* The table of a launch over lists of tensors, as lists.h says. After places.cl. The head defines OPERANDS, OWNS
 * (numbers of each tensor), PARAMETERS (the table and the buffers), CASES (a `case` for each buffer, which sets `base`) and OFFSET_BITS: a place is an offset
 * and, above, the number of a buffer. */
#define NUMBERS 16 /* as OCL_TABLE_NUMBERS */
#define FIRST(table) ((table) + NUMBERS)
#define RECORD(first, tensors, tensor) ((first) + (tensors) + 1 + (long)(tensor) * (1 + OWNS + OPERANDS))
#define SIZE(record) ((record)[0])
#define OWN_NUMBER(record, k) (*(__global const CT *)((record) + 1 + (k)))

/* Sets p to operand k of a record. */
#define LOCATE(p, record, k)                                        \
  {                                                                 \
    ulong place = (ulong)(record)[1 + OWNS + (k)];                         \
    __global uchar *base = 0;                                       \
    switch ((int)(place >> OFFSET_BITS)) { CASES }                  \
    p = base + (place & ((1UL << OFFSET_BITS) - 1));                \
  }

/* The last tensor that begins at this place or before it. */
static int tensor_at(__global const long *first, int tensors, long at) {
  return (int)last_place_before(first, 1, tensors, at);
}
