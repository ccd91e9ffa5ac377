/* What a thread does instead of running, while it records a graph. Tensors then stand for values that are not there
 * yet: their storages have an identity, a version and a size, and a symbol in the place of memory. So views, histories
 * and in-place checks work on them as on any other, and whoever would read or write the memory gets an error. */
#ifndef GRAFT_SDK_RECORDER_H
#define GRAFT_SDK_RECORDER_H

#include "tensor/tensor.h"

/* The arguments of graft_backward, and with inputs those of graft_grad. */
typedef struct tns_backward {
  graft_tensor *const *roots, *const *grads, *const *inputs;
  graft_tensor **results;
  uint32_t count, ninputs, flags;
} tns_backward;

typedef struct tns_recorder {
  graft_rt_device *device; /* whose calls are recorded */
  /* A place for so many bytes: the symbol of a new storage. */
  graft_status (*place)(struct tns_recorder *self, uint64_t bytes, uint64_t *symbol);
  /* graft_tensor_copy, of which one side at least is on the device. */
  graft_status (*copy)(struct tns_recorder *self, graft_tensor *to, graft_tensor *from);
  /* The error of something that can't be recorded, which ends the recording. */
  graft_status (*refuse)(struct tns_recorder *self, const char *what);
  /* graft_backward, and graft_grad where there are inputs, before it does anything; NULL: of no interest. */
  graft_status (*backward)(struct tns_recorder *self, const tns_backward *call);
} tns_recorder;

/* Of this thread; NULL: it runs what it calls. Always the first member of a dsp_recorder (dispatch.h). */
extern _Thread_local tns_recorder *tns_recording;

/* A storage of a place in the recording. */
graft_status tns_storage_symbolic(graft_rt_device *device, uint64_t bytes, uint64_t symbol, graft_storage **storage);

/* Before the memory of a tensor is used: the error where there is none. `what` is done with it. */
graft_status tns_check_memory(const graft_tensor *tensor, const char *what);
/* Why a tensor that lacks memory does, and what to do: what follows its name in an error. */
const char *tns_no_memory_text(const graft_tensor *tensor);

#endif
