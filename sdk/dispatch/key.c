/* The key of a call: what tells two cases apart; see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/state.h"

static bool grow(dsp_key *key, uint32_t more) {
  uint32_t capacity = (key->count + more) * 2;
  uint64_t *words = malloc(capacity * sizeof *words);
  if (!words) return false;
  memcpy(words, key->words, key->count * sizeof *words);
  if (key->words != key->local) free(key->words);
  key->words = words;
  key->capacity = capacity;
  return true;
}

/* Apart from growing, which few keys need: each call builds one. */
static inline bool reserve(dsp_key *key, uint32_t more) {
  return key->count + more <= key->capacity || grow(key, more);
}

static void put(dsp_key *key, uint64_t word) {
  key->words[key->count++] = word;
}

static void put_bytes(dsp_key *key, const void *bytes, size_t count) {
  size_t words = (count + 7) / 8;
  key->words[key->count + (words ? words - 1 : 0)] = 0;
  memcpy(key->words + key->count, bytes, count);
  key->count += (uint32_t)words;
}

/* The alignment of a tensor's first byte as a power of two: two calls alike but for it are two cases. No further than
 * what every block of the allocator has: beyond, it is chance, and a list of tensors that lie elsewhere in each step
 * would be a new case each time. */
static unsigned alignment_code(const graft_tensor *t) {
  const uint64_t most = t->device->alignment > MEM_MIN_BLOCK ? t->device->alignment : MEM_MIN_BLOCK;
  const uint64_t offset = t->storage ? tns_first_byte(t) : 0;
  return (unsigned)__builtin_ctzll(offset | most);
}

static bool put_tensor(dsp_key *key, const graft_tensor *t) {
  if (!reserve(key, 2 + 2 * GRAFT_MAX_DIMS)) return false;
  if (!t) {
    put(key, UINT64_MAX);
    return true;
  }
  put(key, (uint64_t)t->dtype << 32 | (uint64_t)(uint8_t)t->ndim << 16 | (t->flags & 3) << 8 | alignment_code(t));
  /* A tensor of rank 0 in host memory is a number beside those of a device. */
  put(key, t->device->is_reference);
  put_bytes(key, t->sizes, (size_t)t->ndim * 8);
  put_bytes(key, t->strides, (size_t)t->ndim * 8);
  return true;
}

/* Of a late number only its kind counts. */
static bool put_late(dsp_key *key, const graft_value *v) {
  if (!reserve(key, 2 + v->count)) return false;
  put(key, (uint64_t)v->kind << 32 | v->count);
  if (v->kind == GRAFT_VALUE_SCALAR) put(key, v->as.scalar.dtype);
  for (uint32_t i = 0; v->kind == GRAFT_VALUE_SCALARS && i < v->count; i++) put(key, v->as.scalars[i].dtype);
  return true;
}

static bool put_value(dsp_key *key, const graft_value *v, uint8_t kind) {
  if (!reserve(key, 8)) return false;
  put(key, (uint64_t)v->kind << 32 | v->count);
  switch (v->kind) {
    case GRAFT_VALUE_NONE: return true;
    case GRAFT_VALUE_TENSOR: return put_tensor(key, v->as.tensor);
    case GRAFT_VALUE_TENSORS:
      for (uint32_t i = 0; i < v->count; i++) {
        if (!put_tensor(key, v->as.tensors[i])) return false;
      }
      return true;
    case GRAFT_VALUE_SCALAR:
      put(key, v->as.scalar.dtype);
      if (kind == OPK_TENSOR) return true; /* a number in a tensor's place is data, not part of the case */
      put(key, (uint64_t)v->as.scalar.value.i);
      if (v->as.scalar.dtype == GRAFT_C128) put_bytes(key, &v->as.scalar.value.c[1], 8);
      return true;
    case GRAFT_VALUE_INTS:
    case GRAFT_VALUE_FLOATS:
      if (!reserve(key, v->count)) return false;
      put_bytes(key, v->as.ints, (size_t)v->count * 8);
      return true;
    case GRAFT_VALUE_SCALARS:
      if (!reserve(key, v->count * 3)) return false;
      put_bytes(key, v->as.scalars, (size_t)v->count * sizeof *v->as.scalars);
      return true;
    case GRAFT_VALUE_MASK:
      if (!reserve(key, v->count / 8 + 1)) return false;
      put_bytes(key, v->as.mask, v->count);
      return true;
    case GRAFT_VALUE_STR: {
      size_t length = strlen(v->as.str);
      if (!reserve(key, (uint32_t)length / 8 + 2)) return false;
      put(key, length);
      put_bytes(key, v->as.str, length);
      return true;
    }
    case GRAFT_VALUE_DTYPE: put(key, v->as.dtype); return true;
    case GRAFT_VALUE_GENERATOR:
    case GRAFT_VALUE_DEVICE: return true;
    default: put(key, (uint64_t)v->as.i); return true;
  }
}

/* How an output relates to the tensor arguments: two bits each. */
static uint64_t alias_code(const graft_tensor *out, const graft_value *args, uint32_t nargs) {
  uint64_t code = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    const graft_tensor *t = args[i].kind == GRAFT_VALUE_TENSOR ? args[i].as.tensor : NULL;
    if (t && t->storage == out->storage) code |= (uint64_t)tns_overlap_of(out, t) << 2 * i;
  }
  return code;
}

/* An item of a list argument. */
typedef struct place {
  uint32_t arg, item;
} place;

/* The next item of a list, from the first one again behind the last. */
static place step_place(place p, const graft_value *args, uint32_t nargs) {
  p.item++;
  while (args[p.arg].kind != GRAFT_VALUE_TENSORS || p.item >= args[p.arg].count) p = (place){(p.arg + 1) % nargs, 0};
  return p;
}

/* The first list item whose memory an output shares, and how. Lists written in place come in order: each search goes on
 * behind the last find, so that hundreds of outputs do not mean hundreds of searches. */
static uint64_t list_alias_code(const graft_tensor *out, const graft_value *args, uint32_t nargs, uint32_t items,
                                place *at) {
  place p = *at;
  for (uint32_t n = 0; n < items; n++) {
    p = step_place(p, args, nargs);
    const graft_tensor *t = args[p.arg].as.tensors[p.item];
    if (!t || t->storage != out->storage) continue;
    tns_overlap overlap = tns_overlap_of(out, t);
    if (overlap == TNS_OVERLAP_NONE) continue;
    *at = p;
    return ((uint64_t)p.arg << 32 | p.item) * 4 + (uint64_t)overlap;
  }
  return 0;
}

static uint32_t list_items(const graft_value *args, uint32_t nargs) {
  uint32_t items = 0;
  for (uint32_t i = 0; i < nargs; i++) items += args[i].kind == GRAFT_VALUE_TENSORS ? args[i].count : 0;
  return items;
}

bool dsp_key_build(dsp_key *key, const op_schema *schema, const graft_value *args, uint32_t nargs,
                   graft_tensor *const *outs, uint32_t nouts, uint64_t late) {
  key->words = key->local;
  key->count = 0;
  key->capacity = DSP_KEY_LOCAL;
  put(key, (uint64_t)schema->id << 32 | dsp_exec_flags());
  put(key, late);
  uint64_t forced = dsp_forcing.op_id == schema->id ? dsp_forcing.way : DSP_ROUTE_NONE;
  put(key, forced << 56 | (uint64_t)dt_number(dt_default()) << 48 | (uint64_t)nargs << 32 | nouts);
  for (uint32_t i = 0; i < nargs; i++) {
    bool put = late >> i & 1 ? put_late(key, &args[i]) : put_value(key, &args[i], schema->args[i].kind);
    if (!put) return false;
  }
  uint32_t items = list_items(args, nargs);
  place last = {0, UINT32_MAX};
  for (uint32_t i = 0; i < nouts; i++) {
    if (!put_tensor(key, outs[i])) return false;
    if (!outs[i]) continue;
    if (!reserve(key, 2)) return false;
    put(key, alias_code(outs[i], args, nargs));
    if (items) put(key, list_alias_code(outs[i], args, nargs, items, &last));
  }
  return true;
}

void dsp_key_free(dsp_key *key) {
  if (key->words != key->local) free(key->words);
}
