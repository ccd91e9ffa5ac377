/* See sizes.h. */
#include "graph/sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/grow.h"

const gr_sizes gr_no_sizes = {0};

/* --- arithmetic --- */

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static bool divides(int64_t a, int64_t b) {
  return b != 0 && !(a == INT64_MIN && b == -1);
}

/* False: there is no such number. */
static bool compute(graft_size_op op, int64_t a, int64_t b, int64_t *to) {
  switch (op) {
    case GRAFT_SIZE_ADD: return !__builtin_add_overflow(a, b, to);
    case GRAFT_SIZE_SUB: return !__builtin_sub_overflow(a, b, to);
    case GRAFT_SIZE_MUL: return !__builtin_mul_overflow(a, b, to);
    case GRAFT_SIZE_DIV: return divides(a, b) && (*to = floor_div(a, b), true);
    case GRAFT_SIZE_MOD: return divides(a, b) && (*to = a - floor_div(a, b) * b, true);
    case GRAFT_SIZE_MIN: return *to = a < b ? a : b, true;
    case GRAFT_SIZE_MAX: return *to = a > b ? a : b, true;
    default: return false;
  }
}

bool gr_size_compute(const gr_sizes *sizes, uint32_t i, int64_t *values) {
  const gr_size *s = &sizes->items[i];
  const int64_t a = gr_size_value(sizes, values, s->left), b = gr_size_value(sizes, values, s->right);
  return compute(s->op, a, b, &values[i]) && values[i] >= gr_size_name(GR_SIZES_MOST);
}

graft_status gr_size_refuse(const gr_sizes *sizes, uint32_t i, const int64_t *values) {
  char formula[GR_SIZE_TEXT], open[GR_SIZE_TEXT];
  return err_set(GRAFT_INVALID_ARGUMENT, "the size %s is no number that a size can be where %s",
                 gr_size_text(sizes, gr_size_name(i), formula, sizeof formula),
                 gr_sizes_of_text(sizes, values, gr_size_name(i), open, sizeof open));
}

static graft_status evaluate(const gr_sizes *sizes, uint32_t i, int64_t *values) {
  return gr_size_compute(sizes, i, values) ? GRAFT_OK : gr_size_refuse(sizes, i, values);
}

graft_status gr_sizes_evaluate(const gr_sizes *sizes, int64_t *values) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < sizes->count && !status; i++) {
    if (sizes->items[i].op != GR_SIZE_OPEN) status = evaluate(sizes, i, values);
  }
  return status;
}

/* --- the table --- */

static uint32_t depth_of(const gr_sizes *sizes, int64_t number) {
  return gr_is_open(sizes, number) ? sizes->items[gr_size_entry(number)].depth : 0;
}

graft_status gr_sizes_add(gr_sizes *sizes, const gr_size *entry, int64_t example, int64_t *size) {
  const uint32_t left = depth_of(sizes, entry->left), right = depth_of(sizes, entry->right), i = sizes->count;
  const uint32_t depth = (left > right ? left : right) + 1;
  if (i == GR_SIZES_MOST || depth > GR_SIZE_DEPTH_MAX)
    return err_set(GRAFT_UNIMPLEMENTED, "a graph has room for %d sizes, each of formulas at most %d deep",
                   (int)GR_SIZES_MOST, (int)GR_SIZE_DEPTH_MAX);
  graft_status status = gr_grow((void **)&sizes->items, i, sizeof *sizes->items);
  if (!status) status = gr_grow((void **)&sizes->examples, i, sizeof *sizes->examples);
  if (status) return status;
  sizes->items[i] = *entry;
  sizes->items[i].depth = depth;
  sizes->examples[i] = example;
  sizes->count++;
  if (entry->op != GR_SIZE_OPEN) status = evaluate(sizes, i, sizes->examples);
  if (status)
    sizes->count--;
  else
    *size = gr_size_name(i);
  return status;
}

graft_status gr_sizes_copy(const gr_sizes *from, gr_sizes *to) {
  *to = (gr_sizes){.items = gr_grown_copy(from->items, from->count, sizeof *from->items),
                   .examples = gr_grown_copy(from->examples, from->count, sizeof *from->examples),
                   .count = from->count};
  if (!to->items || !to->examples) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the sizes of a graph");
  return GRAFT_OK;
}

void gr_sizes_free(gr_sizes *sizes) {
  free(sizes->items);
  free(sizes->examples);
}

/* --- text --- */

typedef struct printer {
  const gr_sizes *sizes;
  char *text;
  size_t room, at;
} printer;

static void put(printer *p, const char *text) {
  if (p->at + 1 >= p->room) return;
  int length = snprintf(p->text + p->at, p->room - p->at, "%s", text);
  p->at += length > 0 ? (size_t)length : 0;
  if (p->at >= p->room) p->at = p->room - 1;
}

static void put_number(printer *p, int64_t number) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRId64, number);
  put(p, digits);
}

/* `inside`: of another formula, where one needs brackets. A text that is full ends it, however large a formula is. */
static void put_size(printer *p, int64_t number, bool inside) {
  static const char *const signs[] = {
      [GRAFT_SIZE_ADD] = " + ", [GRAFT_SIZE_SUB] = " - ", [GRAFT_SIZE_MUL] = "*", [GRAFT_SIZE_DIV] = " // ",
      [GRAFT_SIZE_MOD] = " % ", [GRAFT_SIZE_MIN] = ", ",  [GRAFT_SIZE_MAX] = ", "};
  if (p->at + 1 >= p->room) return;
  if (!gr_is_open(p->sizes, number)) {
    put_number(p, number);
    return;
  }
  const gr_size *s = &p->sizes->items[gr_size_entry(number)];
  if (s->op == GR_SIZE_OPEN) {
    put(p, s->name);
    return;
  }
  const bool function = s->op == GRAFT_SIZE_MIN || s->op == GRAFT_SIZE_MAX;
  if (function) put(p, s->op == GRAFT_SIZE_MIN ? "min" : "max");
  if (function || inside) put(p, "(");
  put_size(p, s->left, !function);
  put(p, signs[s->op]);
  put_size(p, s->right, !function);
  if (function || inside) put(p, ")");
}

const char *gr_size_text(const gr_sizes *sizes, int64_t number, char *text, size_t room) {
  printer p = {sizes, text, room, 0};
  *text = 0;
  put_size(&p, number, false);
  return text;
}

const char *gr_shape_text(const gr_sizes *sizes, int32_t ndim, const int64_t *numbers, char *text, size_t room) {
  printer p = {sizes, text, room, 0};
  *text = 0;
  put(&p, "[");
  for (int32_t i = 0; i < ndim; i++) {
    if (i) put(&p, ",");
    put_size(&p, numbers[i], false);
  }
  put(&p, "]");
  return text;
}

/* `used` NULL: all. */
static const char *text_of_open(const gr_sizes *sizes, const int64_t *values, const bool *used, char *text,
                                size_t room) {
  printer p = {sizes, text, room, 0};
  *text = 0;
  for (uint32_t i = 0; i < sizes->count; i++) {
    if (sizes->items[i].op != GR_SIZE_OPEN || (used && !used[i])) continue;
    if (p.at) put(&p, ", ");
    put(&p, sizes->items[i].name);
    put(&p, " = ");
    put_number(&p, values[i]);
  }
  return text;
}

const char *gr_sizes_text(const gr_sizes *sizes, const int64_t *values, char *text, size_t room) {
  return text_of_open(sizes, values, NULL, text, room);
}

static void mark(const gr_sizes *sizes, int64_t number, bool *used) {
  if (gr_is_open(sizes, number)) used[gr_size_entry(number)] = true;
}

const char *gr_sizes_of_text(const gr_sizes *sizes, const int64_t *values, int64_t number, char *text, size_t room) {
  bool used[GR_SIZES_MOST] = {false};
  mark(sizes, number, used);
  for (uint32_t i = sizes->count; i-- > 0;) { /* an entry is of earlier ones */
    if (!used[i] || sizes->items[i].op == GR_SIZE_OPEN) continue;
    mark(sizes, sizes->items[i].left, used);
    mark(sizes, sizes->items[i].right, used);
  }
  return text_of_open(sizes, values, used, text, room);
}
