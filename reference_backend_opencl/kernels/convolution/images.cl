/* Convolutions of many images on CPUs, after core/square.cl, space.cl, gaps.cl and followed.cl: a vector is of one place of
 * VEC images. They meet the same taps of the window there, so that a place has a list of these, and of the places of the
 * input behind them: nothing is multiplied outside the input, or between the elements of a transposed convolution's, and no
 * vector has a tail but where images end.
 *
 * A work-item makes TILE channels of WIDE vectors in registers, for some places one after the other; these are then turned,
 * so that results go out place by place. The input is packed to [panel of WIDE vectors][group][place][channel][image]. The
 * weights are read as they lie, or packed first: where their dtype is no compute type, and where a tile's are far apart.
 *
 * The head defines D, TILE, WIDE and FORWARD. */
#define IMAGES (WIDE * VEC)
#define MOST 64 /* taps of a window */
#define SPAN 128 /* products, padding's too, as in convolution.cl: so the bits are the same */

typedef struct {
  long in_places, out_places, apart; /* elements from a packed place to the next */
  long pieces;                       /* vectors of an image */
  long tiles, blocks, places;        /* of output channels; of so many places, at most VEC */
  long group, tile, out, in, tap;    /* strides of the weights as they are read */
} images;

/* ---- Packing ---- */

KERNEL pack_images(PLACE(work), CONST_PLACE(in), space s, images c) {
  const long elements = s.groups * s.in_channels * c.in_places;
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    const long first = unit % c.pieces * VEC, panel = unit / c.pieces;
    const int count = (int)min((long)VEC, elements - first);
    __global CT *to = (__global CT *)(work + offset_work) + panel * s.groups * c.in_places * c.apart;
    long at[VEC], place = first % c.in_places, channel = first / c.in_places % s.in_channels;
    long group = first / c.in_places / s.in_channels;
    for (int j = 0; j < VEC; j++) {
      at[j] = (group * c.in_places + place) * c.apart + channel * IMAGES;
      if (++place == c.in_places) place = 0, channel++;
      if (channel == s.in_channels) channel = 0, group++;
    }
    for (int w = 0; w < WIDE; w++) {
      VT square[VEC];
#pragma unroll
      for (int i = 0; i < VEC; i++) {
        const long image = min(panel * IMAGES + w * VEC + i, s.batch - 1); /* beyond the last, the last again */
        square[i] = get_value(CONST_POINTER(D, in) + image * elements + first, count);
      }
      turn_square(square);
#pragma unroll
      for (int j = 0; j < VEC; j++) {
        if (j < count) VSTORE(square[j], to + at[j] + w * VEC);
      }
    }
  }
}

/* Weights as values, to [group][tile of channels][input channel][tap][TILE]; s.units input channels of a tile. */
KERNEL pack_weights(PLACE(work), CONST_PLACE(weight), space s, images c) {
  const long taps = s.taps[0] * s.taps[1] * s.taps[2];
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    const long channel = unit % s.in_channels, rest = unit / s.in_channels, tile = rest % c.tiles * TILE;
    __global const RAW(D) *from =
        CONST_POINTER(D, weight) + rest / c.tiles * s.weight_group + channel * s.weight_in + tile * s.weight_out;
    __global CT *to = (__global CT *)(work + offset_work) + unit * taps * TILE;
    for (int t = 0; t < TILE; t++) {
      __global const RAW(D) *row = from + min((long)t, s.out_channels - 1 - tile) * s.weight_out;
      for (long k = 0; k < taps; k++) to[k * TILE + t] = one_value(row + k);
    }
  }
}

/* ---- The product ---- */

/* The taps that meet an element at a place: where their weights lie, and where the elements' places are packed. */
typedef struct {
  int count;
  long weights[MOST], elements[MOST];
} met_taps;

static void meet_taps(met_taps *m, long place, const space *s, const images *c) {
  const long o2 = place % s->out_size[2], o1 = place / s->out_size[2] % s->out_size[1];
  const long o0 = place / s->out_size[2] / s->out_size[1];
  m->count = 0;
  for (long k0 = 0; k0 < s->taps[0]; k0++) {
    const long i0 = element_at(o0 * s->mul[0] + s->off[0] + k0 * s->tap[0], s->div[0], s->in_size[0]);
    for (long k1 = 0; i0 >= 0 && k1 < s->taps[1]; k1++) {
      const long i1 = element_at(o1 * s->mul[1] + s->off[1] + k1 * s->tap[1], s->div[1], s->in_size[1]);
      for (long k2 = 0; i1 >= 0 && k2 < s->taps[2]; k2++) {
        const long i2 = element_at(o2 * s->mul[2] + s->off[2] + k2 * s->tap[2], s->div[2], s->in_size[2]);
        if (i2 < 0) continue;
        m->weights[m->count] = ((k0 * s->taps[1] + k1) * s->taps[2] + k2) * c->tap;
        m->elements[m->count++] = ((i0 * s->in_size[1] + i1) * s->in_size[2] + i2) * c->apart;
      }
    }
  }
}

/* TILE channels, whose weights begin at `row`, of a place. */
static INLINED void sum_place(VT total[TILE][WIDE], const met_taps *m, __global const CT *x, __global const CT *weights,
                              const long row[TILE], long weight_in, const space *s) {
  const long at_once = max(SPAN / (s->taps[0] * s->taps[1] * s->taps[2]), 1L); /* channels */
  clear_tile(total);
  for (long first = 0; first < s->in_channels; first += at_once) {
    const long end = min(first + at_once, s->in_channels);
    VT sum[TILE][WIDE];
    clear_tile(sum);
    for (long channel = first; channel < end; channel++, x += IMAGES, weights += weight_in) {
      for (int k = 0; k < m->count; k++) {
        __global const CT *of_tap = weights + m->weights[k], *from = x + m->elements[k];
        VT v[WIDE];
#pragma unroll
        for (int w = 0; w < WIDE; w++) v[w] = VLOAD(from + w * VEC);
#pragma unroll
        for (int t = 0; t < TILE; t++) {
#pragma unroll
          for (int w = 0; w < WIDE; w++) sum[t][w] = MULTIPLY_ADD(v[w], (VT)of_tap[row[t]], sum[t][w]);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < TILE * WIDE; t++) total[t / WIDE][t % WIDE] += sum[t / WIDE][t % WIDE];
  }
}

/* Where a block's results go: of `count` places from `first` on. */
typedef struct {
  long panel, group, channel, first;
  int count;
} block;

#ifdef FOLLOWED
#define PUT_PARAMETERS , const followers *f
#define PUT_ARGUMENTS , &f
#else
#define PUT_PARAMETERS
#define PUT_ARGUMENTS
#endif

/* One channel's, of which sums[p] are place p's. */
static void put_channel(PLACE(out), CT added, const VT sums[VEC][WIDE], const block *b, const space *s,
                        const images *c PUT_PARAMETERS) {
  for (int w = 0; w < WIDE; w++) {
    VT square[VEC], results[VEC];
#pragma unroll
    for (int p = 0; p < VEC; p++) square[p] = p < b->count ? ADD(sums[p][w], (VT)added) : (VT)0;
    turn_square(square);
#pragma unroll
    for (int i = 0; i < VEC; i++) results[i] = square[i];
    const long first = b->panel * IMAGES + w * VEC, images_left = min((long)VEC, s->batch - first);
#pragma clang loop unroll(disable)
    for (long i = 0; i < images_left; i++) {
      const long image = (first + i) * s->groups + b->group;
#ifdef FOLLOWED
      follow(results[i], added, image, b->channel, c->out_places, b->first, b->count, s, f);
#else
      put_value(POINTER(D, out) + (image * s->out_channels + b->channel) * c->out_places + b->first, results[i], b->count);
#endif
    }
  }
}

KERNEL convolve_images(PLACE(out), CONST_PLACE(work), CONST_PLACE(factor), CONST_PLACE(bias), long has_bias, CONST_PLACE(in),
                       CONST_PLACE(weight) FOLLOWED_PARAMETERS, space s, images c) {
#ifdef FOLLOWED
  const followers f = FOLLOWERS;
#endif
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units), listed = -1;
  met_taps met[VEC];
  VT sums[TILE][VEC][WIDE];
  for (; unit < last; unit++) {
    const long tile = unit % c.tiles * TILE, rest = unit / c.tiles, image = rest / c.blocks;
    block b = {image / s.groups, image % s.groups, tile, rest % c.blocks * c.places, 0};
    b.count = (int)min(c.places, c.out_places - b.first);
    for (int p = 0; b.first != listed && p < b.count; p++) meet_taps(&met[p], b.first + p, &s, &c);
    listed = b.first;
    __global const CT *x = (__global const CT *)(work + offset_work) + image * c.in_places * c.apart;
    __global const CT *weights =
        (__global const CT *)(factor + offset_factor) + b.group * c.group + unit % c.tiles * c.tile;
    long row[TILE];
#pragma unroll
    for (int t = 0; t < TILE; t++) row[t] = min((long)t, s.out_channels - 1 - tile) * c.out;
    for (int p = 0; p < b.count; p++) {
      VT total[TILE][WIDE];
      sum_place(total, &met[p], x, weights, row, c.in, &s);
#pragma unroll
      for (int t = 0; t < TILE * WIDE; t++) sums[t / WIDE][p][t % WIDE] = total[t / WIDE][t % WIDE];
    }
    for (int t = 0; t < TILE && tile + t < s.out_channels; t++, b.channel++) {
      const CT added = has_bias ? one_value(CONST_POINTER(D, bias) + b.group * s.out_channels + b.channel) : (CT)0;
      put_channel(out, offset_out, added, sums[t], &b, &s, &c PUT_ARGUMENTS);
    }
  }
}
