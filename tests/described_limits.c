/* A program of test_opencl_group_launches: groups with a sum, at both sides of what decides how they are made: how many
 * calls are made again behind the sum, and how many steps of a line, and calls, a work-item holds. */
#include "opencl_groups.h"

typedef struct lines {
  int64_t rows, columns;
  int dim, calls; /* which one is summed; how many calls are in front of the sum */
} lines;

static void less_its_sum(graft_tensor **in, graft_tensor **out, const void *what) {
  const lines *l = what;
  graft_tensor *x = in[0];
  for (int i = 0; i < l->calls; i++) x = i % 2 ? CALL(MUL_TENSOR, T(x), T(in[0])) : CALL(ADD_TENSOR, T(x), T(in[0]));
  graft_tensor *sum = CALL(SUM_DIM_INTLIST, T(x), INTS(l->dim), graft_value_bool(true));
  out[0] = retained(CALL(SUB_TENSOR, T(x), T(sum)));
}

static void tell_lines(graft_dtype dtype, const lines *l) {
  char name[64];
  snprintf(name, sizeof name, "%d bytes, %d x %d, dim %d, %d calls", (int)dt_bytes(dtype), (int)l->rows,
           (int)l->columns, l->dim, l->calls);
  const way w = {less_its_sum, l, 1, 1, 0, 0, .at_least = true};
  graft_tensor *in[] = {sized(dtype, l->rows, l->columns, 1)};
  compare(name, &w, in, in);
  release_all(in, 1);
}

START_TEST(calls_that_are_made_again) {
  if (!device) return;
  for (int calls = 0; calls < 6; calls++) tell_lines(GRAFT_F32, &(lines){5, 205, 1, calls});
}
END_TEST

/* Lines; of MANY none is cut on any of the devices. */
enum { FEW = 64, MANY = 2048 };

/* Of lines of which a work-item has as many steps as it can hold. */
START_TEST(calls_of_held_lines) {
  if (!device) return;
  for (int calls = 14; calls < 22; calls++) tell_lines(GRAFT_F32, &(lines){MANY, 8192, 1, calls});
}
END_TEST

static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F16, GRAFT_F64};

START_TEST(lengths_of_lines) {
  static const int64_t lengths[] = {31,   32,   33,   64,   255,  256,  257,  1023,  1024,
                                    1028, 2048, 2052, 4096, 4100, 8192, 8200, 16384, 16392};
  if (!device) return;
  for (size_t i = 0; i < ROWS(lengths); i++) {
    for (int64_t count = FEW; count <= MANY; count += MANY - FEW) {
      tell_lines(dtypes[_i], &(lines){count, lengths[i], 1, 1});
      tell_lines(dtypes[_i], &(lines){lengths[i], count, 0, 1});
    }
  }
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      ONCE(calls_that_are_made_again), ONCE(calls_of_held_lines), EACH(lengths_of_lines, ROWS(dtypes)), {0}};
  return run_suite("opencl_limits", tests, on_one_device(open_for_cpus)) ||
         run_suite("opencl_limits_of_gpus", tests, on_one_device(open_for_gpus));
}
