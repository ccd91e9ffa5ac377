/* Whether costs grow in proportion: blocks of the allocator up to 10^6 at once, the nodes of a backward up to 10^5, and
 * ops on tensors whose elements 32 bits can't count.
 *
 *   growth PATH-OF-NULL-PLUGIN [BACKEND]
 *
 * The first two run on a plugin that does nothing, the last on BACKEND (opencl), where its memory is large enough: 6
 * GiB. Exit 1 when the largest takes over four times as long an item as the smallest, or a large result is wrong. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "memory/memory.h"
#include "tests/benchmarks/measure.h"

#define LIMIT 4.0

/* What a line of each table says: nanoseconds an item, and whether that still is in proportion to the first line's. */
static bool row(const char *what, int64_t count, double first, double ns) {
  printf("  %-10s %9" PRId64 "  %8.0f ns each\n", what, count, ns);
  return ns <= first * LIMIT;
}

/* --- the allocator: blocks of 16 sizes, all live, given back from the front --- */

static double allocate_and_free(graft_rt_device *device, mem_block **blocks, int64_t count) {
  double start = now_s();
  for (int64_t i = 0; i < count; i++) must(mem_allocate(device, NULL, 512 * (uint64_t)(1 + i * 7 % 16), &blocks[i]));
  for (int64_t i = 0; i < count; i++) mem_free(blocks[i]);
  return (now_s() - start) / (double)count * 1e9;
}

static bool allocations(graft_rt_device *device) {
  enum { MOST = 1000000 };
  mem_block **blocks = malloc(MOST * sizeof(mem_block *));
  double first = 0;
  bool proportional = true;
  if (!blocks) exit(1);
  printf("blocks live at once, allocated and freed on %s\n", graft_device_text(device));
  for (int64_t count = 1000; count <= MOST; count *= 10) {
    allocate_and_free(device, blocks, count); /* the segments are there */
    double ns = allocate_and_free(device, blocks, count);
    if (!first) first = ns;
    proportional = row("blocks", count, first, ns) && proportional;
  }
  free(blocks);
  return proportional;
}

/* --- autograd: a chain of calls, recorded and run back --- */

static double chain(graft_tensor *leaf, int64_t count) {
  double start = now_s();
  graft_tensor *end = leaf;
  graft_tensor_retain(leaf);
  for (int64_t i = 0; i < count; i++) {
    graft_tensor *next = NULL;
    must(graft_op_add_Tensor(end, leaf, graft_scalar_int(1), &next));
    graft_tensor_release(end);
    end = next;
  }
  must(graft_backward(&end, NULL, 1, 0));
  graft_tensor_release(end);
  must(graft_tensor_set_grad(leaf, NULL));
  return (now_s() - start) / (double)count * 1e9;
}

static bool nodes(graft_rt_device *device) {
  static const int64_t none[1] = {0};
  graft_tensor *leaf = NULL;
  double first = 0;
  bool proportional = true;
  must(graft_op_full(none, 0, graft_scalar_float(1), GRAFT_F32, device, &leaf));
  must(graft_tensor_set_requires_grad(leaf, true));
  printf("calls in a row, recorded, run back and given back on %s\n", graft_device_text(device));
  for (int64_t count = 100; count <= 100000; count *= 10) {
    chain(leaf, count);
    double ns = chain(leaf, count);
    if (!first) first = ns;
    proportional = row("calls", count, first, ns) && proportional;
  }
  graft_tensor_release(leaf);
  return proportional;
}

/* --- tensors of more than 2^31 elements: ones, but for a 5 that is the first behind 2^31 --- */

#define ELEMENTS (INT64_C(2147483648) + 3)
#define PLACE    (ELEMENTS - 3)

static graft_tensor *part(graft_tensor *whole, int64_t begin, int64_t end) {
  graft_tensor *view = NULL;
  must(graft_op_slice_Tensor(whole, 0, &begin, &end, 1, &view));
  return view;
}

static graft_tensor *large(graft_rt_device *device) {
  graft_tensor *whole = NULL;
  must(graft_op_full((int64_t[]){ELEMENTS}, 1, graft_scalar_int(1), GRAFT_I8, device, &whole));
  graft_tensor *one = part(whole, PLACE, PLACE + 1);
  must(graft_call(GRAFT_OP_FILL_SCALAR, (graft_value[]){graft_value_tensor(one), graft_value_int(5)}, 2, &one, 1));
  graft_tensor_release(one);
  return whole;
}

static int64_t number(graft_tensor *t) {
  graft_scalar value;
  must(graft_tensor_item(t, &value));
  return value.value.i;
}

/* The element at `place`. */
static int64_t element(graft_tensor *whole, int64_t place) {
  graft_tensor *one = part(whole, place, place + 1);
  int64_t value = number(one);
  graft_tensor_release(one);
  return value;
}

typedef graft_tensor *(*large_fn)(graft_tensor *whole);

static graft_tensor *added(graft_tensor *whole) {
  graft_tensor *out = NULL;
  must(graft_op_add_Tensor(whole, whole, graft_scalar_int(1), &out));
  return out;
}

static graft_tensor *cloned(graft_tensor *whole) {
  graft_tensor *out = NULL;
  must(graft_op_clone(whole, GRAFT_FORMAT_DEFAULT, &out));
  return out;
}

static graft_tensor *flipped(graft_tensor *whole) {
  graft_tensor *out = NULL;
  must(graft_op_flip(whole, (int64_t[]){0}, 1, &out));
  return out;
}

static graft_tensor *joined(graft_tensor *whole) {
  graft_tensor *out = NULL, *halves[] = {part(whole, 0, ELEMENTS / 2), part(whole, ELEMENTS / 2, ELEMENTS)};
  must(graft_op_cat(halves, 2, 0, &out));
  graft_tensor_release(halves[0]);
  graft_tensor_release(halves[1]);
  return out;
}

/* Every second element, from the first on. */
static graft_tensor *thinned(graft_tensor *whole) {
  const int64_t begin = 0, end = ELEMENTS;
  graft_tensor *view = NULL, *out = NULL;
  must(graft_op_slice_Tensor(whole, 0, &begin, &end, 2, &view));
  must(graft_op_clone(view, GRAFT_FORMAT_CONTIGUOUS, &out));
  graft_tensor_release(view);
  return out;
}

static graft_tensor *picked(graft_tensor *whole) {
  graft_tensor *index = NULL, *out = NULL;
  must(graft_tensor_from_host(graft_tensor_device(whole), GRAFT_I64, 1, (int64_t[]){2}, (int64_t[]){PLACE, 0}, &index));
  must(graft_op_index_select(whole, 0, index, &out));
  graft_tensor_release(index);
  return out;
}

static graft_tensor *summed(graft_tensor *whole) {
  graft_tensor *out = NULL;
  must(graft_op_sum_dim_IntList(whole, NULL, 0, true, GRAFT_I64, &out));
  return out;
}

static graft_tensor *largest(graft_tensor *whole) {
  graft_tensor *out = NULL;
  must(graft_op_argmax(whole, &(int64_t){0}, true, &out));
  return out;
}

/* Where elements are larger than 1. */
static graft_tensor *compared(graft_tensor *whole) {
  graft_tensor *larger = NULL, *out = NULL;
  must(graft_op_gt_Scalar(whole, graft_scalar_int(1), &larger));
  must(graft_op_nonzero(larger, &out));
  graft_tensor_release(larger);
  return out;
}

static const struct {
  const char *op;
  large_fn run;
  int64_t size, place, value; /* of the result's first dim; which element is looked at, and what it is */
} operations[] = {
    {"add", added, ELEMENTS, PLACE, 10},
    {"clone", cloned, ELEMENTS, PLACE, 5},
    {"flip", flipped, ELEMENTS, ELEMENTS - 1 - PLACE, 5},
    {"cat", joined, ELEMENTS, PLACE, 5},
    {"clone of every second", thinned, ELEMENTS / 2 + 1, PLACE / 2, 5},
    {"index_select", picked, 2, 0, 5},
    {"sum", summed, 1, 0, ELEMENTS + 4},
    {"argmax", largest, 1, 0, PLACE},
    {"nonzero", compared, 1, 0, PLACE},
};

static bool tensors(graft_rt_device *device) {
  graft_tensor *whole = large(device);
  bool right = true;
  printf("i8[%" PRId64 "] on %s\n", ELEMENTS, graft_device_text(device));
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    double start = now_s();
    graft_tensor *out = operations[i].run(whole);
    int64_t size = graft_tensor_sizes(out)[0], value = element(out, operations[i].place);
    bool same = size == operations[i].size && value == operations[i].value;
    printf("  %-22s %6.2f s  %s\n", operations[i].op, now_s() - start, same ? "right" : "WRONG");
    graft_tensor_release(out);
    right = right && same;
  }
  graft_tensor_release(whole);
  return right;
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: growth PATH-OF-NULL-PLUGIN [BACKEND]\n"), 2;
  graft_rt_device *null = device_of(argv[1]);
  bool proportional = allocations(null);
  proportional = nodes(null) && proportional;
  bool right = tensors(device_of(argc > 2 ? argv[2] : "opencl"));
  if (!proportional) printf("an item of the largest takes over %.0f times as long as one of the smallest\n", LIMIT);
  return proportional && right ? 0 : 1;
}
