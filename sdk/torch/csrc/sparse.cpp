// Sparse tensors, COO and compressed (CSR, CSC): indices and values are dense tensors of the device. What only keeps
// the books is PyTorch's own, which serves any device; what reads indices or values is made of dense ops here, and
// nothing leaves the device. Products are in sparse_mm.cpp; ops that neither file names are refused by their key.
#include <ATen/ExpandUtils.h>
#include <ATen/native/SparseTensorUtils.h>
#include <ATen/ops/_coalesced_native.h>
#include <ATen/ops/_convert_indices_from_coo_to_csr.h>
#include <ATen/ops/_dimI_native.h>
#include <ATen/ops/_dimV_native.h>
#include <ATen/ops/_embedding_bag_dense_backward.h>
#include <ATen/ops/_embedding_bag_sparse_backward.h>
#include <ATen/ops/_indices_native.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_sparse_compressed_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors_native.h>
#include <ATen/ops/_sparse_coo_tensor_with_dims_native.h>
#include <ATen/ops/_to_dense_native.h>
#include <ATen/ops/_to_sparse_csc_native.h>
#include <ATen/ops/_to_sparse_csr_native.h>
#include <ATen/ops/_to_sparse_native.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/_values_native.h>
#include <ATen/ops/add_native.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cat_native.h>
#include <ATen/ops/ccol_indices_native.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/copy_sparse_to_sparse_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/dense_dim_native.h>
#include <ATen/ops/empty_like_native.h>
#include <ATen/ops/empty_native.h>
#include <ATen/ops/indices_native.h>
#include <ATen/ops/is_coalesced_native.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/native_norm_native.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/norm_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/resize_as_sparse_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/row_indices_native.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sparse_dim_native.h>
#include <ATen/ops/sparse_resize_and_clear_native.h>
#include <ATen/ops/sparse_resize_native.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/sum_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/zero_native.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_native.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

namespace {

// --- devices ---

// PyTorch's own functions make parts of sparse tensors on the current device: that of the call's first tensor, or the
// one that is asked for, has to be it.
inline std::optional<c10::Device> device_in(const at::Tensor &tensor) {
  return tensor.defined() ? std::optional<c10::Device>(tensor.device()) : std::nullopt;
}
inline std::optional<c10::Device> device_in(const at::ITensorListRef &tensors) {
  return tensors.size() ? device_in(tensors.front()) : std::nullopt;
}
inline std::optional<c10::Device> device_in(const std::optional<c10::Device> &device) {
  return device;
}
template <class T>
std::optional<c10::Device> device_in(const T &) {
  return std::nullopt;
}

template <auto *kFunction, class Signature>
struct Guarded;
template <auto *kFunction, class Result, class... Args>
struct Guarded<kFunction, Result (*)(Args...)> {
  static Result call(Args... args) {
    std::optional<c10::Device> device;
    ((device = device ? device : device_in(args)), ...);
    c10::OptionalDeviceGuard guard(device);
    return kFunction(std::forward<Args>(args)...);
  }
};

template <auto *kFunction>
auto guarded() {
  return TORCH_FN((Guarded<kFunction, decltype(kFunction)>::call));
}

// --- COO: parts ---

at::Tensor with_values(const at::Tensor &self, const at::Tensor &indices, const at::Tensor &values, bool coalesced) {
  at::TensorOptions options = values.options().layout(at::kSparse);
  return at::_sparse_coo_tensor_unsafe(indices, values, self.sizes(), options, coalesced);
}

// --- COO: duplicates ---

// The indices of a dim. One that is out of range is reported as index_select does it; it would name another element.
at::Tensor checked_indices(const at::Tensor &self, int64_t dim) {
  at::Tensor indices = self._indices()[dim], zeros = at::zeros({1}, indices.options()).expand({self.size(dim)});
  return indices.add(zeros.index_select(0, indices));
}

// Where each element stands in the tensor, its dims of indices made one.
at::Tensor places_of(const at::Tensor &self) {
  if (self.sparse_dim() == 0) return at::zeros({self._nnz()}, self._indices().options());
  at::Tensor places = checked_indices(self, 0);
  for (int64_t dim = 1; dim < self.sparse_dim(); dim++) places.mul_(self.size(dim)).add_(checked_indices(self, dim));
  return places;
}

// The reverse: [dims of indices, places].
at::Tensor indices_of(const at::Tensor &places, at::IntArrayRef sizes) {
  if (sizes.empty()) return at::zeros({0, places.numel()}, places.options());
  std::vector<at::Tensor> indices(sizes.size());
  at::Tensor left = places;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    indices[dim] = left.remainder(sizes[dim]);
    left = left.div(sizes[dim], "floor");
  }
  return at::stack(indices);
}

at::Tensor coalesce(const at::Tensor &self) {
  if (self.is_coalesced()) return self;
  at::Tensor values = self._values();
  if (self._nnz() < 2) return self.clone()._coalesced_(true);
  auto [places, where, counts] = at::_unique2(places_of(self), true, true, false);
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = places.numel();
  at::Tensor sums = at::zeros(sizes, values.options()).index_add_(0, where, values);
  at::Tensor indices = indices_of(places, self.sizes().slice(0, static_cast<size_t>(self.sparse_dim())));
  return with_values(self, indices, sums, true);
}

// --- COO: sums ---

// A dense tensor as the rows that a COO tensor of its shape has values for: [places, dims of values].
at::Tensor rows_of(const at::Tensor &dense, const at::Tensor &sparse) {
  std::vector<int64_t> sizes = sparse._values().sizes().vec();
  sizes[0] = -1;
  if (dense.numel() == 0) sizes[0] = c10::multiply_integers(sparse.sizes().slice(0, sparse.sparse_dim()));
  return dense.reshape(sizes);
}

at::Tensor &take_over(at::Tensor &out, const at::Tensor &result) {
  TORCH_CHECK(out.is_sparse(), "expected a sparse COO tensor to write to, got a tensor of layout ", out.layout());
  TORCH_CHECK(at::canCast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  auto *impl = at::sparse::get_sparse_impl(out);
  impl->resize_(result.sparse_dim(), result.dense_dim(), result.sizes());
  impl->set_indices_and_values_unsafe(result._indices(), result._values().to(out.scalar_type()));
  impl->set_coalesced(result.is_coalesced());
  return out;
}

at::Tensor sum_of_sparse(const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha,
                         at::ScalarType type) {
  TORCH_CHECK(self.sizes() == other.sizes() && self.sparse_dim() == other.sparse_dim(),
              "add: expected two sparse tensors of one shape and as many sparse dims, got ", self.sizes(), " of ",
              self.sparse_dim(), " and ", other.sizes(), " of ", other.sparse_dim());
  at::Tensor indices = at::cat({self._indices(), other._indices()}, 1);
  at::Tensor values = at::cat({self._values().to(type), other._values().to(type).mul(alpha)});
  at::Tensor sum = with_values(self, indices, values, false);
  return self.is_coalesced() && other.is_coalesced() ? coalesce(sum) : sum;
}

at::Tensor &add_to_dense(at::Tensor &out, const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha,
                         at::ScalarType type) {
  TORCH_CHECK(self.sizes() == other.sizes(), "add: expected a sparse tensor of the dense one's shape ", self.sizes(),
              ", got ", other.sizes());
  TORCH_CHECK(at::canCast(type, out.scalar_type()), "result type ", type, " can't be cast to the desired output type ",
              out.scalar_type());
  if (!out.is_same(self)) out.resize_(self.sizes()).copy_(self);
  if (other._nnz() == 0) return out;
  const bool in_place = out.is_contiguous() && out.scalar_type() == type;
  at::Tensor sum = in_place ? out : self.to(type).clone(at::MemoryFormat::Contiguous);
  rows_of(sum, other).index_add_(0, places_of(other), other._values().to(type), alpha);
  return in_place ? out : out.copy_(sum);
}

at::Tensor &add_out(const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha, at::Tensor &out) {
  at::ScalarType type = at::result_type(self, other);
  TORCH_CHECK(!self.is_sparse() || other.is_sparse(),
              "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  if (self.is_sparse()) return take_over(out, sum_of_sparse(self, other, alpha, type));
  return add_to_dense(out, self, other, alpha, type);
}

// --- COO: products by element ---

// Of a sparse tensor and a number, or a dense tensor of its shape.
at::Tensor product_by_element(const at::Tensor &self, const at::Tensor &other) {
  const at::Tensor &sparse = self.is_sparse() ? self : other, &factor = self.is_sparse() ? other : self;
  TORCH_CHECK_NOT_IMPLEMENTED(!factor.is_sparse(),
                              "graft: aten::mul does not take two sparse COO tensors; make one "
                              "dense, by to_dense()");
  if (factor.dim() == 0) {
    return with_values(sparse, sparse._indices().clone(), sparse._values().mul(factor), sparse.is_coalesced());
  }
  TORCH_CHECK(sparse.sizes() == factor.sizes(), "mul: expected a dense tensor of the sparse one's shape ",
              sparse.sizes(), ", got ", factor.sizes());
  at::Tensor factors = rows_of(factor, sparse).index_select(0, places_of(sparse));
  return with_values(sparse, sparse._indices().clone(), sparse._values().mul(factors), sparse.is_coalesced());
}

at::Tensor &mul_out(const at::Tensor &self, const at::Tensor &other, at::Tensor &out) {
  return take_over(out, product_by_element(self, other));
}

at::Tensor &mul_(at::Tensor &self, const at::Tensor &other) {
  if (self.is_sparse() && other.dim() == 0 && !other.is_sparse()) {
    self._values().mul_(other);
    return self;
  }
  return take_over(self, product_by_element(self, other));
}

void check_divisor(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.is_sparse() && !other.is_sparse() && other.dim() == 0,
              "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape ", other.sizes(),
              " for divisor)");
}

at::Tensor quotient(const at::Tensor &self, const at::Tensor &other) {
  check_divisor(self, other);
  return with_values(self, self._indices().clone(), self._values().div(other), self.is_coalesced());
}

at::Tensor &div_(at::Tensor &self, const at::Tensor &other) {
  check_divisor(self, other);
  self._values().div_(other);
  return self;
}

at::Tensor &div_out(const at::Tensor &self, const at::Tensor &other, at::Tensor &out) {
  return take_over(out, quotient(self, other));
}

at::Tensor norm(const at::Tensor &self, const at::Scalar &p) {
  return at::native::norm_sparse(self, p);
}

at::Tensor norm_dim(const at::Tensor &self, const std::optional<at::Scalar> &p, at::IntArrayRef dim, bool keepdim,
                    std::optional<at::ScalarType> dtype) {
  return at::native::norm_sparse(self, p, dim, keepdim, dtype);
}

// --- COO: what a dense tensor has where a sparse one has values ---

// What a sparse tensor has at these places; 0 where it has nothing.
at::Tensor values_at(const at::Tensor &self, const at::Tensor &places) {
  at::Tensor elements = coalesce(self), values = elements._values();
  std::vector<int64_t> sizes = values.sizes().vec(), ones(sizes.size(), 1);
  sizes[0] = ones[0] = places.numel();
  if (self._nnz() == 0) return at::zeros(sizes, values.options());
  at::Tensor have = places_of(elements).contiguous();
  at::Tensor where = at::searchsorted(have, places.contiguous()).clamp_max_(have.numel() - 1);
  at::Tensor found = have.index_select(0, where).eq(places).view(ones);
  return values.index_select(0, where).masked_fill_(found.logical_not(), 0);
}

at::Tensor sparse_mask(const at::Tensor &self, const at::Tensor &mask) {
  TORCH_CHECK(self.sizes() == mask.sizes(), "sparse_mask(): operands have incompatible sizes; self has size ",
              self.sizes(), " but mask has size ", mask.sizes());
  if (self.is_same(mask)) return self;
  TORCH_CHECK(!self.is_sparse() || self.sparse_dim() == mask.sparse_dim(), "sparse_mask(): the tensors have ",
              self.sparse_dim(), " and ", mask.sparse_dim(), " sparse dims");
  at::Tensor places = places_of(mask);
  at::Tensor values = self.is_sparse() ? values_at(self, places) : rows_of(self, mask).index_select(0, places);
  return with_values(mask, mask._indices().clone(), values, mask.is_coalesced());
}

// --- conversions ---

void check_plain(const at::Tensor &self) {
  TORCH_CHECK_NOT_IMPLEMENTED(self.layout() == at::kSparseCsr || self.layout() == at::kSparseCsc,
                              "graft: ", self.layout(), " tensors are not supported; use CSR, CSC or COO");
}

// PyTorch counts on indices that lie one after the other, as its own nonzero gives them for a dim.
at::Tensor compact(const at::Tensor &self) {
  if (self.layout() == at::kSparse) {
    if (self._indices().is_contiguous()) return self;
    return with_values(self, self._indices().contiguous(), self._values(), self.is_coalesced());
  }
  const bool by_rows = self.layout() == at::kSparseCsr;
  at::Tensor starts = by_rows ? self.crow_indices() : self.ccol_indices();
  at::Tensor plain = by_rows ? self.col_indices() : self.row_indices(), values = self.values();
  if (starts.is_contiguous() && plain.is_contiguous()) return self;
  return at::_sparse_compressed_tensor_unsafe(starts.contiguous(), plain.contiguous(), values, self.sizes(),
                                              values.options().layout(self.layout()));
}

at::Tensor dense_to_coo_dims(const at::Tensor &self, int64_t sparse_dim) {
  return compact(at::native::dense_to_sparse(self, sparse_dim));
}

at::Tensor dense_to_sparse(const at::Tensor &self, std::optional<at::Layout> layout, at::OptionalIntArrayRef blocks,
                           std::optional<int64_t> dense_dim) {
  return compact(at::native::dense_to_sparse(self, layout, blocks, dense_dim));
}

template <auto *kToCompressed>
at::Tensor compacted(const at::Tensor &self, std::optional<int64_t> dense_dim) {
  return compact(kToCompressed(self, dense_dim));
}

at::Tensor coo_to_coo_dims(const at::Tensor &self, int64_t sparse_dim) {
  return at::native::sparse_coo_to_sparse(self, sparse_dim);
}

at::Tensor coo_to_sparse(const at::Tensor &self, std::optional<at::Layout> layout, at::OptionalIntArrayRef blocks,
                         std::optional<int64_t> dense_dim) {
  return at::native::sparse_coo_to_sparse(self, layout, blocks, dense_dim);
}

at::Tensor compressed_to_coo_dims(const at::Tensor &self, int64_t sparse_dim) {
  return at::native::sparse_compressed_to_sparse(self, sparse_dim);
}

at::Tensor compressed_to_sparse(const at::Tensor &self, std::optional<at::Layout> layout,
                                at::OptionalIntArrayRef blocks, std::optional<int64_t> dense_dim) {
  check_plain(self);
  return at::native::sparse_compressed_to_sparse(self, layout, blocks, dense_dim);
}

// Row r begins where the first of the sorted rows is r or more.
at::Tensor &coo_to_csr_out(const at::Tensor &rows, int64_t count, bool is_32_bits, at::Tensor &out) {
  at::Tensor starts = at::searchsorted(rows.contiguous(), at::arange(count + 1, rows.options()), is_32_bits, false);
  return out.resize_({count + 1}).copy_(starts);
}

// The row of each element: the last one that begins where the element stands or before.
at::Tensor rows_of_elements(const at::Tensor &starts, int64_t count) {
  at::Tensor element = at::arange(count, starts.options());
  return at::searchsorted(starts.contiguous(), element, starts.scalar_type() == at::kInt, true).sub_(1);
}

void check_no_batch(const at::Tensor &starts) {
  TORCH_CHECK_NOT_IMPLEMENTED(starts.dim() == 1,
                              "graft: batches of compressed sparse tensors are not supported; make "
                              "a tensor of each, or use a dense tensor");
}

at::Tensor &csr_to_coo_out(const at::Tensor &starts, const at::Tensor &plain, bool is_32_bits, bool transpose,
                           at::Tensor &out) {
  check_no_batch(starts);
  at::Tensor rows = rows_of_elements(starts, plain.numel());
  out.resize_({2, plain.numel()});
  out.select(0, transpose ? 1 : 0).copy_(rows);
  out.select(0, transpose ? 0 : 1).copy_(plain);
  return out;
}

// --- compressed: by rows or by columns ---

// CSR of CSC and the reverse: the elements in the order of their other index.
at::Tensor flipped(const at::Tensor &self) {
  const bool by_rows = self.layout() == at::kSparseCsr;
  at::Tensor starts = by_rows ? self.crow_indices() : self.ccol_indices();
  at::Tensor plain = by_rows ? self.col_indices() : self.row_indices(), values = self.values();
  check_no_batch(starts);
  auto [sorted, order] = at::sort(plain, true, 0, false);
  at::Tensor rows = rows_of_elements(starts, plain.numel()).index_select(0, order).to(plain.scalar_type());
  at::Tensor begins =
      at::_convert_indices_from_coo_to_csr(sorted, self.size(by_rows ? 1 : 0), starts.scalar_type() == at::kInt);
  at::TensorOptions options = values.options().layout(by_rows ? at::kSparseCsc : at::kSparseCsr);
  return at::_sparse_compressed_tensor_unsafe(begins, rows, values.index_select(0, order), self.sizes(), options);
}

at::Tensor compressed_to_csr(const at::Tensor &self, std::optional<int64_t>) {
  check_plain(self);
  return self.layout() == at::kSparseCsr ? self.clone() : flipped(self);
}

at::Tensor compressed_to_csc(const at::Tensor &self, std::optional<int64_t>) {
  check_plain(self);
  return self.layout() == at::kSparseCsc ? self.clone() : flipped(self);
}

at::Tensor compressed_to_dense(const at::Tensor &self, std::optional<at::ScalarType> type, std::optional<bool>) {
  check_plain(self);
  return self.to_sparse().to_dense(type);
}

// --- compressed: whether indices are what they must be ---

bool all_of(const at::Tensor &condition) {
  return condition.all().item<bool>();
}

void validate_indices(bool by_rows, const at::Tensor &starts, const at::Tensor &plain, int64_t count, int64_t size,
                      int64_t elements) {
  const std::string first = by_rows ? "crow_indices" : "ccol_indices", second = by_rows ? "col_indices" : "row_indices";
  const std::string rows = by_rows ? "nrows" : "ncols", columns = by_rows ? "ncols" : "nrows";
  check_no_batch(starts);
  TORCH_CHECK(starts.size(-1) == count + 1, first, " have wrong shape: ", first, ".shape[-1] = ", starts.size(-1),
              " is not equal to ", rows, " + 1 = ", count + 1);
  TORCH_CHECK(plain.size(-1) == elements, second, " have wrong shape: ", second, ".shape[-1] = ", plain.size(-1),
              " is not equal to nnz = ", elements);
  TORCH_CHECK(all_of(starts[0].eq(0)), "`", first, "[..., 0] == 0` is not satisfied.");
  TORCH_CHECK(all_of(starts[-1].eq(elements)), "`", first, "[..., -1] == nnz` is not satisfied.");
  at::Tensor lengths = starts.diff();
  TORCH_CHECK(all_of(lengths.ge(0).logical_and_(lengths.le(size))), "`0 <= ", first, "[..., 1:] - ", first,
              "[..., :-1] <= ", columns, "` is not satisfied.");
  TORCH_CHECK(all_of(plain.ge(0).logical_and_(plain.lt(size))), "`0 <= ", second, " < ", columns,
              "` is not satisfied.");
  at::Tensor places = rows_of_elements(starts, elements).to(at::kLong).mul_(size).add_(plain);
  TORCH_CHECK(all_of(places.diff().gt(0)), "`", second, "[..., ", first, "[..., i - 1]:", first,
              "[..., i]] for all i = 1, ..., ", rows,
              " are sorted and distinct along the last dimension values` is not satisfied.");
}

// --- compressed: sums ---

// By way of COO tensors, which keep the order of a tensor's elements.
at::Tensor &add_compressed_out(const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha,
                               at::Tensor &out) {
  if (self.layout() == at::kStrided) return at::add_out(out, self, other.to_sparse(), alpha);
  if (other.layout() == at::kStrided) {
    at::Tensor scaled = other.mul(alpha);
    return write_result(out, at::add(scaled, self.to_sparse()));
  }
  TORCH_CHECK(out.layout() == self.layout() && other.layout() == self.layout(), "add: expected tensors of layout ",
              self.layout(), ", got ", other.layout(), " and for the result ", out.layout());
  at::Tensor sum = at::add(self.to_sparse(), other.to_sparse(), alpha);
  return out.copy_(self.layout() == at::kSparseCsc ? sum.to_sparse_csc() : sum.to_sparse_csr());
}

// --- gradients of tables ---

at::Tensor embedding_bag_backward(const at::Tensor &grad, const at::Tensor &indices, const at::Tensor &offsets,
                                  const at::Tensor &bags, const at::Tensor &bag_sizes, const at::Tensor &maxima,
                                  int64_t rows, bool by_frequency, int64_t mode, bool is_sparse,
                                  const std::optional<at::Tensor> &weights, int64_t padding) {
  return is_sparse ? at::_embedding_bag_sparse_backward(grad, indices, offsets, bags, bag_sizes, rows, by_frequency,
                                                        mode, weights, padding)
                   : at::_embedding_bag_dense_backward(grad, indices, bags, bag_sizes, maxima, rows, by_frequency, mode,
                                                       weights, padding);
}

}  // namespace

// --- what a dense tensor becomes, indices, and gradients of dense tables ---

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_to_sparse", guarded<dense_to_sparse>());
  m.impl("_to_sparse.sparse_dim", guarded<dense_to_coo_dims>());
  m.impl("_to_sparse_csr", guarded<compacted<at::native::dense_to_sparse_csr>>());
  m.impl("_to_sparse_csc", guarded<compacted<at::native::dense_to_sparse_csc>>());
  m.impl("_convert_indices_from_coo_to_csr.out", guarded<coo_to_csr_out>());
  m.impl("_convert_indices_from_csr_to_coo.out", guarded<csr_to_coo_out>());
  m.impl("_validate_compressed_sparse_indices", guarded<validate_indices>());
  m.impl("_embedding_bag_backward", guarded<embedding_bag_backward>());
}

// --- COO ---

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_sparse_coo_tensor_with_dims", guarded<at::native::new_with_dims_sparse>());
  m.impl("_sparse_coo_tensor_with_dims_and_tensors", guarded<at::native::new_with_dims_and_tensor_sparse_symint>());
  m.impl("empty.memory_format", guarded<at::native::empty_sparse_symint>());
  m.impl("empty_like", guarded<at::native::empty_like_sparse_coo>());
  m.impl("zeros.out", guarded<at::native::zeros_sparse_out>());
  m.impl("zero_", guarded<at::native::zero_sparse_>());
  m.impl("clone", guarded<at::native::clone_sparse>());
  m.impl("copy_", guarded<at::native::copy_sparse_wrapper_>());
  m.impl("copy_sparse_to_sparse_", guarded<at::native::copy_sparse_>());
  m.impl("sparse_resize_", guarded<at::native::sparse_resize_>());
  m.impl("sparse_resize_and_clear_", guarded<at::native::sparse_resize_and_clear_>());
  m.impl("resize_as_sparse_", guarded<at::native::resize_as_sparse_>());

  m.impl("sparse_dim", guarded<at::native::sparse_dim_sparse>());
  m.impl("dense_dim", guarded<at::native::dense_dim_sparse>());
  m.impl("_dimI", guarded<at::native::sparse_dim_sparse>());
  m.impl("_dimV", guarded<at::native::dense_dim_sparse>());
  m.impl("_nnz", guarded<at::native::_nnz_sparse>());
  m.impl("is_coalesced", guarded<at::native::is_coalesced_sparse>());
  m.impl("_coalesced_", guarded<at::native::_coalesced_sparse_>());
  m.impl("_indices", guarded<at::native::_indices_sparse>());
  m.impl("_values", guarded<at::native::_values_sparse>());
  m.impl("indices", guarded<at::native::indices_sparse>());
  m.impl("values", guarded<at::native::values_sparse>());

  m.impl("_coalesce", guarded<coalesce>());
  m.impl("_to_dense", guarded<at::native::sparse_to_dense>());
  m.impl("_to_sparse", guarded<coo_to_sparse>());
  m.impl("_to_sparse.sparse_dim", guarded<coo_to_coo_dims>());
  m.impl("_to_sparse_csr", guarded<compacted<at::native::coo_to_sparse_csr>>());
  m.impl("_to_sparse_csc", guarded<compacted<at::native::coo_to_sparse_csc>>());
  m.impl("sparse_mask", guarded<sparse_mask>());
  m.impl("permute", guarded<at::native::permute_sparse_coo>());
  m.impl("unsqueeze", guarded<at::native::unsqueeze_sparse>());
  m.impl("cat", guarded<at::native::cat_sparse>());

  m.impl("add.Tensor", guarded<at::native::add_sparse>());
  m.impl("add_.Tensor", guarded<at::native::add_sparse_>());
  m.impl("add.out", guarded<add_out>());
  m.impl("sub.Tensor", guarded<at::native::sub_sparse>());
  m.impl("sub_.Tensor", guarded<at::native::sub_sparse_>());
  m.impl("sub.out", guarded<at::native::sub_out_sparse>());
  m.impl("mul.Tensor", guarded<product_by_element>());
  m.impl("mul_.Tensor", guarded<mul_>());
  m.impl("mul.out", guarded<mul_out>());
  m.impl("div.Tensor", guarded<quotient>());
  m.impl("div_.Tensor", guarded<div_>());
  m.impl("div.out", guarded<div_out>());
  m.impl("neg", guarded<at::native::neg_sparse>());
  m.impl("neg_", guarded<at::native::neg_sparse_>());
  m.impl("neg.out", guarded<at::native::neg_out_sparse>());
  m.impl("sum", guarded<at::native::sum_coo>());
  m.impl("sum.dim_IntList", guarded<at::native::sum_sparse_coo>());
  m.impl("native_norm", guarded<norm>());
  m.impl("native_norm.ScalarOpt_dim_dtype", guarded<norm_dim>());
  m.impl("norm.ScalarOpt_dim", guarded<at::native::sparse_norm>());
  m.impl("norm.ScalarOpt_dim_dtype", guarded<at::native::sparse_dtype_norm>());
}

// --- CSR and CSC ---

TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("empty.memory_format", guarded<at::native::empty_sparse_compressed_symint>());
  m.impl("empty_like", guarded<at::native::empty_like_sparse_csr>());
  m.impl("zero_", guarded<at::native::zero_sparse_csr_>());
  m.impl("clone", guarded<at::native::clone_sparse_compressed>());
  m.impl("copy_", guarded<at::native::copy_sparse_compressed_>());
  m.impl("resize_", guarded<at::native::resize_sparse_csr_>());
  m.impl("resize_as_sparse_", guarded<at::native::resize_as_sparse_compressed_>());

  m.impl("sparse_dim", guarded<at::native::sparse_dim_sparse_csr>());
  m.impl("dense_dim", guarded<at::native::dense_dim_sparse_csr>());
  m.impl("_nnz", guarded<at::native::_nnz_sparse_csr>());
  m.impl("crow_indices", guarded<at::native::crow_indices_sparse_csr>());
  m.impl("col_indices", guarded<at::native::col_indices_sparse_csr>());
  m.impl("ccol_indices", guarded<at::native::ccol_indices_sparse_csr>());
  m.impl("row_indices", guarded<at::native::row_indices_sparse_csr>());
  m.impl("values", guarded<at::native::values_sparse_csr>());

  m.impl("_to_dense", guarded<compressed_to_dense>());
  m.impl("_to_sparse", guarded<compressed_to_sparse>());
  m.impl("_to_sparse.sparse_dim", guarded<compressed_to_coo_dims>());
  m.impl("_to_sparse_csr", guarded<compressed_to_csr>());
  m.impl("_to_sparse_csc", guarded<compressed_to_csc>());

  m.impl("add.Tensor", guarded<at::native::add_sparse_csr>());
  m.impl("add_.Tensor", guarded<at::native::add_sparse_csr_>());
  m.impl("add.out", guarded<add_compressed_out>());
  m.impl("mul.Tensor", guarded<at::native::mul_sparse_csr>());
  m.impl("mul.out", guarded<at::native::mul_out_sparse_csr>());
  m.impl("mul.Scalar", guarded<at::native::mul_scalar_sparse_csr>());
  m.impl("mul_.Scalar", guarded<at::native::mul__scalar_sparse_csr>());
  m.impl("neg", guarded<at::native::neg_sparse_csr>());
  m.impl("sum", guarded<at::native::sum_csr>());
}

}  // namespace torch_graft
