/* Which convolutions CPUs make with images side by side (images.cl): those of many images and channels and few places.
 */
#include "kernels/convolution/convolution.h"

/* As in images.cl. */
enum { TAPS_MOST = 64 };
/* Work-items for each core, so that all end together. */
enum { EACH_CORE = 16 };
/* Places of a block: few enough that a core's cache holds what is packed of them, but so many that results are written
 * some at a time. */
enum { CACHE_BYTES = 1 << 20, PLACES_LEAST = 4 };
/* Weights of a tile that lie far apart along its sums are packed where each serves for so many vectors. */
enum { SERVED = 8 };
/* What it takes to pack a vector and to turn one of results, which go to an image each, in multiplications of one. */
enum { PACKED = 8, TURNED = 32 };

/* As in images.cl. */
typedef struct images {
  int64_t in_places, out_places, apart, pieces, tiles, blocks, places;
  int64_t group, tile, out, in, tap;
} images;

/* Lanes of a vector, vectors side by side, channels: what fills the registers. */
typedef struct tile {
  int64_t vec, wide, channels;
} tile;

static tile tile_of(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  tile t = {.vec = device->vector_width, .wide = 2, .channels = device->vector_width == 16 ? 8 : 4};
  if (dtype->bytes > 4 && t.vec > 4) t.vec /= 2;
  const int64_t vectors = ocl_ceil_divide(s->batch, t.vec);
  if (vectors % 2 != 0 && vectors < 4) t.wide = 1; /* of a pair too much would be empty */
  return t;
}

static double cost_of(const ocl_space *s, const tile *t) {
  const double vectors = (double)(ocl_ceil_divide(s->batch, t->wide * t->vec) * t->wide * s->groups);
  const double products = ocl_met_taps(s, 0) * ocl_met_taps(s, 1) * ocl_met_taps(s, 2) * (double)s->in_channels *
                          (double)ocl_round_up(s->out_channels, t->channels);
  return vectors *
         (products * (t->wide > 1 ? 1 : OCL_NARROW) + PACKED * (double)(s->in_channels * ocl_volume(s->in_size)) +
          TURNED * (double)(s->out_channels * ocl_volume(s->out_size)));
}

static bool is_served(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  return device->is_cpu && dtype->class == OCL_CLASS_FLOAT && ocl_volume(s->taps) <= TAPS_MOST;
}

#define FILES \
  "core/square core/pairs convolution/space convolution/gaps convolution/followed convolution/tile convolution/images"

static void write_head(ocl_text *head, const ocl_dtype *dtype, const tile *t) {
  ocl_head_types(head, dtype, (unsigned)t->vec, 1);
  ocl_text_add(head, "#define D %s\n#define TILE %d\n#define WIDE %d\n#define FORWARD\n", dtype->name, (int)t->channels,
               (int)t->wide);
}

/* Shares the units out, and sets how many work-items there are. */
static void share(ocl_kernel *kernel, ocl_space *s, const graft_device *device) {
  s->per_item = ocl_ceil_divide(s->units, EACH_CORE * (int64_t)device->compute_units);
  ocl_kernel_size(kernel, ocl_ceil_divide(s->units, s->per_item), 1);
}

static graft_status make_rows(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const tile *t, ocl_space s,
                              const images *c) {
  ocl_text head = {0};
  write_head(&head, dtype, t);
  graft_status status = ocl_kernel_make(&f->rows, device, &head, FILES, "pack_images");
  s.units = ocl_ceil_divide(s.batch, t->wide * t->vec) * c->pieces;
  share(&f->rows, &s, device);
  const ocl_argument constants[] = {OCL_VALUE(s), OCL_VALUE(*c)};
  return status == GRAFT_OK ? ocl_kernel_set(&f->rows, OCL_ALL(constants)) : status;
}

static graft_status make_weights(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const tile *t,
                                 ocl_space s, const images *c) {
  ocl_text head = {0};
  write_head(&head, dtype, t);
  graft_status status = ocl_kernel_make(&f->weights, device, &head, FILES, "pack_weights");
  s.units = s.groups * c->tiles * s.in_channels;
  share(&f->weights, &s, device);
  const ocl_argument constants[] = {OCL_VALUE(s), OCL_VALUE(*c)};
  return status == GRAFT_OK ? ocl_kernel_set(&f->weights, OCL_ALL(constants)) : status;
}

/* Whether weights are packed, and where a tile finds them. Nothing is computed in less than four bytes. */
static bool lay_weights(images *c, const ocl_space *s, const ocl_dtype *dtype, const tile *t, int64_t panels) {
  const int64_t taps = ocl_volume(s->taps);
  const double served = (double)panels * ocl_met_taps(s, 0) * ocl_met_taps(s, 1) * ocl_met_taps(s, 2) / (double)taps;
  const bool packs = dtype->bytes < 4 || (s->weight_out < s->weight_in && served >= SERVED);
  c->out = packs ? 1 : s->weight_out;
  c->tap = packs ? t->channels : 1;
  c->in = packs ? taps * c->tap : s->weight_in;
  c->tile = packs ? s->in_channels * c->in : t->channels * s->weight_out;
  c->group = packs ? c->tiles * c->tile : s->weight_group;
  return packs;
}

static graft_status run_forward(const graft_exec *exec, ocl_forward *f, ocl_place work, const ocl_forward_call *call) {
  const int64_t has_bias = call->bias != NULL;
  const graft_tensor_desc *some = call->bias ? call->bias : call->out; /* not looked at where there is none */
  const bool packs = f->weights.handle != NULL;
  const ocl_place packed = {work.buffer, work.offset + f->skip_weights};
  const ocl_place factor = packs ? packed : ocl_place_of(call->weight);
  const ocl_argument rows[] = {OCL_PLACE(work), OCL_TENSOR(call->in)};
  const ocl_argument weights[] = {OCL_PLACE(packed), OCL_TENSOR(call->weight)};
  const ocl_argument convolve[] = {OCL_TENSOR(call->out),   OCL_PLACE(work),     OCL_PLACE(factor),
                                   OCL_TENSOR(some),        OCL_VALUE(has_bias), OCL_TENSOR(call->in),
                                   OCL_TENSOR(call->weight)};
  graft_status status = ocl_launch(&f->rows, exec->stream, OCL_ALL(rows));
  if (status == GRAFT_OK && packs) status = ocl_launch(&f->weights, exec->stream, OCL_ALL(weights));
  return status == GRAFT_OK ? ocl_results_launch(exec, f, call, OCL_ALL(convolve)) : status;
}

static int64_t places_of(const ocl_space *s, const ocl_dtype *dtype, const tile *t) {
  const int64_t bytes = s->in_channels * t->wide * t->vec * (dtype->bytes < 4 ? 4 : dtype->bytes);
  const int64_t places = bytes > 0 ? CACHE_BYTES / bytes : t->vec;
  return places > t->vec ? t->vec : places > PLACES_LEAST ? places : PLACES_LEAST;
}

graft_status ocl_images_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                double other) {
  const tile t = tile_of(device, dtype, &s);
  if (!is_served(device, dtype, &s) || cost_of(&s, &t) >= other) return GRAFT_UNIMPLEMENTED;
  images c = {.in_places = ocl_volume(s.in_size), .out_places = ocl_volume(s.out_size)};
  const int64_t lanes = t.wide * t.vec, panels = ocl_ceil_divide(s.batch, lanes);
  c.apart = (s.in_channels | 1) * lanes; /* places of a window don't meet in one set of a cache */
  c.pieces = ocl_ceil_divide(s.groups * s.in_channels * c.in_places, t.vec);
  c.tiles = ocl_ceil_divide(s.out_channels, t.channels);
  c.places = places_of(&s, dtype, &t);
  c.blocks = ocl_ceil_divide(c.out_places, c.places);
  const bool packs = lay_weights(&c, &s, dtype, &t, panels);
  f->run = run_forward;
  f->exact = true;
  f->skip_weights = ocl_values_bytes(panels * s.groups * c.in_places * c.apart, dtype);
  f->bytes = f->skip_weights + (packs ? ocl_values_bytes(s.groups * c.group, dtype) : 0);
  graft_status status = make_rows(f, device, dtype, &t, s, &c);
  if (status == GRAFT_OK && packs) status = make_weights(f, device, dtype, &t, s, &c);
  ocl_text head = {0};
  write_head(&head, dtype, &t);
  if (status != GRAFT_OK) {
    ocl_text_free(&head);
    return status;
  }
  status = ocl_results_make(f, &f->convolve, device, &head, false, FILES, "convolve_images");
  s.units = panels * s.groups * c.blocks * c.tiles;
  share(&f->convolve, &s, device);
  const ocl_argument constants[] = {OCL_VALUE(s), OCL_VALUE(c)};
  if (status == GRAFT_OK) status = ocl_kernel_set(&f->convolve, OCL_ALL(constants));
  return status == GRAFT_OK ? ocl_results_set(f, &f->convolve) : status;
}
