// The gradient of segment_reduce, which PyTorch has on the CPU and CUDA alone.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/segment_reduce.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <limits>

#include "bridge.h"

namespace torch_graft {

namespace {

using Optional = std::optional<at::Tensor>;

// Which segment each element of the data is in, along the axis, and whether it is in any.
struct Segments {
  int64_t axis;
  at::Tensor part, inside;

  at::Tensor of_each(const at::Tensor &segments) const { return segments.gather(axis, part); }

  // How many elements of its segment are such, for each element.
  at::Tensor count(const at::Tensor &such, const at::Tensor &segments) const {
    at::Tensor none = at::zeros(segments.sizes(), segments.options().dtype(at::kFloat));
    return of_each(none.scatter_add_(axis, part, such.to(at::kFloat)));
  }
};

// One number a segment as one that is as large as a result: [.., segments] -> [.., segments, 1, ..].
at::Tensor with_dims_behind(const at::Tensor &numbers, int64_t dims) {
  std::vector<int64_t> sizes = numbers.sizes().vec();
  sizes.resize(static_cast<size_t>(dims), 1);
  return numbers.reshape(sizes);
}

Segments segments_of(const at::Tensor &data, const at::Tensor &ends, int64_t axis) {
  int64_t last = ends.size(-1) - 1;
  std::vector<int64_t> sizes = ends.sizes().vec();
  sizes.back() = data.size(axis);
  at::Tensor places = at::arange(data.size(axis), ends.options()).expand(sizes).contiguous();
  at::Tensor part = at::searchsorted(ends.contiguous(), places, false, true);
  at::Tensor inside = with_dims_behind(part.le(last), data.dim()).expand(data.sizes());
  return {axis, with_dims_behind(part.clamp_max(last), data.dim()).expand(data.sizes()), inside};
}

// The product of the others of its segment, for each element: by division, but where that would be by zero or NaN.
at::Tensor product_of_others(const at::Tensor &output, const at::Tensor &data, const Segments &segments,
                             const Optional &lengths, const Optional &offsets,
                             const std::optional<at::Scalar> &initial) {
  at::Tensor zero = data.eq(0).logical_and_(segments.inside), nan = data.isnan().logical_and_(segments.inside);
  at::Tensor special = zero.logical_or(nan), one = at::full({}, 1, data.options());
  at::Tensor rest =
      at::segment_reduce(at::where(special, one, data), "prod", lengths, {}, offsets, segments.axis, true, initial);
  at::Tensor product = segments.of_each(rest);
  at::Tensor other_zeros = segments.count(zero, output).sub_(zero.to(at::kFloat));
  at::Tensor other_nans = segments.count(nan, output).sub_(nan.to(at::kFloat));
  product = at::where(other_zeros.gt(0), at::zeros({}, data.options()), product);
  product =
      at::where(other_nans.gt(0), at::full({}, std::numeric_limits<double>::quiet_NaN(), data.options()), product);
  return at::where(special, product, segments.of_each(output).div(data));
}

// PyTorch's autograd gives what is not there as a tensor that is undefined.
Optional known(const Optional &given) {
  return given && given->defined() ? given : std::nullopt;
}

// Of a maximum or minimum, elements that are equal to it share.
at::Tensor segment_reduce_backward(const at::Tensor &grad, const at::Tensor &output, const at::Tensor &data,
                                   c10::string_view reduce, const Optional &given_lengths,
                                   const Optional &given_offsets, int64_t axis,
                                   const std::optional<at::Scalar> &initial) {
  const Optional lengths = known(given_lengths), offsets = known(given_offsets);
  if (data.numel() == 0 || output.numel() == 0) return at::zeros_like(data, at::MemoryFormat::Contiguous);
  axis = at::maybe_wrap_dim(axis, data.dim());
  TORCH_CHECK(lengths || offsets, "segment_reduce: either lengths or offsets must be given");
  at::Tensor ends =
      lengths ? lengths->cumsum(axis).to(lengths->scalar_type()) : offsets->narrow(axis, 1, offsets->size(axis) - 1);
  Segments segments = segments_of(data, ends, axis);
  at::Tensor result = segments.of_each(grad);
  if (reduce == "mean") {
    at::Tensor sizes = lengths ? *lengths : offsets->diff(1, axis);
    result = result.div(segments.of_each(with_dims_behind(sizes, data.dim()).expand(output.sizes())));
  } else if (reduce == "max" || reduce == "min") {
    at::Tensor hit = data.eq(segments.of_each(output)).logical_or_(data.isnan()).logical_and_(segments.inside);
    at::Tensor shares = result.div(segments.count(hit, output).to(result.scalar_type()));
    result = at::where(hit, shares, at::zeros({}, result.options()));
  } else if (reduce == "prod") {
    result = result.mul(product_of_others(output, data, segments, lengths, offsets, initial));
  }
  return at::where(segments.inside, result, at::zeros({}, result.options()));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_segment_reduce_backward", TORCH_FN(segment_reduce_backward));
}

}  // namespace torch_graft
