/* One copy for all: dtype, strides, broadcast, devices, and the conjugate and negative bits of both sides.
 *
 * Inside a device: bytes where both sides are dense alike, else a strided converting kernel. Between devices: what
 * crosses is dense, each value once, in the narrower of the two dtypes; what remains to be done (spreading, strides,
 * conversion) is a copy inside the device on either side. */
#include "tensor/copy.h"

#include <string.h>

#include "base/error.h"
#include "tensor/capture.h"
#include "tensor/copy_host.h"
#include "tensor/recorder.h"
#include "tensor/transfer.h"
#include "tensor/view.h"

void tns_host_tensor_init(tns_host_tensor *host, const graft_tensor *like, void *data) {
  memset(host, 0, sizeof *host);
  graft_tensor *t = &host->tensor;
  t->dtype = like->dtype;
  t->ndim = like->ndim;
  t->numel = like->numel;
  t->device = host->storage.device = graft_device_reference();
  t->storage = &host->storage;
  memcpy(t->sizes, like->sizes, sizeof t->sizes);
  tns_contiguous_strides(t->ndim, t->sizes, t->strides);
  host->storage.host_pointer = data;
  host->storage.bytes = (uint64_t)like->numel * dt_bytes(like->dtype);
  atomic_init(&host->storage.refs, 1);
  atomic_init(&t->refs, 1);
}

/* What the bits of both sides together do to a value on its way. */
typedef struct bits {
  bool conj, neg;
} bits;

static bits bits_between(const graft_tensor *to, const graft_tensor *from) {
  uint32_t differ = to->flags ^ from->flags;
  /* a conjugate has an effect only where there is an imaginary part to keep */
  bool complex = dt_is_complex(to->dtype) && dt_is_complex(from->dtype);
  return (bits){complex && (differ & TNS_CONJ), (differ & TNS_NEG) != 0};
}

static bool bits_any(bits b) {
  return b.conj || b.neg;
}

/* --- inside a device --- */

static graft_status copy_in_host(graft_tensor *to, graft_tensor *from, bits b) {
  tns_capture *capture = tns_capture_of(to->device);
  if (capture) return capture->copy_elements(capture, to, from, b.conj, b.neg);
  graft_rt_stream *stream = graft_stream_current(to->device);
  pthread_mutex_lock(&stream->lock);
  tns_copy_elements(to, tns_host_data(to), from, tns_host_data(from), b.conj, b.neg);
  pthread_mutex_unlock(&stream->lock);
  return GRAFT_OK;
}

/* Negates in place what `part` gives of a tensor, on its device. */
static graft_status negate_part(graft_tensor *plain, graft_status (*part)(graft_tensor *, graft_tensor **)) {
  graft_tensor *view;
  graft_status status = part(plain, &view);
  if (status) return status;
  status = tns_hooks.negate(view);
  graft_tensor_release(view);
  return status;
}

/* The tensor as it is stored: bits off. */
static graft_status stored(graft_tensor *tensor, graft_tensor **plain) {
  graft_status status = tns_alias(tensor, plain);
  if (!status) (*plain)->flags &= ~(uint32_t)(TNS_CONJ | TNS_NEG);
  return status;
}

/* Plugins know no bits, so what was copied as stored is put right by `neg` on the parts concerned. */
static graft_status apply_bits(graft_tensor *to, bits b) {
  if (!bits_any(b)) return GRAFT_OK;
  graft_tensor *plain;
  graft_status status = stored(to, &plain);
  if (status) return status;
  if (b.neg) status = negate_part(plain, tns_real);
  if (!status && dt_is_complex(to->dtype) && b.neg != b.conj) status = negate_part(plain, tns_imag);
  graft_tensor_release(plain);
  return status;
}

static graft_status copy_stored(graft_tensor *to, graft_tensor *from) {
  graft_tensor *plain_to, *plain_from;
  if (!((to->flags | from->flags) & (TNS_CONJ | TNS_NEG))) return tns_hooks.copy_kernel(to, from);
  graft_status status = stored(to, &plain_to);
  if (status) return status;
  status = stored(from, &plain_from);
  if (!status) {
    status = tns_hooks.copy_kernel(plain_to, plain_from);
    graft_tensor_release(plain_from);
  }
  graft_tensor_release(plain_to);
  return status;
}

static graft_status copy_in_device(graft_tensor *to, graft_tensor *from, bits b) {
  graft_status status = GRAFT_UNIMPLEMENTED;
  if (to->dtype == from->dtype && tns_dense_alike(to, from)) status = tns_transfer_inside(to, from);
  if (status == GRAFT_UNIMPLEMENTED) status = copy_stored(to, from);
  if (status == GRAFT_UNIMPLEMENTED) return tns_copy_staged(to, from, b.conj, b.neg);
  return status ? status : apply_bits(to, b);
}

/* Same device, same shape; elements of one are not elements of the other, or the very same ones. */
static graft_status copy_same(graft_tensor *to, graft_tensor *from, bits b) {
  return to->device->is_reference ? copy_in_host(to, from, b) : copy_in_device(to, from, b);
}

/* --- between devices --- */

/* Where the conversion happens: on the side where it makes the transfer smaller, else in host memory if that is one. */
static graft_dtype wire_dtype(const graft_tensor *to, const graft_tensor *from) {
  uint64_t to_bytes = dt_bytes(to->dtype), from_bytes = dt_bytes(from->dtype);
  if (to_bytes != from_bytes) return to_bytes < from_bytes ? to->dtype : from->dtype;
  return from->device->is_reference ? to->dtype : from->dtype;
}

/* The tensor with size 1 wherever its stride is 0, so that no value crosses twice. */
static graft_status without_repeats(graft_tensor *from, graft_tensor **core) {
  int64_t sizes[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < from->ndim; i++) sizes[i] = from->strides[i] == 0 ? 1 : from->sizes[i];
  return tns_view(from, from->ndim, sizes, from->strides, from->offset, core);
}

/* A dense tensor of the wire's dtype on the source's side, ready to be sent; *b is what is still to be done after. */
static graft_status pack(graft_tensor *core, graft_tensor *to, graft_dtype wire, bits *b, graft_tensor **packed) {
  bool dense = tns_is_dense(core->ndim, core->sizes, core->strides);
  bool bits_here = bits_any(*b) && core->device->is_reference;
  if (core->dtype == wire && dense && !bits_here) {
    graft_tensor_retain(core);
    *packed = core;
    return GRAFT_OK;
  }
  int64_t strides[GRAFT_MAX_DIMS];
  bool lands_as_is = tns_same_sizes(core, to) && tns_is_dense(to->ndim, to->sizes, to->strides);
  if (lands_as_is)
    memcpy(strides, to->strides, sizeof strides);
  else
    tns_preserve_strides(core->ndim, core->sizes, core->strides, strides);
  graft_tensor *made;
  graft_status status = graft_tensor_empty_strided(core->device, wire, core->ndim, core->sizes, strides, &made);
  if (status) return status;
  status = copy_same(made, core, *b);
  *b = (bits){false, false};
  if (status)
    graft_tensor_release(made);
  else
    *packed = made;
  return status;
}

/* Sends `packed` and spreads it over `to`. */
static graft_status unpack(graft_tensor *to, graft_tensor *packed, bits b) {
  if (to->dtype == packed->dtype && tns_dense_alike(to, packed)) {
    graft_status status = tns_transfer_across(to, packed);
    if (status || !bits_any(b)) return status;
    return to->device->is_reference ? copy_in_host(to, to, b) : apply_bits(to, b);
  }
  graft_tensor *landed, *spread = NULL;
  graft_status status =
      graft_tensor_empty_strided(to->device, packed->dtype, packed->ndim, packed->sizes, packed->strides, &landed);
  if (status) return status;
  status = tns_transfer_across(landed, packed);
  if (!status) status = tns_expand(landed, to->ndim, to->sizes, &spread);
  if (!status) status = copy_same(to, spread, b);
  graft_tensor_release(spread);
  graft_tensor_release(landed);
  return status;
}

static graft_status copy_across(graft_tensor *to, graft_tensor *from, bits b) {
  graft_tensor *core, *packed;
  graft_status status = without_repeats(from, &core);
  if (status) return status;
  status = pack(core, to, wire_dtype(to, from), &b, &packed);
  if (!status) {
    status = unpack(to, packed, b);
    graft_tensor_release(packed);
  }
  graft_tensor_release(core);
  return status;
}

/* --- the whole --- */

static graft_status check_itself(const graft_tensor *to) {
  if (!tns_overlaps_itself(to)) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "copy: more than one element of the written-to tensor %s refers to a single "
                 "memory location; copy it to a tensor of its own first",
                 TNS_SHAPE(to));
}

static graft_status check_copy(const graft_tensor *to, const graft_tensor *from) {
  for (int i = 0; i < 2; i++) {
    const graft_tensor *t = i ? from : to;
    graft_status status = tns_check_memory(t, "copy");
    if (status) return status;
    if (!t->device->is_reference && dev_forked(t->device)) return dev_forked_error(t->device);
  }
  return check_itself(to);
}

static graft_status broadcast_error(const graft_tensor *to, const graft_tensor *from) {
  return err_set(GRAFT_INVALID_ARGUMENT, "copy: values of shape %s can't be broadcast to %s",
                 TNS_INTS(from->ndim, from->sizes), TNS_SHAPE(to));
}

static graft_status partial_error(const graft_tensor *to, const graft_tensor *from) {
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "copy: some elements of the input %s and the written-to tensor %s refer to a "
                 "single memory location; copy the input to a tensor of its own first",
                 TNS_SHAPE(from), TNS_SHAPE(to));
}

/* Through other memory, for views whose elements may be shared in another order. */
static graft_status copy_apart(graft_tensor *to, graft_tensor *from, bits b) {
  graft_tensor *apart;
  graft_status status = graft_tensor_empty(from->device, from->dtype, from->ndim, from->sizes, &apart);
  if (status) return status;
  status = copy_same(apart, from, (bits){false, false});
  if (!status) status = copy_same(to, apart, b);
  graft_tensor_release(apart);
  return status;
}

static graft_status copy_expanded(graft_tensor *to, graft_tensor *from) {
  bits b = bits_between(to, from);
  if (to->device != from->device) return copy_across(to, from, b);
  switch (tns_overlap_of(to, from)) {
    case TNS_OVERLAP_NONE: return copy_same(to, from, b);
    case TNS_OVERLAP_FULL:
      if (to->dtype == from->dtype && !bits_any(b)) return GRAFT_OK;
      return copy_apart(to, from, b);
    case TNS_OVERLAP_MAYBE: return copy_apart(to, from, b);
    default: return partial_error(to, from);
  }
}

static graft_status expand_to(const graft_tensor *to, graft_tensor *from, graft_tensor **expanded) {
  if (from->ndim > to->ndim) return broadcast_error(to, from);
  graft_status status = tns_expand(from, to->ndim, to->sizes, expanded);
  return status && status != GRAFT_OUT_OF_MEMORY ? broadcast_error(to, from) : status;
}

graft_status tns_copy(graft_tensor *to, graft_tensor *from) {
  graft_status status = check_copy(to, from);
  if (status) return status;
  if (to == from) return GRAFT_OK;
  if (tns_same_sizes(to, from)) return to->numel == 0 ? GRAFT_OK : copy_expanded(to, from);
  graft_tensor *expanded;
  status = expand_to(to, from, &expanded);
  if (status) return status;
  if (to->numel != 0) status = copy_expanded(to, expanded);
  graft_tensor_release(expanded);
  return status;
}

graft_status tns_check_copy(graft_tensor *to, graft_tensor *from) {
  graft_status status = check_itself(to);
  if (status || to == from) return status;
  graft_tensor *expanded;
  status = expand_to(to, from, &expanded);
  if (status) return status;
  bool partial = to->numel && to->storage == from->storage && tns_overlap_of(to, expanded) == TNS_OVERLAP_PARTIAL;
  graft_tensor_release(expanded);
  return partial ? partial_error(to, from) : GRAFT_OK;
}

graft_status graft_tensor_copy(graft_tensor *to, graft_tensor *from) {
  if (!to) return err_null(__func__, "to");
  if (!from) return err_null(__func__, "from");
  if (tns_recording && (to->device == tns_recording->device || from->device == tns_recording->device)) {
    return tns_recording->copy(tns_recording, to, from);
  }
  graft_status status = tns_copy(to, from);
  if (!status && to != from) tns_bump(to);
  return status;
}

graft_status tns_to(graft_tensor *tensor, graft_rt_device *device, graft_dtype dtype, graft_tensor **result) {
  if (!device) device = tensor->device;
  if (!dtype) dtype = tensor->dtype;
  if (device == tensor->device && dtype == tensor->dtype) {
    graft_tensor_retain(tensor);
    *result = tensor;
    return GRAFT_OK;
  }
  int64_t strides[GRAFT_MAX_DIMS];
  tns_preserve_strides(tensor->ndim, tensor->sizes, tensor->strides, strides);
  graft_tensor *made;
  graft_status status = graft_tensor_empty_strided(device, dtype, tensor->ndim, tensor->sizes, strides, &made);
  if (status) return status;
  status = tns_copy(made, tensor);
  if (status)
    graft_tensor_release(made);
  else
    *result = made;
  return status;
}
