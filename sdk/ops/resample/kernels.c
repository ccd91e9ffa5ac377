/* Resampling: which elements of a dim an element of the result is made of, and the kernels over these. */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/resample/resample.h"

/* --- taps --- */

enum { MOST_DIMS = 3 };

/* One dim of a call. */
typedef struct dim {
  resample_kind kind;
  int64_t in, out, before; /* before: padding in front */
  double scale;            /* as the caller gave it; 0: from the sizes */
  bool align;
} dim;

/* Taps of result element o: indices[first[o]] to indices[first[o + 1] - 1], with weights. */
typedef struct taps {
  int64_t *first, *indices;
  ref_real *weights;
} taps;

static int64_t clamped(int64_t i, int64_t size) {
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* Indices are found in single precision whatever the dtype, as accelerators do. */
static int64_t nearest(const dim *d, int64_t o) {
  float scale = d->scale > 0 ? (float)(1 / d->scale) : (float)d->in / (float)d->out;
  float at = d->kind == RESAMPLE_EXACT ? ((float)o + 0.5f) * scale : (float)o * scale;
  return clamped((int64_t)floorf(at), d->in);
}

static double position(const dim *d, int64_t o) {
  if (d->align) return d->out > 1 ? (double)(d->in - 1) / (double)(d->out - 1) * (double)o : 0;
  double scale = d->scale > 0 ? 1 / d->scale : (double)d->in / (double)d->out;
  double at = scale * ((double)o + 0.5) - 0.5;
  return at < 0 ? 0 : at;
}

static int64_t reflected(int64_t i, int64_t size) {
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

/* The range of an adaptive window. */
static int64_t window_begin(const dim *d, int64_t o) {
  return o * d->in / d->out;
}
static int64_t window_end(const dim *d, int64_t o) {
  return ((o + 1) * d->in + d->out - 1) / d->out;
}

static int64_t count_taps(const dim *d, int64_t o) {
  if (d->kind == RESAMPLE_ADAPTIVE) return window_end(d, o) - window_begin(d, o);
  return d->kind == RESAMPLE_LINEAR ? 2 : 1;
}

static void fill_taps(const dim *d, int64_t o, int64_t count, int64_t *indices, ref_real *weights) {
  if (d->kind == RESAMPLE_LINEAR) {
    double at = d->in == d->out && !(d->scale > 0) ? (double)o : position(d, o);
    int64_t low = clamped((int64_t)at, d->in);
    ref_real high = at - (double)low > 1 ? 1 : at - (double)low;
    indices[0] = low;
    indices[1] = low + (low < d->in - 1);
    weights[0] = 1 - high;
    weights[1] = high;
    return;
  }
  for (int64_t k = 0; k < count; k++) {
    weights[k] = 1 / (ref_real)count;
    indices[k] = d->kind == RESAMPLE_ADAPTIVE    ? window_begin(d, o) + k
                 : d->kind == RESAMPLE_REFLECT   ? reflected(o - d->before, d->in)
                 : d->kind == RESAMPLE_REPLICATE ? clamped(o - d->before, d->in)
                                                 : nearest(d, o);
  }
}

static void free_taps(taps *t) {
  free(t->first);
  free(t->indices);
  free(t->weights);
}

static bool make_taps(const dim *d, taps *t) {
  int64_t total = 0;
  t->first = calloc((size_t)d->out + 1, sizeof *t->first);
  for (int64_t o = 0; t->first && o < d->out; o++) {
    total += count_taps(d, o);
    t->first[o + 1] = total;
  }
  t->indices = calloc((size_t)total + 1, sizeof *t->indices);
  t->weights = calloc((size_t)total + 1, sizeof *t->weights);
  if (!t->first || !t->indices || !t->weights) return false;
  for (int64_t o = 0; o < d->out; o++) {
    int64_t first = t->first[o];
    fill_taps(d, o, t->first[o + 1] - first, t->indices + first, t->weights + first);
  }
  return true;
}

/* --- a call, from its args struct --- */

typedef struct resampling {
  const resample_row *row;
  const graft_tensor_desc *from, *to; /* from: self or grad_output */
  dim dims[MOST_DIMS];                /* those missing in front have size 1 */
  taps taps[MOST_DIMS];
} resampling;

static const void *field(const void *args, const op_schema *schema, const char *name) {
  for (int i = 0; i < schema->nargs; i++) {
    if (strcmp(schema->args[i].name, name) == 0) return (const char *)args + schema->args[i].offset;
  }
  return NULL;
}

static double scale_of(const void *args, const op_schema *schema, int d, int dims) {
  static const char *const names[MOST_DIMS] = {"scales_d", "scales_h", "scales_w"};
  const double *const *scale = field(args, schema, dims == 1 ? "scales" : names[MOST_DIMS - dims + d]);
  return scale && *scale ? **scale : 0;
}

static resampling resampling_of(const void *args) {
  const op_schema *schema = op_schema_of(((const graft_args *)args)->op_id);
  resampling r = {.row = resample_row_of(schema->id)};
  r.from = *(const graft_tensor_desc *const *)((const char *)args + schema->args[0].offset);
  r.to = *(const graft_tensor_desc *const *)((const char *)args + schema->rets[0].offset);
  const graft_int_list *padding = field(args, schema, "padding");
  const uint8_t *align = field(args, schema, "align_corners");
  const graft_tensor_desc *in = r.row->backward ? r.to : r.from, *out = r.row->backward ? r.from : r.to;
  for (int d = 0; d < MOST_DIMS; d++) {
    int own = d - (MOST_DIMS - r.row->dims), at = in->dl.ndim - MOST_DIMS + d;
    r.dims[d] = (dim){.kind = RESAMPLE_REPLICATE, .in = 1, .out = 1};
    if (own < 0) continue;
    r.dims[d] = (dim){.kind = r.row->kind,
                      .in = in->dl.shape[at],
                      .out = out->dl.shape[at],
                      .scale = scale_of(args, schema, own, r.row->dims),
                      .align = align && *align};
    if (padding) r.dims[d].before = padding->items[2 * (MOST_DIMS - 1 - d)];
  }
  return r;
}

/* --- kernels --- */

/* Where the taps of result element `at` lie in its plane, and their weights; returns how many. */
static int64_t collect(const resampling *r, int64_t at, int64_t *places, ref_real *weights) {
  int64_t o[MOST_DIMS], count = 0;
  const dim *d = r->dims;
  for (int k = MOST_DIMS - 1; k >= 0; k--) {
    o[k] = at % d[k].out;
    at /= d[k].out;
  }
  const taps *t = r->taps;
  for (int64_t a = t[0].first[o[0]]; a < t[0].first[o[0] + 1]; a++) {
    for (int64_t b = t[1].first[o[1]]; b < t[1].first[o[1] + 1]; b++) {
      for (int64_t c = t[2].first[o[2]]; c < t[2].first[o[2] + 1]; c++) {
        places[count] = (t[0].indices[a] * d[1].in + t[1].indices[b]) * d[2].in + t[2].indices[c];
        weights[count++] = t[0].weights[a] * t[1].weights[b] * t[2].weights[c];
      }
    }
  }
  return count;
}

static int64_t most_taps(const resampling *r) {
  int64_t most = 1;
  for (int d = 0; d < MOST_DIMS; d++) {
    int64_t widest = 0;
    for (int64_t o = 0; o < r->dims[d].out; o++) {
      int64_t count = r->taps[d].first[o + 1] - r->taps[d].first[o];
      widest = count > widest ? count : widest;
    }
    most *= widest;
  }
  return most;
}

/* What a plane's walk needs room for. */
typedef struct room {
  int64_t *places;
  ref_real *weights, *terms;
} room;

static void gather(const resampling *r, graft_dtype dtype, const ref_real *from, ref_real *to, int64_t count,
                   const room *room) {
  for (int64_t at = 0; at < count; at++) {
    int64_t n = collect(r, at, room->places, room->weights);
    for (int64_t k = 0; k < n; k++) room->terms[k] = room->weights[k] * from[room->places[k]];
    to[at] = n == 1 ? room->terms[0] : ref_sum(dtype, room->terms, 1, n);
  }
}

static void scatter(const resampling *r, graft_dtype dtype, const ref_real *from, ref_real *to, int64_t count,
                    const room *room) {
  for (int64_t at = 0; at < count; at++) {
    int64_t n = collect(r, at, room->places, room->weights);
    for (int64_t k = 0; k < n; k++) {
      ref_real *sum = &to[room->places[k]];
      *sum = ref_sum(dtype, (ref_real[]){*sum, room->weights[k] * from[at]}, 1, 2);
    }
  }
}

static void run(const resampling *r, const ref_array *from, ref_array *to, const room *room) {
  int64_t in = 1, out = 1;
  for (int d = 0; d < MOST_DIMS; d++) in *= r->dims[d].in, out *= r->dims[d].out;
  int64_t from_size = r->row->backward ? out : in, to_size = r->row->backward ? in : out;
  graft_dtype dtype = r->to->dl.dtype;
  for (int64_t p = 0; to_size && p < to->count / to_size; p++) {
    void (*walk)(const resampling *, graft_dtype, const ref_real *, ref_real *, int64_t, const struct room *) =
        r->row->backward ? scatter : gather;
    walk(r, dtype, from->re + p * from_size, to->re + p * to_size, out, room);
    if (to->im) walk(r, dtype, from->im + p * from_size, to->im + p * to_size, out, room);
  }
}

graft_status ref_resample(const graft_exec *exec, const void *args) {
  (void)exec;
  resampling r = resampling_of(args);
  ref_array from = ref_read(r.from), to = ref_new(ref_numel(r.to), from.im != NULL);
  bool ok = from.re && to.re;
  for (int d = 0; d < MOST_DIMS; d++) ok &= make_taps(&r.dims[d], &r.taps[d]);
  size_t most = ok ? (size_t)most_taps(&r) + 1 : 1;
  room room = {calloc(most, sizeof *room.places), calloc(most, sizeof *room.weights), calloc(most, sizeof *room.terms)};
  ok &= room.places && room.weights && room.terms;
  if (ok) {
    run(&r, &from, &to, &room);
    ref_write(r.to, &to);
  }
  free(room.places);
  free(room.weights);
  free(room.terms);
  for (int d = 0; d < MOST_DIMS; d++) free_taps(&r.taps[d]);
  ref_free(&from);
  ref_free(&to);
  return ok ? GRAFT_OK : ref_no_memory();
}
