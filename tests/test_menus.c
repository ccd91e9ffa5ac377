/* What the cases at mustpass say of each op's arguments, beyond that they say them: values by which two places of an op
 * that hold the same kind of thing can be told apart. A kernel that reads the height where it should read the width,
 * the stride of one dim for that of another, or a dim that counts from the wrong end, is right wherever both are alike.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/menu.h"
#include "dispatch/plan.h"
#include "ops/core/op.h"
#include "suite.h"

enum { OPS = 1024 };
#define FROM_THE_END  "counted from the last dim"
#define OF_TWO_VALUES "of two values"
#define CUT           "that is not whole where tensors are"

/* Of an op, a bit an argument. */
static struct seen {
  uint64_t lists, unequal;           /* lists of several numbers, and those of which two differ */
  uint64_t ints, changing;           /* whole numbers that name no dim, and those that come with two values */
  uint64_t named, backwards;         /* lists of dims, and those with one that counts from the end */
  uint64_t several, mixed;           /* lists of several dims, and those that name one before an earlier one */
  uint64_t dims, negative, positive; /* numbers that name a dim, those that count from its end, and those that don't */
  uint64_t first, last;              /* which dim is named, of a tensor of two or more */
  uint64_t numbers, odd;             /* numbers, and those that are neither 0 nor 1 nor the default */
  uint64_t of_whole, cut;            /* numbers in cases of whole numbers, and those that are not whole */
  uint64_t wide, apart;              /* tensors of two dims or more, and those no two dims of which have one size */
  uint64_t square, oblong;           /* those of which the last two alone have, and those of which these have not */
  int64_t value[OP_MAX_ARGS];        /* of the last whole number */
} seen[OPS];

static bool names_a_dim(const char *name) {
  static const char *const names[] = {"dim", "dims", "axes", "dim0", "dim1", "dim2", "axis"};
  bool is = false;
  for (int i = 0; i < ROWS(names); i++) is |= !strcmp(names[i], name);
  return is;
}

static bool differ(const int64_t *items, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (items[i] != items[0]) return true;
  return false;
}

static bool all_differ(const int64_t *sizes, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    for (int32_t k = 0; k < i; k++)
      if (sizes[i] == sizes[k]) return false;
  return true;
}

static double number_of(const graft_value *v) {
  if (v->kind == GRAFT_VALUE_FLOAT) return v->as.f;
  if (v->kind != GRAFT_VALUE_SCALAR) return 0;
  const graft_scalar *s = &v->as.scalar;
  return dt_is_complex(s->dtype) ? s->value.c[0] : s->dtype == GRAFT_F64 ? s->value.f : (double)s->value.i;
}

static int64_t wrapped(int64_t dim, int32_t rank) {
  return dim < 0 ? dim + rank : dim;
}

static void note_dims(struct seen *s, uint64_t bit, const graft_value *v, int32_t rank) {
  s->named |= bit;
  if (v->count > 1) s->several |= bit;
  for (uint32_t i = 0; i < v->count; i++) {
    if (v->as.ints[i] < 0) s->backwards |= bit;
    if (i && wrapped(v->as.ints[i], rank) < wrapped(v->as.ints[i - 1], rank)) s->mixed |= bit;
  }
}

static void note_int(struct seen *s, uint32_t a, int64_t value) {
  const uint64_t bit = UINT64_C(1) << a;
  if (s->ints & bit && s->value[a] != value) s->changing |= bit;
  s->ints |= bit;
  s->value[a] = value;
}

static void note_number(struct seen *s, const op_arg *arg, uint64_t bit, const graft_value *v, bool is_whole) {
  const double number = number_of(v);
  const bool usual = arg->fallback && arg->fallback->kind != GRAFT_VALUE_NONE && number == number_of(arg->fallback);
  s->numbers |= bit;
  if (number != 0 && number != 1 && !usual) s->odd |= bit;
  if (is_whole) *(number != floor(number) ? &s->cut : &s->of_whole) |= bit;
}

static void note_argument(struct seen *s, const op_arg *arg, uint32_t a, const graft_value *v, int32_t rank,
                          bool is_whole) {
  const uint64_t bit = UINT64_C(1) << a;
  if (v->kind == GRAFT_VALUE_INTS && v->count > 1) {
    s->lists |= bit;
    if (differ(v->as.ints, v->count)) s->unequal |= bit;
  }
  if (v->kind == GRAFT_VALUE_INTS && names_a_dim(arg->name)) note_dims(s, bit, v, rank);
  if (v->kind == GRAFT_VALUE_INT && arg->kind == OPK_INT && !names_a_dim(arg->name)) note_int(s, a, v->as.i);
  if (v->kind == GRAFT_VALUE_INT && names_a_dim(arg->name) && rank > 1) {
    const int64_t dim = wrapped(v->as.i, rank);
    s->dims |= bit;
    *(v->as.i < 0 ? &s->negative : &s->positive) |= bit;
    if (dim == 0) s->first |= bit;
    if (dim == rank - 1) s->last |= bit;
  }
  if (v->kind == GRAFT_VALUE_FLOAT || v->kind == GRAFT_VALUE_SCALAR) note_number(s, arg, bit, v, is_whole);
}

static void note_tensor(struct seen *s, const txt_tensor *spec, uint64_t bit) {
  if (spec->ndim < 2) return;
  const bool square = spec->sizes[spec->ndim - 1] == spec->sizes[spec->ndim - 2];
  s->wide |= bit;
  if (!square) s->oblong |= bit;
  if (all_differ(spec->sizes, spec->ndim - square)) *(square ? &s->square : &s->apart) |= bit;
}

static bool note(void *context, const cf_case *c, const char *id) {
  cf_call call;
  size_t count;
  (void)context, (void)id;
  if (c->mode > CF_VJP || !cf_call_open(c, &call)) return true;
  struct seen *s = &seen[call.schema - op_schema_all(&count)];
  const int32_t rank = call.ntensors ? (int32_t)call.specs[0].ndim : 0;
  for (uint32_t a = 0; a < call.schema->nargs; a++) {
    const op_arg *arg = &call.schema->args[a];
    const bool absent = call.args[a].kind == GRAFT_VALUE_NONE && arg->fallback;
    note_argument(s, arg, a, absent ? arg->fallback : &call.args[a], rank, dt_is_integral(c->dtype, false));
  }
  for (uint32_t t = 0; t < call.ntensors; t++) note_tensor(s, &call.specs[t], UINT64_C(1) << call.spec_arg[t]);
  cf_call_close(&call);
  return true;
}

/* What cannot be said, and why. The name of an op may be left out. */
static const struct refused {
  const char *op, *argument, *what, *why;
} refused[] = {
    {"aten::_weight_norm_interface", "dim", FROM_THE_END, "0 or the last, as a number from 0, says PyTorch"},
    {"aten::_weight_norm_interface_backward", "dim", FROM_THE_END, "as forward"},
    {"aten::fake_quantize_per_channel_affine_cachemask", "axis", FROM_THE_END, "PyTorch refuses it"},
    {"aten::_embedding_bag_per_sample_weights_backward", "mode", OF_TWO_VALUES,
     "weights of sums alone have a gradient"},
    {NULL, "alpha", CUT, "PyTorch refuses it"},
    {"aten::bitwise_and.Scalar", "other", CUT, "PyTorch refuses it"},
    {"aten::bitwise_and.Tensor", "other", CUT, "PyTorch refuses it"},
    {"aten::bitwise_or.Scalar", "other", CUT, "PyTorch refuses it"},
    {"aten::bitwise_xor.Scalar", "other", CUT, "PyTorch refuses it"},
    {"aten::bitwise_left_shift.Tensor", "other", CUT, "PyTorch refuses it"},
    {"aten::bitwise_right_shift.Tensor", "other", CUT, "PyTorch refuses it"},
    {"aten::gcd", "other", CUT, "PyTorch refuses it"},
};

static bool is_refused(const char *op, const char *argument, const char *what) {
  for (int i = 0; i < ROWS(refused); i++)
    if ((!refused[i].op || !strcmp(refused[i].op, op)) && !strcmp(refused[i].argument, argument) &&
        !strcmp(refused[i].what, what))
      return true;
  return false;
}

static int lacks(const op_schema *schema, uint64_t those, uint64_t have, const char *what) {
  int wrong = 0;
  for (uint32_t a = 0; a < schema->nargs; a++) {
    if (!(those & ~have & UINT64_C(1) << a) || is_refused(schema->name, schema->args[a].name, what)) continue;
    fprintf(stderr, "%s: no case at mustpass has %s %s\n", schema->name, schema->args[a].name, what);
    wrong++;
  }
  return wrong;
}

START_TEST(places_can_be_told_apart) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  const cf_selection mustpass = {.level = CF_MUSTPASS};
  int wrong = 0;
  cf_menu(&mustpass, note, NULL);
  for (size_t i = 0; i < count; i++) {
    const struct seen *s = &seen[i];
    if (all[i].equal) continue;
    wrong += lacks(&all[i], s->lists, s->unequal, "of numbers that differ");
    wrong += lacks(&all[i], s->ints, s->changing, OF_TWO_VALUES);
    wrong += lacks(&all[i], s->named, s->backwards, "of which one counts from the last dim");
    wrong += lacks(&all[i], s->several, s->mixed, "of which one comes before an earlier one");
    wrong += lacks(&all[i], s->dims, s->negative, FROM_THE_END);
    wrong += lacks(&all[i], s->dims, s->positive, "counted from the first dim");
    wrong += lacks(&all[i], s->dims, s->first, "that is the first of several");
    wrong += lacks(&all[i], s->dims, s->last, "that is the last of several");
    wrong += lacks(&all[i], s->numbers, s->odd, "but 0, 1 and its default");
    wrong += lacks(&all[i], s->of_whole, s->cut, CUT);
    wrong += lacks(&all[i], s->wide, s->apart | (s->square & ~s->oblong), "whose dims all have sizes of their own");
  }
  ck_assert_msg(wrong == 0, "%d arguments are never so", wrong);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(places_can_be_told_apart), {0}};
  return run_suite("menus", tests, (suite_options){.timeout_s = 100});
}
