// What PyTorch has on the CPU and CUDA alone though other ops say it: compositions, in which nothing leaves the device.
#include <ATen/ExpandUtils.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_ctc_loss.h>
#include <ATen/ops/_ctc_loss_backward.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/_unique2.h>
#include <ATen/ops/addbmm.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/cholesky_solve.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_eig.h>
#include <ATen/ops/linalg_lu_factor_ex.h>
#include <ATen/ops/logcumsumexp.h>
#include <ATen/ops/lu_unpack.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/native_batch_norm_backward.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/unique_consecutive.h>
#include <ATen/ops/var_mean.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

at::Tensor &write_result(at::Tensor &out, const at::Tensor &result) {
  TORCH_CHECK(at::canCast(result.scalar_type(), out.scalar_type()), "result type ", result.scalar_type(),
              " can't be cast to the desired output type ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

at::Tensor wide(const at::Tensor &x) {
  return at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

std::vector<int64_t> all_but_channels(const at::Tensor &x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.dim(); d++)
    if (d != 1) dims.push_back(d);
  return dims;
}

void move_on(const std::optional<at::Tensor> &running, const at::Tensor &now, double momentum) {
  if (running && running->defined()) running->lerp_(now.to(running->scalar_type()), momentum);
}

namespace {

using Optional = std::optional<at::Tensor>;

// --- sorting ---

std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor &self, bool sorted, bool inverse) {
  auto [values, places, counts] = at::_unique2(self, sorted, inverse, false);
  return {values, places};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> unique_dim_consecutive(const at::Tensor &self, int64_t dim, bool inverse,
                                                                      bool counts) {
  return at::unique_consecutive(self, inverse, counts, dim);
}

// The sorted row puts NaNs last and keeps their order: the first NaN is where the numbers end.
std::tuple<at::Tensor &, at::Tensor &> median_to(const at::Tensor &self, int64_t dim, bool keepdim, bool skip_nan,
                                                 at::Tensor &values, at::Tensor &indices) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  at::Tensor row = self.dim() ? self : self.unsqueeze(0);
  int64_t count = row.size(dim);
  TORCH_CHECK_INDEX(count > 0, "median(): Expected reduction dim ", dim, " to have non-zero size.");
  TORCH_CHECK(values.scalar_type() == self.scalar_type(), "Expected out tensor to have dtype ", self.scalar_type(),
              ", but got ", values.scalar_type(), " instead");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "Expected out tensor to have dtype ", at::kLong, ", but got ",
              indices.scalar_type(), " instead");
  auto [sorted, order] = at::sort(row, true, dim, false);
  at::Tensor numbers = row.isnan().logical_not_().sum(dim, true);
  at::Tensor middle = skip_nan
                          ? numbers.sub(1).clamp_min_(0).div_(2, "floor")
                          : at::where(numbers.lt(count), numbers, at::full({}, (count - 1) / 2, numbers.options()));
  at::Tensor value = sorted.gather(dim, middle), place = order.gather(dim, middle);
  bool squeezes = !keepdim || self.dim() == 0;
  write_result(values, squeezes ? value.squeeze(dim) : value);
  write_result(indices, squeezes ? place.squeeze(dim) : place);
  return std::forward_as_tuple(values, indices);
}

std::tuple<at::Tensor &, at::Tensor &> median_out(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values,
                                                  at::Tensor &indices) {
  return median_to(self, dim, keepdim, false, values, indices);
}

std::tuple<at::Tensor &, at::Tensor &> nanmedian_out(const at::Tensor &self, int64_t dim, bool keepdim,
                                                     at::Tensor &values, at::Tensor &indices) {
  return median_to(self, dim, keepdim, true, values, indices);
}

at::Tensor &isin_scalar_out(const at::Tensor &elements, const at::Scalar &test, bool, bool invert, at::Tensor &out) {
  return write_result(out, invert ? elements.ne(test) : elements.eq(test));
}

at::Tensor &isin_of_scalar_out(const at::Scalar &element, const at::Tensor &tests, bool, bool invert, at::Tensor &out) {
  at::Tensor found = tests.eq(element).any();
  return write_result(out, invert ? found.logical_not() : found);
}

// --- under another name ---

std::tuple<at::Tensor, at::Tensor> aminmax(const at::Tensor &self) {
  return at::aminmax(self);
}

std::tuple<at::Tensor, at::Tensor> aminmax_dim(const at::Tensor &self, int64_t dim, bool keepdim) {
  return at::aminmax(self, dim, keepdim);
}

at::Tensor logcumsumexp(const at::Tensor &self, int64_t dim) {
  return at::logcumsumexp(self, dim);
}

at::Tensor &logcumsumexp_out(const at::Tensor &self, int64_t dim, at::Tensor &out) {
  return write_result(out, at::logcumsumexp(self, dim));
}

at::Tensor dequantize(const at::Tensor &self) {
  return self.to(at::kFloat);
}

at::Tensor left_shift(const at::Tensor &self, const at::Tensor &other) {
  return at::bitwise_left_shift(self, other);
}

at::Tensor left_shift_scalar(const at::Tensor &self, const at::Scalar &other) {
  return at::bitwise_left_shift(self, other);
}

at::Tensor &left_shift_(at::Tensor &self, const at::Tensor &other) {
  return self.bitwise_left_shift_(other);
}

at::Tensor &left_shift_scalar_(at::Tensor &self, const at::Scalar &other) {
  return self.bitwise_left_shift_(other);
}

at::Tensor right_shift(const at::Tensor &self, const at::Tensor &other) {
  return at::bitwise_right_shift(self, other);
}

at::Tensor right_shift_scalar(const at::Tensor &self, const at::Scalar &other) {
  return at::bitwise_right_shift(self, other);
}

at::Tensor &right_shift_(at::Tensor &self, const at::Tensor &other) {
  return self.bitwise_right_shift_(other);
}

at::Tensor &right_shift_scalar_(at::Tensor &self, const at::Scalar &other) {
  return self.bitwise_right_shift_(other);
}

at::Tensor add_relu(const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha) {
  return self.add(other, alpha).relu_();
}

at::Tensor add_relu_scalar(const at::Tensor &self, const at::Scalar &other, const at::Scalar &alpha) {
  return self.add(other, alpha).relu_();
}

at::Tensor &add_relu_(at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha) {
  return self.add_(other, alpha).relu_();
}

at::Tensor &add_relu_scalar_(at::Tensor &self, const at::Scalar &other, const at::Scalar &alpha) {
  return self.add_(other, alpha).relu_();
}

at::Tensor &add_relu_out(const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha, at::Tensor &out) {
  return write_result(out, self.add(other, alpha).relu_());
}

// --- shape ---

at::Tensor &narrow_copy_out(const at::Tensor &self, int64_t dim, int64_t start, int64_t length, at::Tensor &out) {
  return write_result(out, self.narrow(dim, start, length));
}

at::Tensor channel_shuffle(const at::Tensor &self, int64_t groups) {
  TORCH_CHECK(self.dim() > 2, "channel_shuffle expects input with > 2 dims, but got input with sizes ", self.sizes());
  TORCH_CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups:", groups);
  int64_t channels = self.size(1);
  TORCH_CHECK(channels % groups == 0, "Number of channels must be divisible by groups. Got ", channels,
              " channels and ", groups, " groups.");
  if (self.numel() == 0) return self.alias();
  return self.unflatten(1, {groups, channels / groups})
      .transpose(1, 2)
      .flatten(1, 2)
      .contiguous(self.suggest_memory_format());
}

at::Tensor &range_out(const at::Scalar &start, const at::Scalar &end, const at::Scalar &step, at::Tensor &out) {
  TORCH_CHECK_NOT_IMPLEMENTED(!out.is_complex() && out.scalar_type() != at::kBool, "aten::range.out: not defined for ",
                              out.scalar_type());
  double first = start.toDouble(), last = end.toDouble(), by = step.toDouble();
  bool integers = at::isIntegralType(out.scalar_type(), true);
  if (integers) first = std::trunc(first), last = std::trunc(last), by = std::trunc(by);
  TORCH_CHECK(by != 0, "step must be nonzero", integers ? " as an integer" : "");
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "unsupported range: ", first, " -> ", last);
  TORCH_CHECK(by > 0 ? last >= first : last <= first, "upper bound and lower bound inconsistent with step sign");
  auto count = static_cast<int64_t>((last - first) / by + 1);
  at::ScalarType wide = integers ? at::kLong : out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  auto number = [integers](double x) { return integers ? at::Scalar(static_cast<int64_t>(x)) : at::Scalar(x); };
  return write_result(out, at::arange(count, out.options().dtype(wide)).mul_(number(by)).add_(number(first)));
}

// --- scatter ---

at::Tensor &scatter_reduce_out(const at::Tensor &self, int64_t dim, const at::Tensor &index, const at::Tensor &source,
                               c10::string_view reduce, at::Tensor &out) {
  TORCH_CHECK(reduce == "add" || reduce == "multiply", "reduce argument must be either add or multiply.");
  at::Tensor values = source;
  for (int64_t d = 0; d < index.dim(); d++) values = values.narrow(d, 0, index.size(d));
  return write_result(out, self.scatter_reduce(dim, index, values, reduce == "add" ? "sum" : "prod", true));
}

at::Tensor &scatter_value_reduce_out(const at::Tensor &self, int64_t dim, const at::Tensor &index,
                                     const at::Scalar &value, c10::string_view reduce, at::Tensor &out) {
  return scatter_reduce_out(self, dim, index, at::full(index.sizes(), value, self.options()), reduce, out);
}

// --- linear algebra ---

at::Tensor cholesky(const at::Tensor &self, bool upper) {
  return at::linalg_cholesky(self, upper);
}

at::Tensor &cholesky_out(const at::Tensor &self, bool upper, at::Tensor &out) {
  return write_result(out, at::linalg_cholesky(self, upper));
}

at::Tensor cholesky_solve_helper(const at::Tensor &self, const at::Tensor &factor, bool upper) {
  return at::cholesky_solve(self, factor, upper);
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &> lu_out(const at::Tensor &a, bool pivot, at::Tensor &p,
                                                            at::Tensor &l, at::Tensor &u) {
  auto [factors, pivots, info] = at::linalg_lu_factor_ex(a, pivot);
  auto [permutation, lower, upper] = at::lu_unpack(factors, pivots, true, pivot);
  write_result(p, permutation);
  write_result(l, lower);
  write_result(u, upper);
  return std::forward_as_tuple(p, l, u);
}

// PyTorch's own resizes self, which it broadcasts as an addend.
at::Tensor &addbmm_(at::Tensor &self, const at::Tensor &batch1, const at::Tensor &batch2, const at::Scalar &beta,
                    const at::Scalar &alpha) {
  return write_result(self, at::addbmm(self, batch1, batch2, beta, alpha));
}

at::Tensor eigvals(const at::Tensor &self) {
  return std::get<0>(at::linalg_eig(self));
}

at::Tensor &eigvals_out(const at::Tensor &self, at::Tensor &out) {
  return write_result(out, eigvals(self));
}

// Sums of the input's rows by each row of coefficients.
at::Tensor linear_combination(const at::Tensor &input, const at::Tensor &coefficients) {
  TORCH_CHECK(input.dim() >= 1 && input.numel() > 0, "Empty tensor not supported");
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes[0] = coefficients.size(0);
  return coefficients.matmul(input.reshape({input.size(0), -1})).reshape(sizes);
}

at::Tensor &linear_combination_out(const at::Tensor &input, const at::Tensor &coefficients, at::Tensor &out) {
  return write_result(out, linear_combination(input, coefficients));
}

// --- losses: lengths that are tensors are read by the host ---

std::vector<int64_t> lengths_of(const at::Tensor &tensor) {
  TORCH_CHECK(at::isIntegralType(tensor.scalar_type(), false), "ctc_loss: lengths must be integral, but are ",
              tensor.scalar_type());
  at::Tensor lengths = tensor.to(at::kCPU, at::kLong).contiguous();
  return {lengths.const_data_ptr<int64_t>(), lengths.const_data_ptr<int64_t>() + lengths.numel()};
}

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor &log_probs, const at::Tensor &targets,
                                            const at::Tensor &inputs, const at::Tensor &lengths, int64_t blank,
                                            bool zero_infinity) {
  return at::_ctc_loss(log_probs, targets, lengths_of(inputs), lengths_of(lengths), blank, zero_infinity);
}

at::Tensor ctc_loss_backward(const at::Tensor &grad, const at::Tensor &log_probs, const at::Tensor &targets,
                             const at::Tensor &inputs, const at::Tensor &lengths, const at::Tensor &loss,
                             const at::Tensor &log_alpha, int64_t blank, bool zero_infinity) {
  return at::_ctc_loss_backward(grad, log_probs, targets, lengths_of(inputs), lengths_of(lengths), loss, log_alpha,
                                blank, zero_infinity);
}

// --- normalization ---

// The statistics of each channel as normalization in training keeps them, the variance without Bessel's correction.
std::tuple<at::Tensor, at::Tensor> batch_norm_update_stats(const at::Tensor &input, const Optional &running_mean,
                                                           const Optional &running_var, double momentum) {
  int64_t channels = input.size(1), each = channels ? input.numel() / channels : 0;
  auto [variance, mean] = at::var_mean(input, all_but_channels(input), /*correction=*/0);
  move_on(running_mean, mean, momentum);
  if (running_var && running_var->defined())
    move_on(running_var, variance.mul(static_cast<double>(each) / static_cast<double>(each - 1)), momentum);
  return {mean, variance};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> batch_norm_with_update(
    const at::Tensor &input, const Optional &weight, const Optional &bias, at::Tensor &running_mean,
    at::Tensor &running_var, double momentum, double eps) {
  auto [out, mean, deviation] =
      at::native_batch_norm(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, mean, deviation, at::empty({0}, input.options().dtype(at::kByte))};
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &, at::Tensor &> batch_norm_with_update_out(
    const at::Tensor &input, const Optional &weight, const Optional &bias, at::Tensor &running_mean,
    at::Tensor &running_var, double momentum, double eps, at::Tensor &out, at::Tensor &mean, at::Tensor &deviation,
    at::Tensor &reserve) {
  auto [y, m, d, r] = batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps);
  write_result(out, y);
  write_result(mean, m);
  write_result(deviation, d);
  return std::forward_as_tuple(out, mean, deviation, reserve);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm_backward(const at::Tensor &grad, const at::Tensor &input,
                                                                   const at::Tensor &weight,
                                                                   const Optional &running_mean,
                                                                   const Optional &running_var, const Optional &mean,
                                                                   const Optional &deviation, bool update, double eps,
                                                                   std::array<bool, 3> wanted, const at::Tensor &) {
  return at::native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, deviation, update, eps,
                                        wanted);
}

// --- convolutions, which torch.nn reaches as aten::convolution ---

at::Tensor slow_conv_forward(const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef kernel,
                             const Optional &bias, at::IntArrayRef stride, at::IntArrayRef padding) {
  std::vector<int64_t> ones(kernel.size(), 1), zeros(kernel.size(), 0);
  return at::convolution(self, weight, bias, stride, padding, ones, false, zeros, 1);
}

at::Tensor &slow_conv_forward_out(const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef kernel,
                                  const Optional &bias, at::IntArrayRef stride, at::IntArrayRef padding,
                                  at::Tensor &out) {
  return write_result(out, slow_conv_forward(self, weight, kernel, bias, stride, padding));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> slow_conv_backward(const at::Tensor &grad, const at::Tensor &self,
                                                                  const at::Tensor &weight, at::IntArrayRef kernel,
                                                                  at::IntArrayRef stride, at::IntArrayRef padding,
                                                                  std::array<bool, 3> wanted) {
  std::vector<int64_t> ones(kernel.size(), 1), zeros(kernel.size(), 0);
  return at::convolution_backward(grad, self, weight, at::IntArrayRef{weight.size(0)}, stride, padding, ones, false,
                                  zeros, 1, wanted);
}

std::tuple<at::Tensor &, at::Tensor &, at::Tensor &> slow_conv_backward_out(
    const at::Tensor &grad, const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef kernel,
    at::IntArrayRef stride, at::IntArrayRef padding, at::Tensor &grad_input, at::Tensor &grad_weight,
    at::Tensor &grad_bias) {
  std::array<bool, 3> wanted = {grad_input.defined(), grad_weight.defined(), grad_bias.defined()};
  auto [input, filter, bias] = slow_conv_backward(grad, self, weight, kernel, stride, padding, wanted);
  if (wanted[0]) write_result(grad_input, input);
  if (wanted[1]) write_result(grad_weight, filter);
  if (wanted[2]) write_result(grad_bias, bias);
  return std::forward_as_tuple(grad_input, grad_weight, grad_bias);
}

at::Tensor slow_conv_dilated(const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef kernel,
                             const Optional &bias, at::IntArrayRef stride, at::IntArrayRef padding,
                             at::IntArrayRef dilation) {
  std::vector<int64_t> zeros(kernel.size(), 0);
  return at::convolution(self, weight, bias, stride, padding, dilation, false, zeros, 1);
}

at::Tensor slow_conv_transpose(const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef, const Optional &bias,
                               at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef output_padding,
                               at::IntArrayRef dilation) {
  return at::convolution(self, weight, bias, stride, padding, dilation, true, output_padding, 1);
}

at::Tensor &slow_conv_transpose_out(const at::Tensor &self, const at::Tensor &weight, at::IntArrayRef kernel,
                                    const Optional &bias, at::IntArrayRef stride, at::IntArrayRef padding,
                                    at::IntArrayRef output_padding, at::IntArrayRef dilation, at::Tensor &out) {
  return write_result(out, slow_conv_transpose(self, weight, kernel, bias, stride, padding, output_padding, dilation));
}

// --- other ---

// Queries, keys and values by head: the bias added, and queries scaled.
std::tuple<at::Tensor, at::Tensor, at::Tensor> transform_bias_rescale_qkv(const at::Tensor &qkv, const at::Tensor &bias,
                                                                          int64_t heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) % (3 * heads) == 0, "expected qkv of 3 dims, the last divisible by 3 * ",
              heads, " heads, but got ", qkv.sizes());
  int64_t size = qkv.size(2) / (3 * heads);
  at::Tensor parts = qkv.add(bias).unflatten(2, {3, heads, size}).permute({2, 0, 3, 1, 4});
  return {parts[0].div(std::sqrt(static_cast<double>(size))).contiguous(), parts[1].contiguous(),
          parts[2].contiguous()};
}

void fused_adagrad_tensor_(at::TensorList self, at::TensorList grads, at::TensorList sums, at::TensorList steps,
                           const at::Tensor &lr, double lr_decay, double weight_decay, double eps, bool maximize,
                           const Optional &grad_scale, const Optional &found_inf) {
  at::_fused_adagrad_(self, grads, sums, steps, lr.item<double>(), lr_decay, weight_decay, eps, maximize, grad_scale,
                      found_inf);
}

void assert_message(const at::Tensor &self, c10::string_view message) {
  TORCH_CHECK(self.numel() == 1, "_assert_async: Boolean value of Tensor with ", self.numel(), " values is ambiguous");
  TORCH_CHECK(self.ne(0).item<bool>(), message);
}

void assert_plain(const at::Tensor &self) {
  assert_message(self, "Expected Tensor with single nonzero value, but got zero");
}

at::Tensor assert_functional(const at::Tensor &self, c10::string_view message, const at::Tensor &token) {
  assert_message(self, message);
  return token.clone();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_unique", TORCH_FN(unique));
  m.impl("unique_dim_consecutive", TORCH_FN(unique_dim_consecutive));
  m.impl("median.dim_values", TORCH_FN(median_out));
  m.impl("nanmedian.dim_values", TORCH_FN(nanmedian_out));
  m.impl("isin.Tensor_Scalar_out", TORCH_FN(isin_scalar_out));
  m.impl("isin.Scalar_Tensor_out", TORCH_FN(isin_of_scalar_out));
  m.impl("_aminmax", TORCH_FN(aminmax));
  m.impl("_aminmax.dim", TORCH_FN(aminmax_dim));
  m.impl("_logcumsumexp", TORCH_FN(logcumsumexp));
  m.impl("_logcumsumexp.out", TORCH_FN(logcumsumexp_out));
  m.impl("dequantize.self", TORCH_FN(dequantize));
  m.impl("__lshift__.Tensor", TORCH_FN(left_shift));
  m.impl("__lshift__.Scalar", TORCH_FN(left_shift_scalar));
  m.impl("__ilshift__.Tensor", TORCH_FN(left_shift_));
  m.impl("__ilshift__.Scalar", TORCH_FN(left_shift_scalar_));
  m.impl("__rshift__.Tensor", TORCH_FN(right_shift));
  m.impl("__rshift__.Scalar", TORCH_FN(right_shift_scalar));
  m.impl("__irshift__.Tensor", TORCH_FN(right_shift_));
  m.impl("__irshift__.Scalar", TORCH_FN(right_shift_scalar_));
  m.impl("_add_relu.Tensor", TORCH_FN(add_relu));
  m.impl("_add_relu.Scalar", TORCH_FN(add_relu_scalar));
  m.impl("_add_relu_.Tensor", TORCH_FN(add_relu_));
  m.impl("_add_relu_.Scalar", TORCH_FN(add_relu_scalar_));
  m.impl("_add_relu.out", TORCH_FN(add_relu_out));
  m.impl("narrow_copy.out", TORCH_FN(narrow_copy_out));
  m.impl("channel_shuffle", TORCH_FN(channel_shuffle));
  m.impl("range.out", TORCH_FN(range_out));
  m.impl("scatter.reduce_out", TORCH_FN(scatter_reduce_out));
  m.impl("scatter.value_reduce_out", TORCH_FN(scatter_value_reduce_out));
  m.impl("cholesky", TORCH_FN(cholesky));
  m.impl("cholesky.out", TORCH_FN(cholesky_out));
  m.impl("_cholesky_solve_helper", TORCH_FN(cholesky_solve_helper));
  m.impl("linalg_lu.out", TORCH_FN(lu_out));
  m.impl("addbmm_", TORCH_FN(addbmm_));
  m.impl("_linalg_eigvals", TORCH_FN(eigvals));
  m.impl("linalg_eigvals.out", TORCH_FN(eigvals_out));
  m.impl("_compute_linear_combination", TORCH_FN(linear_combination));
  m.impl("_compute_linear_combination.out", TORCH_FN(linear_combination_out));
  m.impl("_ctc_loss.Tensor", TORCH_FN(ctc_loss));
  m.impl("_ctc_loss_backward.Tensor", TORCH_FN(ctc_loss_backward));
  m.impl("batch_norm_update_stats", TORCH_FN(batch_norm_update_stats));
  m.impl("_batch_norm_with_update", TORCH_FN(batch_norm_with_update));
  m.impl("_batch_norm_with_update.out", TORCH_FN(batch_norm_with_update_out));
  m.impl("batch_norm_backward", TORCH_FN(batch_norm_backward));
  m.impl("_slow_conv2d_forward", TORCH_FN(slow_conv_forward));
  m.impl("_slow_conv2d_forward.output", TORCH_FN(slow_conv_forward_out));
  m.impl("_slow_conv2d_backward.output_mask", TORCH_FN(slow_conv_backward));
  m.impl("_slow_conv2d_backward.grad_input", TORCH_FN(slow_conv_backward_out));
  m.impl("slow_conv3d_forward", TORCH_FN(slow_conv_forward));
  m.impl("slow_conv3d_forward.output", TORCH_FN(slow_conv_forward_out));
  m.impl("slow_conv_dilated2d", TORCH_FN(slow_conv_dilated));
  m.impl("slow_conv_dilated3d", TORCH_FN(slow_conv_dilated));
  m.impl("slow_conv_transpose2d.out", TORCH_FN(slow_conv_transpose_out));
  m.impl("slow_conv_transpose3d", TORCH_FN(slow_conv_transpose));
  m.impl("slow_conv_transpose3d.out", TORCH_FN(slow_conv_transpose_out));
  m.impl("_transform_bias_rescale_qkv", TORCH_FN(transform_bias_rescale_qkv));
  m.impl("_fused_adagrad_.tensor_lr", TORCH_FN(fused_adagrad_tensor_));
  m.impl("_assert_async", TORCH_FN(assert_plain));
  m.impl("_assert_async.msg", TORCH_FN(assert_message));
  m.impl("_functional_assert_async.msg", TORCH_FN(assert_functional));
}

}  // namespace torch_graft
