/* Values, gradients and gradients of gradients as PyTorch computes them in double (tests/fixtures), against reference
 * kernels and gradient formulas. Run alone with GRAFT_FIXTURES_OP='aten::add.*'; see fixtures/reader.h. */
#include <cjson/cJSON.h>
#include <math.h>

#include "fixtures/reader.h"
#include "graft/autograd.h"
#include "graft/ops.h"
#include "suite.h"

enum { MOST = 24 };
enum { VALUE, GRAD, GRAD2 };

/* Relative to the largest number of the result; per element for pointwise results. Looser where torch itself iterates
 * or cancels. */
static const struct {
  const char *ops;
  double limit;
  int from; /* VALUE: values, too; GRAD: gradients and those of gradients; GRAD2: the latter */
  const char *why;
} looser[] = {
    {"aten::native_*_norm*", 1e-11, VALUE, "a difference of sums that nearly cancel, times 1/sigma"},
    {"aten::hardsigmoid", 4e-8, GRAD, "torch multiplies doubles by 1/6 as a float"},
    {"aten::hardsigmoid_backward", 4e-8, VALUE, "likewise"},
    {"aten::polygamma", 1e-9, VALUE, "torch's trigamma is right to so many digits (psi'(0.5) is pi^2/2)"},
    {"aten::digamma", 1e-9, GRAD, "likewise"},
    {"aten::lgamma", 1e-9, GRAD2, "likewise"},
    {"aten::mvlgamma", 1e-9, GRAD2, "likewise"},
    {"aten::special_bessel_??", 1e-9, VALUE, "torch's are right to so many digits (J0(3) is -0.26005195490193344)"},
    {"prims::bessel_j?", 1e-9, VALUE, "likewise"},
};

static double limit_of(const char *op, int kind) {
  for (size_t i = 0; i < sizeof looser / sizeof *looser; i++)
    if (kind >= looser[i].from && fnmatch(looser[i].ops, op, 0) == 0) return looser[i].limit;
  return 1e-12;
}

/* --- one file: a safetensors header and its data --- */

typedef struct values_file {
  cJSON *header;
  const char *data;
} values_file;

/* An array of the file. */
typedef struct array {
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t numel;
  const void *data;
} array;

static graft_dtype dtype_of(const char *code) {
  char name[16];
  size_t i = 0;
  for (; code[i] && i + 1 < sizeof name; i++)
    name[i] = (char)(code[i] >= 'A' && code[i] <= 'Z' ? code[i] + 32 : code[i]);
  name[i] = 0;
  return graft_dtype_parse(name);
}

/* Array ROW.ROLE.INDEX; false where there is none. */
static bool find(const values_file *file, const char *row, const char *role, uint32_t index, array *a) {
  char key[64];
  snprintf(key, sizeof key, "%s.%s.%u", row, role, index);
  const cJSON *entry = cJSON_GetObjectItemCaseSensitive(file->header, key), *dim;
  if (!entry) return false;
  *a = (array){.dtype = dtype_of(cJSON_GetObjectItem(entry, "dtype")->valuestring), .numel = 1};
  cJSON_ArrayForEach(dim, cJSON_GetObjectItem(entry, "shape")) {
    a->sizes[a->ndim++] = (int64_t)dim->valuedouble;
    a->numel *= (int64_t)dim->valuedouble;
  }
  a->data = file->data + (size_t)cJSON_GetArrayItem(cJSON_GetObjectItem(entry, "data_offsets"), 0)->valuedouble;
  return true;
}

/* --- comparing --- */

typedef struct row {
  const values_file *file;
  const char *key, *line;
  txt_call call;
  fixture_tally *tally;
  graft_tensor *outs[MOST];
  uint32_t nouts;
} row;

static bool close_to(dt_value got, dt_value want, double scale) {
  if (isnan(want.re) || isnan(want.im)) return isnan(got.re) || isnan(got.im);
  if (isinf(want.re) || isinf(want.im)) return got.re == want.re && got.im == want.im;
  return hypotl(got.re - want.re, got.im - want.im) <= scale;
}

static double largest(const array *a) {
  double most = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    dt_value v = dt_load(a->dtype, (const char *)a->data + (uint64_t)i * dt_bytes(a->dtype));
    double size = (double)hypotl(v.re, v.im);
    if (isfinite(size) && size > most) most = size;
  }
  return most;
}

/* The first element that is too far off, or -1. Results that are not double are exact. Results near 0 that others
 * cancel to are held to 1e-14. */
static int64_t first_wrong(const array *want, const char *got, double limit, bool each) {
  bool exact = want->dtype != GRAFT_F64 && want->dtype != GRAFT_C128;
  double most = fmax(largest(want), 0.01);
  for (int64_t i = 0; i < want->numel; i++) {
    uint64_t at = (uint64_t)i * dt_bytes(want->dtype);
    dt_value g = dt_load(want->dtype, got + at), w = dt_load(want->dtype, (const char *)want->data + at);
    double scale = exact ? 0 : limit * (each ? (double)hypotl(w.re, w.im) : most);
    if (!close_to(g, w, scale)) return i;
  }
  return -1;
}

static void wrong(row *r, int kind, const char *what, uint32_t index, const char *text) {
  fixture_disagree(r->tally, kind, "%s\n    %s %u: %s\n", r->line, what, index, text);
}

static void compare(row *r, int kind, const char *what, uint32_t index, graft_tensor *got, const array *want) {
  char text[400], shape[128];
  if (!got) { /* no gradient is a gradient of zero */
    if (largest(want) == 0)
      r->tally->agreed[kind]++;
    else
      wrong(r, kind, what, index, "none, expected one");
    return;
  }
  if (got->dtype != want->dtype || got->ndim != want->ndim ||
      memcmp(got->sizes, want->sizes, (size_t)got->ndim * sizeof *got->sizes) != 0) {
    snprintf(text, sizeof text, "%s in place of %s of rank %d and %lld elements",
             txt_format_tensor(got, shape, sizeof shape), graft_dtype_name(want->dtype), want->ndim,
             (long long)want->numel);
    return wrong(r, kind, what, index, text);
  }
  char *data = malloc((size_t)want->numel * dt_bytes(want->dtype) + 1);
  bool each = kind == VALUE && strcmp(r->call.schema->family, "pointwise") == 0;
  if (graft_tensor_to_host(got, data) != GRAFT_OK) {
    wrong(r, kind, what, index, graft_last_error());
  } else {
    int64_t i = first_wrong(want, data, limit_of(r->call.schema->name, kind), each);
    if (i < 0) {
      r->tally->agreed[kind]++;
    } else {
      dt_value g = dt_load(want->dtype, data + (uint64_t)i * dt_bytes(want->dtype));
      dt_value w = dt_load(want->dtype, (const char *)want->data + (uint64_t)i * dt_bytes(want->dtype));
      snprintf(text, sizeof text, "element %lld is %.17Lg%+.17Lgj, expected %.17Lg%+.17Lgj", (long long)i, g.re, g.im,
               w.re, w.im);
      wrong(r, kind, what, index, text);
    }
  }
  free(data);
}

/* --- one row --- */

static graft_tensor *from_array(const array *a) {
  graft_tensor *tensor = NULL;
  if (graft_tensor_from_host(graft_device_reference(), a->dtype, a->ndim, a->sizes, a->data, &tensor) != GRAFT_OK)
    ck_abort_msg("%s", graft_last_error());
  return tensor;
}

static graft_status fill(void *context, uint32_t index, graft_tensor *tensor) {
  row *r = context;
  array a;
  ck_assert_msg(find(r->file, r->key, "in", index, &a), "%s: no input %u", r->line, index);
  graft_tensor *values = from_array(&a);
  graft_status status = graft_tensor_copy(tensor, values);
  graft_tensor_release(values);
  return status;
}

static bool is_active(const row *r, uint32_t index) {
  array a;
  return find(r->file, r->key, "grad", index, &a) || find(r->file, r->key, "grad2", index, &a);
}

/* Makes the parsed call and runs it; of its inputs all that have a gradient require one, or one alone. */
enum { ALL = -1 };
static graft_status run(row *r, int64_t alone) {
  graft_status status = txt_make(&r->call, graft_device_reference(), fill, r);
  for (uint32_t i = 0; status == GRAFT_OK && i < r->call.ntensors; i++)
    if (is_active(r, i) && (alone == ALL || i == alone))
      status = graft_tensor_set_requires_grad(r->call.tensors[i], true);
  graft_meta metas[MOST];
  if (status == GRAFT_OK)
    status = graft_infer(r->call.schema->id, r->call.args, r->call.nargs, metas, sizeof *metas, MOST, &r->nouts);
  return status ? status : graft_call(r->call.schema->id, r->call.args, r->call.nargs, r->outs, r->nouts);
}

static row opened(const values_file *file, const char *key, const char *line) {
  row r = {.file = file, .key = key, .line = line};
  fixture_current = line;
  ck_assert_msg(txt_parse_call(line, NULL, &r.call) == GRAFT_OK, "%s", graft_last_error());
  return r;
}

static void closed(row *r) {
  for (uint32_t i = 0; i < r->nouts; i++) graft_tensor_release(r->outs[i]);
  txt_free(&r->call);
}

static void check_values(row *r) {
  array want;
  for (uint32_t i = 0; i < r->nouts; i++) {
    if (find(r->file, r->key, "out", i, &want)) {
      if (r->outs[i])
        compare(r, VALUE, "output", i, r->outs[i], &want);
      else
        wrong(r, VALUE, "output", i, "none, expected one");
    }
  }
  if (find(r->file, r->key, "out", r->nouts, &want)) wrong(r, VALUE, "output", r->nouts, "not among the outputs");
  for (uint32_t i = 0; i < r->call.ntensors; i++)
    if (find(r->file, r->key, "after", i, &want)) compare(r, VALUE, "written input", i, r->call.tensors[i], &want);
}

/* The tensors that have array ROLE: their numbers and themselves. */
typedef struct picked {
  uint32_t count, index[MOST];
  graft_tensor *tensor[MOST];
} picked;

static void pick(picked *p, uint32_t index, graft_tensor *tensor) {
  p->index[p->count] = index;
  p->tensor[p->count++] = tensor;
}

static void release(picked *p) {
  for (uint32_t i = 0; i < p->count; i++) graft_tensor_release(p->tensor[i]);
}

/* The outputs that have a cotangent, and these. */
static void pick_roots(const row *r, picked *roots, picked *cotangents) {
  array a;
  for (uint32_t i = 0; i < r->nouts; i++) {
    if (!find(r->file, r->key, "cotangent", i, &a) || !r->outs[i]) continue;
    pick(roots, i, r->outs[i]);
    pick(cotangents, i, from_array(&a));
  }
}

/* The gradients of the inputs, as far as they have an array of them; the caller releases them. */
static bool check_first(row *r, const char *what, const picked *roots, const picked *cotangents, const picked *inputs,
                        graft_backward_flags flags, graft_tensor **grads) {
  array a;
  graft_status status =
      graft_grad(roots->tensor, cotangents->tensor, roots->count, inputs->tensor, inputs->count, flags, grads);
  if (status != GRAFT_OK) {
    wrong(r, GRAD, what, inputs->index[0], graft_last_error());
    return false;
  }
  for (uint32_t i = 0; i < inputs->count; i++)
    if (find(r->file, r->key, "grad", inputs->index[i], &a)) compare(r, GRAD, what, inputs->index[i], grads[i], &a);
  return true;
}

/* Gradients of <gradient, direction> with respect to the inputs and the cotangents. */
static void check_second(row *r, const picked *inputs, const picked *cotangents, graft_tensor *const *grads) {
  picked directions = {0}, with = *inputs;
  graft_tensor *roots[MOST], *seconds[2 * MOST] = {NULL};
  array a;
  for (uint32_t i = 0; i < inputs->count; i++) {
    if (!grads[i] || !graft_tensor_requires_grad(grads[i])) continue;
    if (!find(r->file, r->key, "direction", inputs->index[i], &a)) continue;
    roots[directions.count] = grads[i];
    pick(&directions, inputs->index[i], from_array(&a));
  }
  for (uint32_t i = 0; i < cotangents->count; i++) pick(&with, cotangents->index[i], cotangents->tensor[i]);
  graft_status status = GRAFT_OK;
  if (directions.count)
    status = graft_grad(roots, directions.tensor, directions.count, with.tensor, with.count, 0, seconds);
  if (status != GRAFT_OK) {
    wrong(r, GRAD2, "second gradient", 0, graft_last_error());
  } else {
    for (uint32_t i = 0; i < with.count; i++) {
      bool input = i < inputs->count;
      if (!find(r->file, r->key, input ? "grad2" : "grad2_cotangent", with.index[i], &a)) continue;
      compare(r, GRAD2, input ? "second gradient" : "second gradient of cotangent", with.index[i], seconds[i], &a);
    }
  }
  for (uint32_t i = 0; i < with.count; i++) graft_tensor_release(seconds[i]);
  release(&directions);
}

/* --- what a gradient does not depend on: which others are asked for --- */

/* The gradient of <gradient, direction> of one input by that input; NULL where there is none. */
static graft_tensor *own_second(row *r, graft_tensor *grad, graft_tensor *input, uint32_t index) {
  graft_tensor *second = NULL;
  array a;
  if (!grad || !graft_tensor_requires_grad(grad) || !find(r->file, r->key, "direction", index, &a)) return NULL;
  graft_tensor *direction = from_array(&a);
  if (graft_grad(&grad, &direction, 1, &input, 1, GRAFT_BACKWARD_RETAIN_GRAPH, &second) != GRAFT_OK)
    wrong(r, GRAD2, "second gradient by input", index, graft_last_error());
  graft_tensor_release(direction);
  return second;
}

/* As what was computed beside the others, which PyTorch's arrays hold, has it. */
static void compare_seconds(row *r, uint32_t index, graft_tensor *got, graft_tensor *beside) {
  if (!got && !beside) return;
  graft_tensor *some = beside ? beside : got;
  array want = {.dtype = some->dtype, .ndim = some->ndim, .numel = graft_tensor_numel(some)};
  memcpy(want.sizes, some->sizes, (size_t)some->ndim * sizeof *want.sizes);
  char *data = calloc((size_t)want.numel + 1, dt_bytes(want.dtype)); /* none is one of zeros */
  want.data = data;
  if (beside && graft_tensor_to_host(beside, data) != GRAFT_OK)
    wrong(r, GRAD2, "second gradient beside others", index, graft_last_error());
  else
    compare(r, GRAD2, "second gradient by input alone", index, got, &want);
  free(data);
}

/* The same call once more with one input alone that requires a gradient, and cotangents that do not. */
static void check_alone(const row *beside, uint32_t index, bool second, graft_tensor *second_beside) {
  row r = opened(beside->file, beside->key, beside->line);
  r.tally = beside->tally;
  picked inputs = {0}, roots = {0}, cotangents = {0};
  graft_tensor *plain = NULL, *grad = NULL, *own = NULL;
  graft_status status = run(&r, index);
  pick(&inputs, index, r.call.tensors[index]);
  if (status == GRAFT_OK)
    pick_roots(&r, &roots, &cotangents);
  else
    wrong(&r, GRAD, "call for input alone", index, graft_last_error());
  if (status == GRAFT_OK)
    check_first(&r, "gradient of input alone", &roots, &cotangents, &inputs, GRAFT_BACKWARD_RETAIN_GRAPH, &plain);
  if (status == GRAFT_OK && second &&
      check_first(&r, "gradient, with a graph, of input alone", &roots, &cotangents, &inputs,
                  GRAFT_BACKWARD_CREATE_GRAPH, &grad)) {
    own = own_second(&r, grad, inputs.tensor[0], index);
    compare_seconds(&r, index, own, second_beside);
  }
  graft_tensor_release(plain), graft_tensor_release(grad), graft_tensor_release(own);
  release(&cotangents);
  closed(&r);
}

/* A gradient is the sum of those by one output each. */
static void check_roots_alone(row *r, const picked *roots, const picked *cotangents, const picked *inputs) {
  array a;
  for (uint32_t i = 0; i < inputs->count; i++) {
    if (!find(r->file, r->key, "grad", inputs->index[i], &a)) continue;
    graft_tensor *total = NULL, *part = NULL, *sum = NULL;
    graft_status status = GRAFT_OK;
    for (uint32_t k = 0; status == GRAFT_OK && k < roots->count; k++) {
      status = graft_grad(&roots->tensor[k], &cotangents->tensor[k], 1, &inputs->tensor[i], 1,
                          GRAFT_BACKWARD_RETAIN_GRAPH, &part);
      if (status == GRAFT_OK && total && part) {
        status = graft_op_add_Tensor(total, part, graft_scalar_int(1), &sum);
        graft_tensor_release(total), graft_tensor_release(part);
        total = sum;
      } else if (part) {
        total = part;
      }
      part = sum = NULL;
    }
    if (status == GRAFT_OK)
      compare(r, GRAD, "sum by outputs of the gradient", inputs->index[i], total, &a);
    else
      wrong(r, GRAD, "gradient by one output", inputs->index[i], graft_last_error());
    graft_tensor_release(total);
  }
}

static void check_gradients(row *r) {
  picked inputs = {0}, roots = {0}, cotangents = {0};
  graft_tensor *grads[MOST] = {NULL}, *plain[MOST] = {NULL}, *seconds[MOST] = {NULL};
  array a;
  bool second = false;
  for (uint32_t i = 0; i < r->call.ntensors; i++) {
    if (is_active(r, i)) pick(&inputs, i, r->call.tensors[i]);
    second = second || find(r->file, r->key, "direction", i, &a);
  }
  pick_roots(r, &roots, &cotangents);
  if (inputs.count && roots.count) {
    check_first(r, "gradient", &roots, &cotangents, &inputs, GRAFT_BACKWARD_RETAIN_GRAPH, plain);
    if (roots.count > 1) check_roots_alone(r, &roots, &cotangents, &inputs);
    for (uint32_t i = 0; second && i < cotangents.count; i++)
      graft_tensor_set_requires_grad(cotangents.tensor[i], true);
    if (second &&
        check_first(r, "gradient, with a graph,", &roots, &cotangents, &inputs, GRAFT_BACKWARD_CREATE_GRAPH, grads)) {
      for (uint32_t i = 0; i < inputs.count; i++)
        seconds[i] = own_second(r, grads[i], inputs.tensor[i], inputs.index[i]);
      check_second(r, &inputs, &cotangents, grads);
    }
    for (uint32_t i = 0; i < inputs.count; i++) check_alone(r, inputs.index[i], second, seconds[i]);
  }
  for (uint32_t i = 0; i < inputs.count; i++) {
    graft_tensor_release(grads[i]), graft_tensor_release(plain[i]), graft_tensor_release(seconds[i]);
  }
  release(&cotangents);
}

static void check_row(row *r) {
  if (run(r, ALL) != GRAFT_OK) return wrong(r, VALUE, "call", 0, graft_last_error());
  check_values(r);
  check_gradients(r);
}

static void judge_row(const values_file *file, const char *key, const char *line) {
  row r = opened(file, key, line);
  if (fixture_wanted(r.call.schema)) {
    r.tally = fixture_tally_of(r.call.schema);
    if (fixture_has_rule(r.call.schema))
      check_row(&r);
    else
      r.tally->disagreed[0]++;
  }
  closed(&r);
}

static void judge_file(const char *path) {
  size_t size;
  char *raw = fixture_read(path, &size);
  uint64_t length = 0;
  if (raw && size > 8) memcpy(&length, raw, 8);
  values_file file = {length && length < size ? cJSON_ParseWithLength(raw + 8, length) : NULL, raw + 8 + length};
  ck_assert_msg(file.header != NULL, "%s is no safetensors file", path);
  const cJSON *item;
  cJSON_ArrayForEach(item, cJSON_GetObjectItem(file.header, "__metadata__")) {
    if (item->string[0] >= '0' && item->string[0] <= '9') judge_row(&file, item->string, item->valuestring);
  }
  cJSON_Delete(file.header);
  free(raw);
}

START_TEST(test_values) {
  static const char *const kinds[] = {"values", "gradients", "second"};
  ck_assert_msg(fixture_each(".values.zst", judge_file) > 0, "no fixtures in %s; `./run fixtures` makes them",
                GRAFT_FIXTURES_DIR);
  unsigned bad = fixture_report(kinds, 3);
  ck_assert_msg(bad == 0, "%u disagreements with PyTorch", bad);
}
END_TEST

int main(void) {
  fixture_name_crashes();
  const suite_test tests[] = {ONCE(test_values), {0}};
  return run_suite("fixtures_values", tests, (suite_options){.timeout_s = 600, .one_process = true});
}
