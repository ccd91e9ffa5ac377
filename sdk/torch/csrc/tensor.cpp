// at::Tensor to graft_tensor and back.
#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include "bridge.h"
#include "dtypes.h"

namespace torch_graft {

namespace {

// Types by number, so that a call costs one load.
struct DtypeTable {
  graft_dtype by_scalar_type[static_cast<int>(c10::ScalarType::NumOptions)] = {};
  constexpr DtypeTable() {
    for (const DtypePair &pair : kDtypes) by_scalar_type[static_cast<int>(pair.torch)] = pair.graft;
  }
};
constexpr DtypeTable kTable;

}  // namespace

graft_dtype dtype_of(c10::ScalarType type) {
  graft_dtype dtype = kTable.by_scalar_type[static_cast<int>(type)];
  TORCH_CHECK_TYPE(dtype, "graft: tensors of ", type, " are not supported; convert to another dtype first");
  return dtype;
}

c10::ScalarType scalar_type_of(graft_dtype dtype) {
  for (const DtypePair &pair : kDtypes) {
    if (pair.graft == dtype) return pair.torch;
  }
  TORCH_CHECK(false, "graft: PyTorch has no dtype for ", graft_dtype_name(dtype));
}

graft_scalar scalar_of(const c10::Scalar &scalar) {
  if (scalar.isBoolean()) return graft_scalar_bool(scalar.toBool());
  if (scalar.isIntegral(false)) {
    if (C10_LIKELY(scalar.type() != c10::ScalarType::UInt64)) return graft_scalar_int(scalar.toLong());
    return {GRAFT_U64, 0, {static_cast<int64_t>(scalar.toUInt64())}};  // 2^63 and above
  }
  if (scalar.isFloatingPoint()) return graft_scalar_float(scalar.toDouble());
  auto value = scalar.toComplexDouble();
  graft_scalar complex = {GRAFT_C128, 0, {0}};
  complex.value.c[0] = value.real();
  complex.value.c[1] = value.imag();
  return complex;
}

// The memory under a tensor may have been taken from it: untyped_storage().resize_(). Outside it is somebody else's.
void check_memory(const at::Tensor &tensor, const c10::StorageImpl *storage) {
  const size_t needed =
      C10_LIKELY(tensor.is_contiguous())
          ? static_cast<size_t>(tensor.numel() ? tensor.storage_offset() + tensor.numel() : 0) * tensor.itemsize()
          : at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(),
                                             static_cast<size_t>(tensor.storage_offset()));
  TORCH_CHECK(needed <= storage->nbytes(), "graft: a tensor of shape ", tensor.sizes(), " needs ", needed,
              " bytes of memory, and its storage has ", storage->nbytes(),
              ", since it was resized; resize it back before the tensor is used");
}

graft_tensor *borrow(graft_tensor_space *space, const at::Tensor &tensor) {
  return borrow_as(space, tensor, tensor.sizes(), tensor.strides());
}

graft_tensor *borrow_as(graft_tensor_space *space, const at::Tensor &tensor, c10::IntArrayRef sizes,
                        c10::IntArrayRef strides) {
  TORCH_CHECK(tensor.layout() == c10::kStrided, "graft: ", tensor.layout(),
              " tensors are not supported; use a dense tensor");
  TORCH_CHECK(sizes.size() <= GRAFT_MAX_DIMS, "graft: a tensor of ", sizes.size(), " dimensions; at most ",
              GRAFT_MAX_DIMS, " are supported");
  graft_view view = {dtype_of(tensor.scalar_type()),
                     static_cast<int32_t>(sizes.size()),
                     sizes.data(),
                     strides.data(),
                     tensor.storage_offset(),
                     tensor.is_conj(),
                     tensor.is_neg()};
  const c10::StorageImpl *storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (C10_UNLIKELY(any_storage_shrank.load(std::memory_order_relaxed) || tensor.is_cpu()))
    check_memory(tensor, storage);
  if (is_ours(tensor)) return graft_tensor_borrow(space, storage_of(storage), &view);
  TORCH_CHECK(tensor.device().is_cpu(), "graft: expected a tensor on ", c10::DeviceTypeName(c10::kPrivateUse1, true),
              " or cpu, but got one on ", tensor.device());
  view.offset = 0;
  auto *first = static_cast<char *>(const_cast<void *>(storage->data())) + tensor.storage_offset() * tensor.itemsize();
  uint64_t bytes = storage->nbytes() - static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
  return graft_tensor_borrow_host(space, first, bytes, &view);
}

at::Tensor wrap(graft_tensor *tensor, const TensorsByStorage &inputs) {
  graft_tensor_parts parts;
  graft_tensor_unpack(tensor, &parts);
  c10::Storage shared;
  if (const at::Tensor *input = inputs.find(parts.storage); C10_UNLIKELY(input != nullptr)) {
    shared = input->storage();
    graft_storage_release(parts.storage);
  } else {
    shared = wrap_storage(parts);
  }
  const graft_view &view = parts.view;
  auto type = c10::scalarTypeToTypeMeta(scalar_type_of(view.dtype));
  auto result = at::detail::make_tensor<c10::TensorImpl>(std::move(shared),
                                                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type);
  auto rank = static_cast<size_t>(view.ndim);
  c10::TensorImpl *impl = result.unsafeGetTensorImpl();
  impl->set_sizes_and_strides({view.sizes, rank}, {view.strides, rank});
  if (view.offset) impl->set_storage_offset(view.offset);
  if (view.conj) impl->_set_conj(true);
  if (view.neg) impl->_set_neg(true);
  return result;
}

void share_version(const at::Tensor &tensor, const TensorsByStorage &others) {
  const void *storage = tensor.storage().data_ptr().get_context();
  const at::Tensor *other = storage ? others.find(storage) : nullptr;
  if (other && !other->is_inference() && !tensor.is_inference())
    tensor.unsafeGetTensorImpl()->set_version_counter(other->unsafeGetTensorImpl()->version_counter());
}

}  // namespace torch_graft
