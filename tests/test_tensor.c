/* Tensors with memory: creation, copies of every kind, values from and to the host, DLPack. Devices: 0 is the reference
 * device; 1 and 2 are further instances of its plugin that libgraft takes for plugins like any other, so that transfers
 * are real ones; 2 offers no ops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/internal.h"
#include "dtypes.h"
#include "graft/autograd.h"
#include "graft/dlpack.h"
#include "graft/memory.h"
#include "plugin/loader.h"
#include "reference/reference.h"
#include "suite.h"
#include "tensor/dlpack_abi.h"
#include "tensor/view.h"

#define OK(call)                                                    \
  do {                                                              \
    graft_status ok_status = (call);                                \
    ck_assert_msg(ok_status == GRAFT_OK, "%s", graft_last_error()); \
  } while (0)

#define FAILS(call, word)                                                                                            \
  do {                                                                                                               \
    ck_assert_int_eq((call), GRAFT_INVALID_ARGUMENT);                                                                \
    ck_assert_msg(strstr(graft_last_error(), word) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(), word); \
  } while (0)

#define SIZES(...)                                               \
  (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) { \
    __VA_ARGS__                                                  \
  }

static graft_rt_device *host(void) {
  return graft_device_reference();
}

/* The same values with the other sign, said by a bit. */
static graft_status negative(graft_tensor *self, graft_tensor **view) {
  graft_status status = tns_alias(self, view);
  if (!status) (*view)->flags ^= TNS_NEG;
  return status;
}

enum { DEVICES = 3, PAIRS = DEVICES * DEVICES };

static graft_rt_device *open_another(bool with_ops) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  OK(plg_negotiate(ref_plugin_open, with_ops ? "second" : "bare", "reference", NULL, &backend));
  if (!with_ops) {
    free(backend->core), free(backend->prims), free(backend->train);
    backend->core = backend->prims = backend->train = NULL;
  }
  OK(graft_backend_device(backend, 0, &device));
  ck_assert(!device->is_reference);
  return device;
}

static graft_rt_device *device_at(int i) {
  static graft_rt_device *devices[DEVICES];
  if (!devices[i]) devices[i] = i ? open_another(i == 1) : host();
  return devices[i];
}

static int64_t live_blocks(graft_rt_device *device) {
  graft_memory_statistics stats = {.struct_size = sizeof stats};
  OK(graft_memory_stats(device, &stats));
  return stats.allocation.current;
}

static int64_t blocks_before[DEVICES];
static void setup(void) {
  for (int i = 0; i < DEVICES; i++) blocks_before[i] = live_blocks(device_at(i));
}
static void teardown(void) {
  for (int i = 0; i < DEVICES; i++) ck_assert_int_eq(live_blocks(device_at(i)), blocks_before[i]);
}

static graft_tensor *range(graft_rt_device *device, int32_t ndim, const int64_t *sizes) {
  float values[256];
  for (int i = 0; i < 256; i++) values[i] = (float)i;
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, ndim, sizes, values, &t));
  return t;
}

static void expect(graft_tensor *t, const double *values) {
  graft_tensor *wide;
  double got[256];
  OK(graft_tensor_to(t, host(), GRAFT_F64, &wide));
  OK(graft_tensor_to_host(wide, got));
  for (int64_t i = 0; i < t->numel; i++) {
    ck_assert_msg(got[i] == values[i], "element %lld is %g, expected %g", (long long)i, got[i], values[i]);
  }
  graft_tensor_release(wide);
}
#define EXPECT(t, ...) expect(t, (const double[]){__VA_ARGS__})

START_TEST(creation) {
  graft_tensor *t;
  OK(graft_tensor_empty(device_at(_i), GRAFT_F64, SIZES(2, 3), &t));
  ck_assert_int_eq(graft_tensor_numel(t), 6);
  ck_assert_int_eq(graft_tensor_strides(t)[0], 3);
  ck_assert(graft_tensor_is_contiguous(t));
  ck_assert_uint_eq(graft_tensor_version(t), 1);
  ck_assert_uint_ne(graft_tensor_storage_id(t), 0);
  ck_assert_ptr_eq(graft_tensor_device(t), device_at(_i));
  graft_tensor_release(t);
  OK(graft_tensor_empty(device_at(_i), GRAFT_F32, SIZES(0, 3), &t));
  OK(graft_tensor_to_host(t, NULL));
  graft_tensor_release(t);
  graft_tensor_release(NULL);
  FAILS(graft_tensor_empty(device_at(_i), 77, SIZES(2), &t), "not a dtype");
  FAILS(graft_tensor_empty(device_at(_i), GRAFT_F32, SIZES(-2), &t), "negative");
  FAILS(graft_tensor_empty(device_at(_i), GRAFT_F32, SIZES(INT64_C(1) << 40, INT64_C(1) << 40), &t), "overflows");
  FAILS(graft_tensor_empty(device_at(_i), GRAFT_F64, SIZES(INT64_C(1) << 62), &t), "overflows");
  FAILS(graft_tensor_empty_strided(device_at(_i), GRAFT_F32, SIZES(2), (int64_t[]){-1}, &t), "negative strides");
}
END_TEST

START_TEST(wide_stays_on_the_reference) {
  graft_tensor *t;
  OK(graft_tensor_empty(host(), GRAFT_WIDE, SIZES(2), &t));
  graft_tensor_release(t);
  FAILS(graft_tensor_empty(device_at(1), GRAFT_WIDE, SIZES(2), &t), "reference device only");
}
END_TEST

START_TEST(values_and_item) {
  graft_tensor *t = range(device_at(_i), SIZES(2, 3)), *column, *one;
  float back[6];
  OK(graft_tensor_to_host(t, back));
  ck_assert(back[5] == 5);
  OK(tns_select(t, 1, 2, &column));
  EXPECT(column, 2, 5);
  OK(tns_select(column, 0, 1, &one));
  graft_scalar s;
  OK(graft_tensor_item(one, &s));
  ck_assert(s.dtype == GRAFT_F64 && s.value.f == 5);
  FAILS(graft_tensor_item(t, &s), "one element");
  graft_tensor_release(one);
  graft_tensor_release(column);
  graft_tensor_release(t);
}
END_TEST

/* From device i / DEVICES to device i % DEVICES. */
START_TEST(copy_converts_and_strides) {
  graft_tensor *from = range(device_at(_i / DEVICES), SIZES(2, 3)), *turned, *to;
  OK(tns_permute(from, 2, (int64_t[]){1, 0}, &turned));
  OK(graft_tensor_empty_strided(device_at(_i % DEVICES), GRAFT_I16, SIZES(3, 2), (int64_t[]){2, 8}, &to));
  OK(graft_tensor_copy(to, turned));
  EXPECT(to, 0, 3, 1, 4, 2, 5);
  ck_assert_uint_gt(graft_tensor_version(to), 1);
  ck_assert_uint_eq(graft_tensor_version(from), 1);
  graft_tensor_release(to);
  OK(graft_tensor_empty(device_at(_i % DEVICES), GRAFT_BF16, SIZES(3, 2), &to));
  OK(graft_tensor_copy(to, turned));
  EXPECT(to, 0, 3, 1, 4, 2, 5);
  graft_tensor_release(to);
  graft_tensor_release(turned);
  graft_tensor_release(from);
}
END_TEST

START_TEST(copy_leaves_gaps_alone) {
  graft_tensor *to = range(device_at(_i % DEVICES), SIZES(2, 4)), *columns,
               *from = range(device_at(_i / DEVICES), SIZES(2, 2));
  OK(tns_slice(to, 1, &(int64_t){1}, NULL, 2, &columns));
  OK(graft_tensor_copy(columns, from));
  EXPECT(to, 0, 0, 2, 1, 4, 2, 6, 3);
  graft_tensor_release(columns);
  graft_tensor_release(to);
  graft_tensor_release(from);
}
END_TEST

START_TEST(copy_broadcasts) {
  graft_tensor *to, *from = range(device_at(_i / DEVICES), SIZES(3)), *wide;
  OK(graft_tensor_empty(device_at(_i % DEVICES), GRAFT_F64, SIZES(2, 3), &to));
  OK(graft_tensor_copy(to, from));
  EXPECT(to, 0, 1, 2, 0, 1, 2);
  OK(tns_expand(from, SIZES(2, 3), &wide));
  OK(graft_tensor_copy(to, wide));
  EXPECT(to, 0, 1, 2, 0, 1, 2);
  FAILS(graft_tensor_copy(from, to), "broadcast");
  graft_tensor_release(wide);
  graft_tensor_release(from);
  from = range(device_at(_i / DEVICES), SIZES(2));
  FAILS(graft_tensor_copy(to, from), "broadcast");
  graft_tensor_release(from);
  graft_tensor_release(to);
}
END_TEST

START_TEST(copy_keeps_channels_last) {
  int64_t strides[] = {24, 1, 8, 2};
  graft_tensor *a = range(device_at(_i / DEVICES), SIZES(1, 2, 3, 4)), *b, *c;
  OK(graft_tensor_empty_strided(device_at(_i / DEVICES), GRAFT_F32, SIZES(1, 2, 3, 4), strides, &b));
  OK(graft_tensor_copy(b, a));
  OK(graft_tensor_to(b, device_at(_i % DEVICES), GRAFT_F64, &c));
  ck_assert_mem_eq(graft_tensor_strides(c), strides, sizeof strides);
  double values[24];
  for (int i = 0; i < 24; i++) values[i] = i;
  expect(c, values);
  graft_tensor_release(a);
  graft_tensor_release(b);
  graft_tensor_release(c);
}
END_TEST

START_TEST(to_is_the_same_where_nothing_changes) {
  graft_tensor *t = range(device_at(_i), SIZES(2)), *same;
  OK(graft_tensor_to(t, NULL, 0, &same));
  ck_assert_ptr_eq(t, same);
  OK(graft_tensor_to(t, device_at(_i), GRAFT_F32, &same));
  ck_assert_ptr_eq(t, same);
  for (int i = 0; i < 3; i++) graft_tensor_release(t);
}
END_TEST

START_TEST(copy_overlap) {
  graft_tensor *t = range(device_at(_i), SIZES(6)), *head, *tail, *even, *odd, *spread;
  OK(tns_slice(t, 0, NULL, &(int64_t){5}, 1, &head));
  OK(tns_slice(t, 0, &(int64_t){1}, NULL, 1, &tail));
  FAILS(graft_tensor_copy(tail, head), "single memory location");
  OK(tns_slice(t, 0, NULL, NULL, 2, &even));
  OK(tns_slice(t, 0, &(int64_t){1}, NULL, 2, &odd));
  OK(graft_tensor_copy(even, odd));
  EXPECT(t, 1, 1, 3, 3, 5, 5);
  OK(graft_tensor_copy(t, t));
  OK(tns_expand(even, SIZES(2, 3), &spread));
  FAILS(graft_tensor_copy(spread, odd), "more than one element");
  graft_tensor *all[] = {t, head, tail, even, odd, spread};
  for (int i = 0; i < 6; i++) graft_tensor_release(all[i]);
}
END_TEST

/* Columns 0..1 to columns 1..2 of a matrix: PyTorch lets it pass, and the result is as if the source had been read
 * first. */
START_TEST(copy_maybe_overlapping) {
  graft_tensor *t = range(device_at(_i), SIZES(2, 3)), *left, *right;
  OK(tns_slice(t, 1, NULL, &(int64_t){2}, 1, &left));
  OK(tns_slice(t, 1, &(int64_t){1}, NULL, 1, &right));
  OK(graft_tensor_copy(right, left));
  EXPECT(t, 0, 0, 1, 3, 3, 4);
  graft_tensor_release(left);
  graft_tensor_release(right);
  graft_tensor_release(t);
}
END_TEST

static graft_tensor *complex_pair(graft_rt_device *device) {
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_C64, SIZES(2), (float[]){1, 2, 3, 4}, &t));
  return t;
}

static void expect_complex(graft_tensor *t, double a, double b, double c, double d) {
  graft_tensor *wide;
  double got[4];
  OK(graft_tensor_to(t, host(), GRAFT_C128, &wide));
  OK(graft_tensor_to_host(wide, got));
  ck_assert_msg(got[0] == a && got[1] == b && got[2] == c && got[3] == d, "%g %g %g %g", got[0], got[1], got[2],
                got[3]);
  graft_tensor_release(wide);
}

START_TEST(copy_resolves_bits) {
  graft_tensor *t = complex_pair(device_at(_i / DEVICES)), *conj, *both, *imag, *to;
  OK(tns_conj(t, &conj));
  OK(negative(conj, &both));
  OK(tns_imag(conj, &imag));
  OK(graft_tensor_empty(device_at(_i % DEVICES), GRAFT_C64, SIZES(2), &to));
  OK(graft_tensor_copy(to, conj));
  expect_complex(to, 1, -2, 3, -4);
  OK(graft_tensor_copy(to, both));
  expect_complex(to, -1, 2, -3, 4);
  graft_tensor *to_conj;
  OK(tns_conj(to, &to_conj));
  OK(graft_tensor_copy(to_conj, t)); /* the conjugate of `to` then reads as t */
  expect_complex(to, 1, -2, 3, -4);
  OK(graft_tensor_copy(to_conj, conj));
  expect_complex(to, 1, 2, 3, 4);
  graft_tensor *real;
  OK(graft_tensor_empty(device_at(_i % DEVICES), GRAFT_F32, SIZES(2), &real));
  OK(graft_tensor_copy(real, imag));
  EXPECT(real, -2, -4);
  OK(graft_tensor_copy(real, both));
  EXPECT(real, -1, -3);
  EXPECT(imag, -2, -4);
  graft_tensor *all[] = {t, conj, both, imag, to, to_conj, real};
  for (int i = 0; i < 7; i++) graft_tensor_release(all[i]);
}
END_TEST

/* In place: only the bits of the two views differ. */
START_TEST(copy_onto_itself_conjugated) {
  graft_tensor *t = complex_pair(device_at(_i)), *conj;
  OK(tns_conj(t, &conj));
  OK(graft_tensor_copy(conj, t));
  expect_complex(t, 1, -2, 3, -4);
  OK(graft_tensor_copy(conj, conj));
  expect_complex(t, 1, -2, 3, -4);
  graft_tensor_release(conj);
  graft_tensor_release(t);
}
END_TEST

/* Small numbers from every dtype to every other, contiguous and not. */
START_TEST(copy_between_all_dtypes) {
  for (int i = 0; i < ALL_DTYPES; i++) {
    for (int j = 0; j < ALL_DTYPES; j++) {
      graft_tensor *t = range(host(), SIZES(2, 3)), *from, *turned, *to;
      OK(graft_tensor_to(t, NULL, dtypes[i], &from));
      OK(tns_permute(from, 2, (int64_t[]){1, 0}, &turned));
      OK(graft_tensor_empty(host(), dtypes[j], SIZES(3, 2), &to));
      OK(graft_tensor_copy(to, turned));
      bool truth = dtypes[i] == GRAFT_BOOL || dtypes[j] == GRAFT_BOOL;
      if (truth)
        EXPECT(to, 0, 1, 1, 1, 1, 1);
      else
        EXPECT(to, 0, 3, 1, 4, 2, 5);
      graft_tensor *all[] = {t, from, turned, to};
      for (int k = 0; k < 4; k++) graft_tensor_release(all[k]);
    }
  }
}
END_TEST

START_TEST(to_takes_part_in_history) {
  graft_tensor *t = range(host(), SIZES(2)), *wide;
  OK(graft_tensor_set_requires_grad(t, true));
  OK(graft_tensor_to(t, NULL, GRAFT_F64, &wide));
  ck_assert(graft_tensor_requires_grad(wide));
  graft_tensor_release(wide);
  bool grad = graft_grad_mode_set(false);
  OK(graft_tensor_to(t, NULL, GRAFT_F64, &wide));
  ck_assert(!graft_tensor_requires_grad(wide));
  graft_grad_mode_set(grad);
  graft_tensor_release(wide);
  graft_tensor_release(t);
}
END_TEST

START_TEST(as_strided_stays_inside) {
  graft_tensor *t = range(host(), SIZES(6)), *view;
  FAILS(tns_as_strided(t, SIZES(7), (int64_t[]){1}, NULL, &view), "out of bounds");
  FAILS(tns_as_strided(t, SIZES(6), (int64_t[]){1}, &(int64_t){1}, &view), "out of bounds");
  OK(tns_as_strided(t, SIZES(0, 9), (int64_t[]){1, 1}, &(int64_t){100}, &view));
  graft_tensor_release(view);
  graft_tensor_release(t);
}
END_TEST

START_TEST(storage_outlives_its_first_tensor) {
  graft_tensor *t = range(device_at(_i), SIZES(4)), *view;
  OK(tns_slice(t, 0, &(int64_t){2}, NULL, 1, &view));
  ck_assert_uint_eq(graft_tensor_storage_id(t), graft_tensor_storage_id(view));
  graft_tensor_release(t);
  EXPECT(view, 2, 3);
  graft_tensor_release(view);
}
END_TEST

/* --- DLPack --- */

typedef struct foreign {
  struct DLManagedTensorVersioned managed;
  struct DLManagedTensor old;
  int64_t shape[2], strides[2];
  float data[8];
  int deleted;
} foreign;

static void delete_foreign(struct DLManagedTensorVersioned *self) {
  ((foreign *)self->context)->deleted++;
}
static void delete_foreign_old(struct DLManagedTensor *self) {
  ((foreign *)self->context)->deleted++;
}

static void foreign_init(foreign *f) {
  *f = (foreign){.shape = {2, 3}, .strides = {4, 1}, .data = {0, 1, 2, 3, 4, 5, 6, 7}};
  dlp_tensor dl = {.data = f->data,
                   .device_type = DLP_CPU,
                   .ndim = 2,
                   .code = DLP_FLOAT,
                   .bits = 32,
                   .lanes = 1,
                   .shape = f->shape,
                   .strides = f->strides,
                   .byte_offset = 4};
  f->managed = (struct DLManagedTensorVersioned){1, 3, f, delete_foreign, 0, dl};
  f->old = (struct DLManagedTensor){dl, f, delete_foreign_old};
}

START_TEST(dlpack_import_shares_memory) {
  foreign f;
  foreign_init(&f);
  graft_tensor *t, *row;
  if (_i)
    OK(graft_tensor_from_dlpack_old(&f.old, &t));
  else
    OK(graft_tensor_from_dlpack(&f.managed, &t));
  EXPECT(t, 1, 2, 3, 5, 6, 7);
  f.data[1] = 10;
  EXPECT(t, 10, 2, 3, 5, 6, 7);
  OK(tns_select(t, 0, 1, &row));
  graft_tensor_release(t);
  ck_assert_int_eq(f.deleted, 0);
  graft_tensor_release(row);
  ck_assert_int_eq(f.deleted, 1);
}
END_TEST

/* Where the device works in host memory, and where what lies there does not fit it: it has a copy. */
START_TEST(dlpack_import_to_a_device) {
  graft_rt_device *device = device_at(1);
  static _Alignas(64) float block[130];
  float got[128];
  foreign f;
  foreign_init(&f);
  f.managed.tensor.ndim = 1;
  f.managed.tensor.data = block;
  f.managed.tensor.byte_offset = _i ? 4 : 0;
  f.shape[0] = 128;
  f.strides[0] = 1;
  graft_tensor *t, *again;
  OK(graft_tensor_from_dlpack_to(device, &f.managed, &t));
  ck_assert_ptr_eq(graft_tensor_device(t), device);
  ck_assert_int_eq(f.deleted, _i);
  block[100] = 10;
  OK(graft_tensor_to_host(t, got));
  ck_assert(got[100 - _i] == (_i ? 0 : 10));
  struct DLManagedTensorVersioned *ours;
  OK(graft_tensor_to_dlpack(t, &ours));
  OK(graft_tensor_from_dlpack_to(device, ours, &again)); /* as it was */
  ck_assert_uint_eq(graft_tensor_storage_id(again), graft_tensor_storage_id(t));
  graft_tensor_release(again);
  graft_tensor_release(t);
  ck_assert_int_eq(f.deleted, 1);
}
END_TEST

START_TEST(dlpack_import_to_a_device_refuses) {
  foreign f;
  graft_tensor *t;
  foreign_init(&f);
  f.managed.tensor.device_type = DLP_CUDA;
  FAILS(graft_tensor_from_dlpack_to(device_at(1), &f.managed, &t), "device type 2 (CUDA)");
  f.managed.major = 2;
  FAILS(graft_tensor_from_dlpack_to(device_at(1), &f.managed, &t), "version 2.3");
  ck_assert_int_eq(f.deleted, 0);
}
END_TEST

START_TEST(dlpack_import_refuses) {
  foreign f;
  graft_tensor *t;
#define REFUSES(change, word)                            \
  foreign_init(&f);                                      \
  change;                                                \
  FAILS(graft_tensor_from_dlpack(&f.managed, &t), word); \
  ck_assert_int_eq(f.deleted, 0)
  REFUSES(f.managed.major = 2, "version 2.3");
  REFUSES(f.managed.tensor.device_type = DLP_CUDA, "device type 2 (CUDA)");
  REFUSES(f.managed.tensor.device_type = 99, "device type 99 (unknown)");
  REFUSES(f.managed.tensor.lanes = 4, "4 lanes");
  REFUSES(f.managed.tensor.code = 0x80, "type code 128");
  REFUSES(f.managed.flags = DLP_FLAG_READ_ONLY, "read-only");
  REFUSES(f.strides[1] = -1, "negative");
  REFUSES(f.shape[0] = -1, "negative size");
  REFUSES(f.managed.tensor.ndim = 17, "17 dimensions");
  REFUSES(f.managed.tensor.data = NULL, "data is NULL");
}
END_TEST

START_TEST(dlpack_import_empty_and_contiguous) {
  foreign f;
  graft_tensor *t;
  foreign_init(&f);
  f.managed.tensor.strides = NULL;
  OK(graft_tensor_from_dlpack(&f.managed, &t));
  EXPECT(t, 1, 2, 3, 4, 5, 6);
  graft_tensor_release(t);
  foreign_init(&f);
  f.shape[0] = 0;
  f.managed.tensor.data = NULL;
  OK(graft_tensor_from_dlpack(&f.managed, &t));
  ck_assert_int_eq(graft_tensor_numel(t), 0);
  graft_tensor_release(t);
  ck_assert_int_eq(f.deleted, 1);
}
END_TEST

START_TEST(dlpack_export) {
  graft_tensor *t = range(host(), SIZES(2, 1, 3)), *view, *again;
  OK(tns_slice(t, 2, &(int64_t){1}, NULL, 1, &view));
  struct DLManagedTensorVersioned *m;
  OK(graft_tensor_to_dlpack(view, &m));
  graft_tensor_release(view);
  ck_assert_uint_eq(m->major, 1);
  const dlp_tensor *dl = &m->tensor;
  ck_assert(dl->device_type == DLP_CPU && dl->code == DLP_FLOAT && dl->bits == 32 && dl->lanes == 1 && dl->ndim == 3);
  ck_assert(dl->shape[0] == 2 && dl->shape[2] == 2 && dl->strides[0] == 3 && dl->strides[1] == 1 &&
            dl->byte_offset == 0);
  ck_assert(((float *)dl->data)[3] == 4);
  OK(graft_tensor_from_dlpack(m, &again)); /* consumes it */
  ck_assert_uint_eq(graft_tensor_storage_id(again), graft_tensor_storage_id(t));
  graft_tensor_release(again);
  struct DLManagedTensor *old;
  OK(graft_tensor_to_dlpack_old(t, &old));
  graft_tensor_release(t);
  ck_assert(((float *)old->tensor.data)[5] == 5);
  old->deleter(old);
}
END_TEST

START_TEST(dlpack_export_refuses) {
  struct DLManagedTensorVersioned *m;
  graft_tensor *t = complex_pair(host()), *conj, *neg, *wide;
  OK(tns_conj(t, &conj));
  OK(negative(t, &neg));
  OK(graft_tensor_empty(host(), GRAFT_WIDE, SIZES(2), &wide));
  FAILS(graft_tensor_to_dlpack(conj, &m), "unresolved conjugate");
  FAILS(graft_tensor_to_dlpack(neg, &m), "unresolved negative");
  FAILS(graft_tensor_to_dlpack(wide, &m), "wide is a dtype of Graft's own");
  OK(graft_tensor_set_requires_grad(t, true));
  FAILS(graft_tensor_to_dlpack(t, &m), "requires grad");
  graft_tensor *all[] = {t, conj, neg, wide};
  for (int i = 0; i < 4; i++) graft_tensor_release(all[i]);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(creation, DEVICES),
                              ONCE(wide_stays_on_the_reference),
                              EACH(values_and_item, DEVICES),
                              EACH(copy_converts_and_strides, PAIRS),
                              EACH(copy_leaves_gaps_alone, PAIRS),
                              EACH(copy_broadcasts, PAIRS),
                              EACH(copy_keeps_channels_last, PAIRS),
                              EACH(to_is_the_same_where_nothing_changes, DEVICES),
                              EACH(copy_overlap, DEVICES),
                              EACH(copy_maybe_overlapping, DEVICES),
                              EACH(copy_resolves_bits, PAIRS),
                              EACH(copy_onto_itself_conjugated, DEVICES),
                              ONCE(copy_between_all_dtypes),
                              ONCE(to_takes_part_in_history),
                              ONCE(as_strided_stays_inside),
                              EACH(storage_outlives_its_first_tensor, DEVICES),
                              EACH(dlpack_import_shares_memory, 2),
                              EACH(dlpack_import_to_a_device, 2),
                              ONCE(dlpack_import_to_a_device_refuses),
                              ONCE(dlpack_import_refuses),
                              ONCE(dlpack_import_empty_and_contiguous),
                              ONCE(dlpack_export),
                              ONCE(dlpack_export_refuses),
                              {0}};
  return run_suite("tensor", tests, (suite_options){.setup = setup, .teardown = teardown});
}
