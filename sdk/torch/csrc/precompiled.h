// Headers of PyTorch that many files of the bridge include: setup.py compiles them once. Nothing of Graft's stands
// here, so that a change of the bridge leaves what was compiled as it is; and each file includes what it uses, as if
// there were none.
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <torch/library.h>
