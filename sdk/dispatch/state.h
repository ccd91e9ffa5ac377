/* Dispatch's state of a device: what its plugin says of each op, and the plans. */
#ifndef GRAFT_SDK_DISPATCH_DEVICE_H
#define GRAFT_SDK_DISPATCH_DEVICE_H

#include "dispatch/plan.h"

enum { DSP_BUCKETS = 4096, DSP_MAX_PLANS = 8192 };

typedef struct dsp_op_state {
  _Atomic(int) known; /* 0: not yet asked, 1: offered, 2: not offered */
  op_slot slot;
  graft_op_caps caps;
  uint64_t late; /* see dsp_late_numbers */
} dsp_op_state;

struct dsp_device {
  graft_rt_device *device;
  pthread_mutex_t lock; /* guards the plans */
  dsp_plan *buckets[DSP_BUCKETS];
  dsp_plan *oldest, *newest;
  uint32_t plan_count;
  dsp_op_state ops[]; /* by op_schema_place */
};

/* Made when the device is opened, so that no call has to say that there is no memory for it. */
static inline dsp_device *dsp_device_of(graft_rt_device *device) {
  return device->dispatch;
}

#endif
