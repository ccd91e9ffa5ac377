/* What copies become while the work of a stream is captured (dev_capture): instead of the plugin or memcpy they call
 * these, and it is done with each launch. */
#ifndef GRAFT_SDK_TENSOR_CAPTURE_H
#define GRAFT_SDK_TENSOR_CAPTURE_H

#include "tensor/tensor.h"

/* Always the first member of a dsp_capture (dispatch/capture.h). */
typedef struct tns_capture {
  dev_capture base;
  /* The bytes of dense tensors alike, inside the device. */
  graft_status (*copy_bytes)(struct tns_capture *self, graft_tensor *to, graft_tensor *from);
  /* Elements in memory of this process: tensors of the reference device of one shape. A number of the caller's memory
   * (storage id 0) has the value of now; more of it, and writes to it, are refused. */
  graft_status (*copy_elements)(struct tns_capture *self, graft_tensor *to, graft_tensor *from, bool conj, bool neg);
  /* One element, known now: its bytes in the dtype of `to`. */
  graft_status (*put_number)(struct tns_capture *self, graft_tensor *to, const void *element);
} tns_capture;

/* The capture that the current stream's work goes to, or NULL. */
static inline tns_capture *tns_capture_of(graft_rt_device *device) {
  return (tns_capture *)(void *)dev_capture_of(graft_stream_current(device));
}

#endif
