/* Views over tensors of shape only: geometry and refusals, as PyTorch 2.13 gives them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "tensor/view.h"

/* A tensor given by text: "f32[2,3]:3,1+4*-": dtype, sizes, then strides, offset, and the bits where they are not plain
 * ('*' conjugate, '-' negative). */
static int64_t parse_list(const char **at, char end, int64_t *items) {
  int64_t count = 0;
  while (**at && **at != end && **at != '+' && **at != '*' && **at != '-') {
    char *next;
    items[count++] = strtoll(*at, &next, 10);
    *at = *next == ',' ? next + 1 : next;
  }
  return count;
}

static graft_tensor *make(const char *text) {
  char name[16];
  size_t length = strcspn(text, "[");
  memcpy(name, text, length);
  name[length] = 0;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS], offset = 0;
  const char *at = text + length + 1;
  int32_t ndim = (int32_t)parse_list(&at, ']', sizes);
  at++;
  tns_contiguous_strides(ndim, sizes, strides);
  if (*at == ':') {
    at++;
    ck_assert_int_eq(parse_list(&at, 0, strides), ndim);
  }
  if (*at == '+') offset = strtoll(at + 1, (char **)&at, 10);
  graft_tensor *tensor;
  graft_status status = tns_new(NULL, NULL, graft_dtype_parse(name), ndim, sizes, strides, offset, &tensor);
  ck_assert_msg(status == GRAFT_OK, "%s: %s", text, graft_last_error());
  for (; *at; at++) tensor->flags |= *at == '*' ? TNS_CONJ : TNS_NEG;
  return tensor;
}

static void show(const graft_tensor *t, char *text, size_t capacity) {
  int64_t contiguous[GRAFT_MAX_DIMS];
  tns_contiguous_strides(t->ndim, t->sizes, contiguous);
  size_t at = (size_t)snprintf(text, capacity, "%s%s", graft_dtype_name(t->dtype), TNS_INTS(t->ndim, t->sizes));
  bool plain = memcmp(contiguous, t->strides, (size_t)t->ndim * sizeof *contiguous) == 0;
  if (!plain) {
    char *strides = TNS_INTS(t->ndim, t->strides);
    at += (size_t)snprintf(text + at, capacity - at, ":%.*s", (int)strlen(strides) - 2, strides + 1);
  }
  if (t->offset) at += (size_t)snprintf(text + at, capacity - at, "+%lld", (long long)t->offset);
  if (t->flags & TNS_CONJ) at += (size_t)snprintf(text + at, capacity - at, "*");
  if (t->flags & TNS_NEG) snprintf(text + at, capacity - at, "-");
}

typedef enum view_op {
  AS_STRIDED,
  DIAGONAL,
  EXPAND,
  PERMUTE,
  SELECT,
  SLICE,
  SQUEEZE_DIM,
  SQUEEZE_DIMS,
  UNSQUEEZE,
  VIEW,
  AS_REAL,
  CONJ,
  REAL,
  IMAG,
  DTYPE,
  COLLAPSE,
  SPLIT_DIM,
  BROADCAST,
  ALIAS
} view_op;

/* The result's text, or what the error must say after "!". */
typedef struct view_case {
  view_op op;
  const char *self;
  const char *result;
  uint32_t count;
  int64_t args[8];
} view_case;

enum { NIL = -999 }; /* an absent bound */
#define END INT64_MAX

static const view_case cases[] = {
    {ALIAS, "c64[2]:3+1*", "c64[2]:3+1*", 0, {0}},
    {AS_STRIDED, "f32[6]+1", "f32[2,2]:1,1+1", 4, {2, 2, 1, 1}},
    {AS_STRIDED, "f32[6]", "f32[2,2]:1,1+3", 5, {2, 2, 1, 1, 3}},
    {AS_STRIDED, "f32[6]", "!negative strides", 4, {2, 2, 1, -1}},
    {AS_STRIDED, "f32[6]", "!invalid storage offset -1", 3, {2, 1, -1}},
    {AS_STRIDED, "f32[6]", "!overflow", 4, {1 << 20, 1 << 20, END, END}},
    {DIAGONAL, "f32[2,3]", "f32[2]:4", 3, {0, 0, 1}},
    {DIAGONAL, "f32[2,3]", "f32[1]:4+3", 3, {-1, 0, 1}},
    {DIAGONAL, "f32[2,3]", "f32[0]:4", 3, {5, 0, 1}},
    {DIAGONAL, "f32[2,3]", "f32[0]:4", 3, {INT64_MIN, 0, 1}},
    {DIAGONAL, "f32[2,3,4]", "f32[3,2]:4,13+1", 3, {1, 0, -1}},
    {DIAGONAL, "f32[2,3]", "!identical", 3, {0, 1, -1}},
    {DIAGONAL, "f32[]", "!out of range", 3, {0, 0, 1}},
    {EXPAND, "f32[3]", "f32[1,1,3]", 3, {1, 1, 3}},
    {EXPAND, "f32[]", "f32[1,3]:0,0", 2, {1, 3}},
    {EXPAND, "f32[1]", "f32[0]:0", 1, {0}},
    {EXPAND, "f32[2,1]", "f32[5,2,4]:0,1,0", 3, {5, -1, 4}},
    {EXPAND, "f32[2,3]", "!must match the existing size 2", 2, {4, 3}},
    {EXPAND, "f32[2,3]", "!non-existing dimension 0", 3, {-1, 2, 3}},
    {EXPAND, "f32[2,3]", "!number of sizes", 1, {3}},
    {PERMUTE, "f32[2,3,4]", "f32[4,2,3]:1,12,4", 3, {2, 0, -2}},
    {PERMUTE, "f32[2,3]", "!duplicate", 2, {0, 0}},
    {PERMUTE, "f32[2,3]", "!does not match the length", 1, {0}},
    {SELECT, "f32[2,3]+4", "f32[2]:3+6", 2, {1, -1}},
    {SELECT, "f32[2,3]", "!index 2 out of range", 2, {0, 2}},
    {SELECT, "f32[]", "!without dimensions", 2, {0, 0}},
    {SLICE, "f32[2,3]", "f32[2,2]:3,2", 4, {1, NIL, NIL, 2}},
    {SLICE, "f32[2,3]", "f32[2,1]:3,1+2", 4, {-1, -1, END, 1}},
    {SLICE, "f32[2,3]", "f32[0,3]+6", 4, {0, 5, 1, 1}},
    {SLICE, "f32[5]", "f32[0]+5", 4, {0, END, NIL, 1}},
    {SLICE, "f32[5]", "f32[5]", 4, {0, -100, 100, 1}},
    {SLICE, "f32[2,3]", "f32[2,1]:3,4611686018427387904", 4, {1, 0, 3, INT64_C(1) << 62}},
    {SLICE, "f32[2,3]", "!step must be positive", 4, {0, 0, 5, 0}},
    {SLICE, "f32[2,3]", "!overflows", 4, {0, 0, 2, END}},
    {SQUEEZE_DIM, "f32[1,2]", "f32[1,2]", 1, {1}},
    {SQUEEZE_DIM, "f32[]", "f32[]", 1, {-1}},
    {SQUEEZE_DIM, "f32[2,3]", "!out of range", 1, {2}},
    {SQUEEZE_DIMS, "f32[1,2,1]", "f32[2]", 2, {0, -1}},
    {SQUEEZE_DIMS, "f32[1,2,1]", "!multiple times", 2, {0, 0}},
    {UNSQUEEZE, "f32[2,3]", "f32[2,1,3]", 1, {1}},
    {UNSQUEEZE, "f32[2,3]", "f32[2,3,1]", 1, {-1}},
    {UNSQUEEZE, "f32[]", "!out of range", 1, {3}},
    {UNSQUEEZE, "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "!17 dimensions", 1, {0}},
    {VIEW, "f32[2,3]", "f32[3,2]", 2, {3, -1}},
    {VIEW, "f32[]", "f32[1,1]", 2, {1, 1}},
    {VIEW, "f32[4,3]:6,2", "f32[2,2,3]:12,6,2", 3, {2, 2, 3}},
    {VIEW, "f32[2,3,1,4]:12,4,99,1", "f32[24]", 1, {24}},
    {VIEW, "f32[2,0,3]", "f32[0,7]", 2, {0, 7}},
    {VIEW, "f32[0,3]:9,2", "f32[0,3]:9,2", 2, {0, 3}},
    {VIEW, "f32[3,2]:1,3", "!two contiguous subspaces", 1, {6}},
    {VIEW, "f32[2,3]", "!only one dimension", 2, {-1, -1}},
    {VIEW, "f32[2,3]", "!invalid shape dimension -2", 1, {-2}},
    {VIEW, "f32[2,3]", "!invalid for input of size 6", 2, {4, -1}},
    {VIEW, "f32[0,2]", "!ambiguous", 2, {-1, 0}},
    {VIEW, "f32[2]", "!invalid for input", 2, {INT64_C(1) << 40, INT64_C(1) << 40}},
    {AS_REAL, "c64[2,3]:1,2+3", "f32[2,3,2]:2,4,1+6", 0, {0}},
    {AS_REAL, "c128[2]-", "f64[2,2]-", 0, {0}},
    {AS_REAL, "c64[2]*", "!conjugate", 0, {0}},
    {AS_REAL, "f32[2]", "!only complex", 0, {0}},
    {CONJ, "c64[2]*", "c64[2]", 0, {0}},
    {CONJ, "f32[2]", "f32[2]", 0, {0}},
    {REAL, "c64[2]*", "f32[2]:2", 0, {0}},
    {REAL, "f32[2]:3", "f32[2]:3", 0, {0}},
    {IMAG, "c64[2]*", "f32[2]:2+1-", 0, {0}},
    {IMAG, "c64[2]*-", "f32[2]:2+1", 0, {0}},
    {IMAG, "f32[2]", "!imaginary", 0, {0}},
    {DTYPE, "f32[2,3]", "i16[2,6]", 1, {GRAFT_I16}},
    {DTYPE, "f32[2,3]:1,2", "i32[2,3]:1,2", 1, {GRAFT_I32}},
    {DTYPE, "f32[3,4]:6,1+2", "f64[3,2]:3,1+1", 1, {GRAFT_F64}},
    {DTYPE, "f32[2,3]", "!divisible", 1, {GRAFT_F64}},
    {DTYPE, "f32[]", "!at least one dimension", 1, {GRAFT_I16}},
    {DTYPE, "f32[3,2]:1,3", "!stride of the last", 1, {GRAFT_I16}},
    {DTYPE, "c64[2]*", "!conjugate", 1, {GRAFT_F32}},
    {DTYPE, "f32[2]", "!not a dtype", 1, {7}},
    {COLLAPSE, "f32[2,3,4]", "f32[2,12]", 2, {1, 2}},
    {COLLAPSE, "f32[]", "f32[1]", 2, {0, 0}},
    {COLLAPSE, "f32[3,2]:1,3", "!can't be seen as one", 2, {0, 1}},
    {COLLAPSE, "f32[2,3]", "!not an interval", 2, {1, 0}},
    {SPLIT_DIM, "f32[2,6]", "f32[2,3,2]", 2, {1, 3}},
    {SPLIT_DIM, "f32[2,3]", "!equal parts", 2, {1, 2}},
    {SPLIT_DIM, "f32[2,3]", "!equal parts", 2, {1, 0}},
    {BROADCAST, "f32[2,3]", "f32[4,2,3]:0,3,1", 6, {3, 4, 2, 3, 1, 2}},
    {BROADCAST, "f32[1]", "f32[3,4]:0,0", 4, {2, 3, 4, 0}},
    {BROADCAST, "f32[3]", "f32[3,1]", 4, {2, 3, 1, 0}},
    {BROADCAST, "f32[2]", "!cannot be broadcast", 4, {2, 3, 4, 0}},
    {BROADCAST, "f32[2,3]", "!strictly ascending", 5, {2, 2, 3, 1, 0}},
};

static const int64_t *bound(const int64_t *value) {
  return *value == NIL ? NULL : value;
}

static graft_status run(const view_case *c, graft_tensor *self, graft_tensor **view) {
  const int64_t *a = c->args;
  int32_t n = (int32_t)c->count;
  switch (c->op) {
    case AS_STRIDED: return tns_as_strided(self, n / 2, a, a + n / 2, n % 2 ? a + n - 1 : NULL, view);
    case DIAGONAL: return tns_diagonal(self, a[0], a[1], a[2], view);
    case EXPAND: return tns_expand(self, n, a, view);
    case PERMUTE: return tns_permute(self, n, a, view);
    case SELECT: return tns_select(self, a[0], a[1], view);
    case SLICE: return tns_slice(self, a[0], bound(a + 1), bound(a + 2), a[3], view);
    case SQUEEZE_DIM: return tns_squeeze_dim(self, a[0], view);
    case SQUEEZE_DIMS: return tns_squeeze_dims(self, c->count, a, view);
    case UNSQUEEZE: return tns_unsqueeze(self, a[0], view);
    case VIEW: return tns_view_sizes(self, n, a, view);
    case AS_REAL: return tns_view_as_real(self, view);
    case CONJ: return tns_conj(self, view);
    case REAL: return tns_real(self, view);
    case IMAG: return tns_imag(self, view);
    case DTYPE: return tns_view_of_dtype(self, (graft_dtype)a[0], view);
    case COLLAPSE: return tns_collapse_view(self, a[0], a[1], view);
    case SPLIT_DIM: return tns_split_dim(self, a[0], a[1], view);
    case BROADCAST:
      return tns_broadcast_in_dim(self, (int32_t)a[0], a + 1, (uint32_t)(n - 1 - a[0]), a + 1 + a[0], view);
    case ALIAS: return tns_alias(self, view);
  }
  return GRAFT_INTERNAL;
}

START_TEST(one_view) {
  const view_case *c = &cases[_i];
  graft_tensor *self = make(c->self), *view = NULL;
  graft_status status = run(c, self, &view);
  if (*c->result == '!') {
    ck_assert_int_eq(status, GRAFT_INVALID_ARGUMENT);
    ck_assert_ptr_null(view);
    const char *word = c->result + 1;
    ck_assert_msg(strstr(graft_last_error(), word) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(), word);
  } else {
    char text[400];
    ck_assert_msg(status == GRAFT_OK, "%s: %s", c->self, graft_last_error());
    show(view, text, sizeof text);
    ck_assert_str_eq(text, c->result);
    graft_tensor_release(view);
  }
  graft_tensor_release(self);
}
END_TEST

START_TEST(split_with_sizes) {
  graft_tensor *self = make("f32[2,5]+1"), *views[3] = {NULL};
  ck_assert_int_eq(tns_split_with_sizes(self, 3, (int64_t[]){2, 0, 3}, -1, views), GRAFT_OK);
  static const char *const expected[] = {"f32[2,2]:5,1+1", "f32[2,0]:5,1+3", "f32[2,3]:5,1+3"};
  for (int i = 0; i < 3; i++) {
    char text[100];
    show(views[i], text, sizeof text);
    ck_assert_str_eq(text, expected[i]);
    graft_tensor_release(views[i]);
    views[i] = NULL;
  }
  ck_assert_int_eq(tns_split_with_sizes(self, 2, (int64_t[]){2, 2}, 1, views), GRAFT_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "sum exactly to 5"));
  ck_assert_int_eq(tns_split_with_sizes(self, 2, (int64_t[]){6, -1}, 1, views), GRAFT_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "non-negative"));
  ck_assert_ptr_null(views[0]);
  graft_tensor_release(self);
}
END_TEST

/* --- facts of layouts --- */

typedef struct layout_case {
  const char *self;
  bool contiguous, channels_last, dense;
  graft_memory_format suggested;
  const char *preserved; /* strides of empty_like */
} layout_case;

static const layout_case layouts[] = {
    {"f32[2,3]", true, false, true, GRAFT_FORMAT_CONTIGUOUS, "[3,1]"},
    {"f32[3,2]:1,3", false, false, true, GRAFT_FORMAT_CONTIGUOUS, "[1,3]"},
    {"f32[2,1,3]:3,99,1", true, false, true, GRAFT_FORMAT_CONTIGUOUS, "[3,99,1]"},
    {"f32[0,3]:7,9", true, false, true, GRAFT_FORMAT_CONTIGUOUS, "[7,9]"},
    {"f32[2,3]:6,2", false, false, false, GRAFT_FORMAT_CONTIGUOUS, "[3,1]"},
    {"f32[2,3]:0,1", false, false, false, GRAFT_FORMAT_CONTIGUOUS, "[3,1]"},
    {"f32[3,2]:2,8", false, false, false, GRAFT_FORMAT_CONTIGUOUS, "[1,3]"},
    {"f32[2,3,4,5]:60,1,15,3", false, true, true, GRAFT_FORMAT_CHANNELS_LAST, "[60,1,15,3]"},
    {"f32[2,3,4,5]:240,1,60,6", false, false, false, GRAFT_FORMAT_CHANNELS_LAST, "[60,1,15,3]"},
    {"f32[2,3,2,4,5]:120,1,60,15,3", false, true, true, GRAFT_FORMAT_CHANNELS_LAST_3D, "[120,1,60,15,3]"},
    {"f32[2,1,1,1]", true, true, true, GRAFT_FORMAT_CONTIGUOUS, "[1,1,1,1]"},
    {"f32[2,1,3,4]:12,1,4,1", true, true, true, GRAFT_FORMAT_CHANNELS_LAST, "[12,1,4,1]"},
    {"f32[2,1,3,4]", true, true, true, GRAFT_FORMAT_CONTIGUOUS, "[12,12,4,1]"},
};

START_TEST(one_layout) {
  const layout_case *c = &layouts[_i];
  graft_tensor *t = make(c->self);
  int64_t strides[GRAFT_MAX_DIMS];
  ck_assert_int_eq(tns_is_contiguous(t->ndim, t->sizes, t->strides), c->contiguous);
  ck_assert_int_eq(tns_is_channels_last(t->ndim, t->sizes, t->strides), c->channels_last);
  ck_assert_int_eq(tns_is_dense(t->ndim, t->sizes, t->strides), c->dense);
  ck_assert_uint_eq(tns_suggest_format(t), c->suggested);
  tns_preserve_strides(t->ndim, t->sizes, t->strides, strides);
  ck_assert_str_eq(TNS_INTS(t->ndim, strides), c->preserved);
  graft_tensor_release(t);
}
END_TEST

typedef struct overlap_case {
  const char *a, *b;
  tns_overlap expected;
} overlap_case;

static const overlap_case overlaps[] = {
    {"f32[6]", "f32[6]", TNS_OVERLAP_FULL},
    {"f32[6]", "f32[2,3]", TNS_OVERLAP_PARTIAL},
    {"f32[5]+1", "f32[5]", TNS_OVERLAP_PARTIAL},
    {"f32[3]", "f32[3]+3", TNS_OVERLAP_NONE},
    {"f32[2,3]", "f32[2,3]:1,2", TNS_OVERLAP_PARTIAL},
    {"f32[6]", "i32[6]", TNS_OVERLAP_FULL},
    {"f32[3]:2", "f32[3]:2+1", TNS_OVERLAP_NONE}, /* even and odd elements */
    {"f32[3]:2", "f32[3]:2", TNS_OVERLAP_FULL},
    {"f32[4,2]:8,1", "f32[4,2]:8,1+1", TNS_OVERLAP_MAYBE},
    {"f32[2]:2", "f32[3]", TNS_OVERLAP_MAYBE},
    {"f32[0]", "f32[6]", TNS_OVERLAP_NONE},
};

START_TEST(one_overlap) {
  const overlap_case *c = &overlaps[_i];
  graft_storage storage = {.bytes = 400};
  atomic_init(&storage.refs, 1);
  graft_tensor *a = make(c->a), *b = make(c->b);
  ck_assert_int_eq(tns_overlap_of(a, b), TNS_OVERLAP_NONE); /* no memory, nothing shared */
  a->storage = b->storage = &storage;
  ck_assert_int_eq(tns_overlap_of(a, b), c->expected);
  ck_assert_int_eq(tns_overlap_of(b, a), c->expected);
  a->storage = b->storage = NULL;
  graft_tensor_release(a);
  graft_tensor_release(b);
}
END_TEST

START_TEST(overlaps_itself) {
  static const struct {
    const char *text;
    bool overlaps;
  } rows[] = {{"f32[2,3]", false}, {"f32[2,3]:0,1", true}, {"f32[1,3]:0,1", false}, {"f32[3]:2", false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    graft_tensor *t = make(rows[i].text);
    ck_assert_int_eq(tns_overlaps_itself(t), rows[i].overlaps);
    graft_tensor_release(t);
  }
}
END_TEST

START_TEST(sizes_that_overflow) {
  int64_t big = INT64_C(1) << 40;
  ck_assert_int_eq(tns_numel(2, (int64_t[]){big, big}), -1);
  ck_assert_int_eq(tns_numel(3, (int64_t[]){big, big, 0}), 0);
  ck_assert_int_eq(tns_numel(2, (int64_t[]){0, -1}), -1);
  ck_assert_int_eq(tns_numel(0, NULL), 1);
  ck_assert_int_eq(tns_extent_bytes(GRAFT_F32, 1, (int64_t[]){3}, (int64_t[]){2}, 1), 24);
  ck_assert_int_eq(tns_extent_bytes(GRAFT_F64, 1, (int64_t[]){2}, (int64_t[]){INT64_MAX / 4}, 0), -1);
  ck_assert_int_eq(tns_extent_bytes(GRAFT_F64, 1, (int64_t[]){0}, (int64_t[]){1}, 9), 0);
}
END_TEST

START_TEST(channels_last_strides) {
  int64_t strides[5];
  tns_channels_last_strides(4, (int64_t[]){2, 3, 4, 5}, strides);
  ck_assert_str_eq(TNS_INTS(4, strides), "[60,1,15,3]");
  tns_channels_last_strides(5, (int64_t[]){2, 3, 2, 4, 5}, strides);
  ck_assert_str_eq(TNS_INTS(5, strides), "[120,1,60,15,3]");
  tns_channels_last_strides(2, (int64_t[]){2, 3}, strides);
  ck_assert_str_eq(TNS_INTS(2, strides), "[3,1]");
}
END_TEST

START_TEST(descriptions) {
  static const char *const texts[] = {"f32[2,3]", "f32[]", "i64[3,2]:1,3", "c64[0,4]"};
  char text[64];
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    graft_tensor *t = make(texts[i]);
    ck_assert_str_eq(tns_describe(t, text, sizeof text), texts[i]);
    ck_assert_str_eq(tns_describe(t, text, 4), ((char[]){texts[i][0], texts[i][1], texts[i][2], 0}));
    graft_tensor_release(t);
  }
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      EACH(one_view, ROWS(cases)),       ONCE(split_with_sizes), EACH(one_layout, ROWS(layouts)),
      EACH(one_overlap, ROWS(overlaps)), ONCE(overlaps_itself),  ONCE(sizes_that_overflow),
      ONCE(channels_last_strides),       ONCE(descriptions),     {0}};
  return run_suite("view", tests, (suite_options){0});
}
