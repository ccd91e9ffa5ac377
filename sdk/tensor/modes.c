/* The modes of a thread that say what takes part in autograd: tensors are marked by them when they are made. */
#include "graft/autograd.h"

static _Thread_local struct { bool no_grad, inference; } mode;

bool graft_grad_mode_set(bool enabled) {
  bool before = !mode.no_grad;
  mode.no_grad = !enabled;
  return before;
}

bool graft_grad_mode(void) {
  return !mode.no_grad && !mode.inference;
}

bool graft_inference_mode_set(bool enabled) {
  bool before = mode.inference;
  mode.inference = enabled;
  return before;
}

bool graft_inference_mode(void) {
  return mode.inference;
}
