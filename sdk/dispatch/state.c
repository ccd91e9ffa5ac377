/* What dispatch keeps of a device and of a thread. */
#include "dispatch/state.h"

#include <stdlib.h>

_Thread_local dsp_philox_override dsp_philox;

_Thread_local dsp_decomposing dsp_inside;

_Thread_local dsp_forced dsp_forcing;

static _Thread_local graft_exec_flags exec_flags;

void dsp_set_exec_flags(graft_exec_flags flags) {
  exec_flags = flags;
}
graft_exec_flags dsp_exec_flags(void) {
  return exec_flags;
}

graft_status dsp_device_create(graft_rt_device *device, dsp_device **state) {
  dsp_device *made = calloc(1, sizeof *made + op_schema_places() * sizeof *made->ops);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, device->text, "no host memory for what is known of its ops");
  made->device = device;
  pthread_mutex_init(&made->lock, NULL);
  *state = made;
  return GRAFT_OK;
}
