/* What the tests of bad input share: devices to try, work that must go on, calls from their text. */
#ifndef GRAFT_TESTS_BAD_INPUT_H
#define GRAFT_TESTS_BAD_INPUT_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/text/text.h"
#include "graft/graft.h"
#include "marks.h"
#include "plugin_path.h"

#define PROGRAM GRAFT_BINARY_DIR "/bin/graft"
#define OPENCL  GRAFT_BINARY_DIR "/lib/graft/plugins/graft_opencl.so"

#define OK(call) ck_assert_msg(!(call), "%s: %s", #call, graft_last_error())

/* --- devices --- */

static inline bool has_opencl(void) {
  return access(OPENCL, R_OK) == 0;
}

static inline graft_rt_device *device_at(const char *backend, const char *const *options, int32_t index) {
  graft_rt_backend *opened;
  graft_rt_device *device;
  if (graft_backend_open(backend, options, &opened) || graft_backend_device(opened, index, &device)) return NULL;
  return device;
}

/* The device of a loop's turn: reference, async (threads, most ops fall back), OpenCL. NULL where there is none. */
enum { DEVICES = 3 };
static inline graft_rt_device *device_of(int turn) {
  if (turn == 0) return graft_device_reference();
  if (turn == 1) return device_at(test_plugin("async"), NULL, 0);
  return has_opencl() ? device_at(OPENCL, NULL, 0) : NULL;
}

/* --- what works before and after --- */

/* relu(a + b) over 17 elements, with work on the way there and back. 0 if the numbers are right, else a line. */
static inline int job(graft_rt_device *device) {
  enum { N = 17 };
  float a[N], b[N], got[N];
  graft_tensor *x = NULL, *y = NULL, *sum = NULL, *out = NULL;
  for (int i = 0; i < N; i++) a[i] = (float)i - 8.0f, b[i] = 0.5f * (float)i;
  if (graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){N}, a, &x)) return __LINE__;
  if (graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){N}, b, &y)) return __LINE__;
  if (graft_op_add_Tensor(x, y, graft_scalar_none(), &sum)) return __LINE__;
  if (graft_op_relu(sum, &out)) return __LINE__;
  if (graft_tensor_to_host(out, got)) return __LINE__;
  graft_tensor_release(x);
  graft_tensor_release(y);
  graft_tensor_release(sum);
  graft_tensor_release(out);
  for (int i = 0; i < N; i++) {
    float right = a[i] + b[i] > 0 ? a[i] + b[i] : 0;
    if (got[i] != right) return __LINE__;
  }
  return 0;
}

/* --- calls --- */

/* An index for one place in an index tensor: its first or its last. */
typedef struct wrong {
  int64_t index;
  bool first;
} wrong;

/* Elements that follow each other, into a tensor of any strides. */
static inline graft_status put_elements(graft_tensor *t, const void *data) {
  graft_tensor *host = NULL;
  graft_status status = graft_tensor_from_host(graft_device_reference(), graft_tensor_dtype(t), graft_tensor_ndim(t),
                                               graft_tensor_sizes(t), data, &host);
  if (!status) status = graft_tensor_copy(t, host);
  graft_tensor_release(host);
  return status;
}

/* Small numbers; integers are indices of something of size 3 but for the wrong one. */
static inline graft_status fill(void *context, uint32_t index, graft_tensor *t) {
  (void)index;
  const wrong *w = context;
  int64_t n = graft_tensor_numel(t);
  size_t bytes = GRAFT_DTYPE_BYTES(graft_tensor_dtype(t));
  char *data = calloc((size_t)n + 1, bytes);
  for (int64_t i = 0; i < n; i++) {
    float value = (float)i;
    int64_t number = w && i == (w->first ? 0 : n - 1) ? w->index : i % 3;
    if (graft_tensor_dtype(t) == GRAFT_F32) memcpy(data + i * 4, &value, 4);
    if (graft_tensor_dtype(t) == GRAFT_I64) memcpy(data + i * 8, &number, 8);
  }
  const graft_status status = put_elements(t, data);
  free(data);
  return status;
}

/* Makes a call from its text and reads its results; the first failure is returned. */
static inline graft_status call_of(const char *line, graft_rt_device *device, const wrong *wrong) {
  txt_call call;
  graft_tensor *outs[4] = {NULL};
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, device, fill, (void *)(uintptr_t)wrong));
  graft_status status = graft_call(call.schema->id, call.args, call.nargs, outs, call.schema->nrets);
  if (!status) status = graft_stream_synchronize(graft_stream_current(device));
  for (int i = 0; i < 4; i++) graft_tensor_release(outs[i]);
  txt_free(&call);
  return status;
}

#endif
