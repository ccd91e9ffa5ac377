/* The modes of a thread. */
#include "autograd/node.h"

static _Thread_local struct { bool no_grad, inference, anomaly; } mode;

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

bool graft_anomaly_mode_set(bool enabled) {
  bool before = mode.anomaly;
  mode.anomaly = enabled;
  return before;
}

bool ag_anomaly_mode(void) {
  return mode.anomaly;
}
