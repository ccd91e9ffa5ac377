// Histograms, which PyTorch counts on the CPU alone: places of the elements in each dim, then sums at them.
#include <ATen/ops/aminmax.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

namespace {

using Range = std::optional<at::ArrayRef<double>>;
using Weight = std::optional<at::Tensor>;

// Which bin an element is in, and whether it is in any; elements at the last edge belong to the last bin.
struct Places {
  at::Tensor bins, inside;
};

Places among(const at::Tensor &values, const at::Tensor &edges) {
  int64_t count = edges.size(0) - 1;
  at::Tensor behind = at::searchsorted(edges, values.contiguous(), false, true);
  at::Tensor inside = values.ge(edges[0]).logical_and_(values.le(edges[count]));
  return {behind.sub_(1).clamp_(0, count - 1), inside};
}

// Bins of one width are computed, as the CPU does it, not looked up.
Places linear(const at::Tensor &values, const at::Tensor &edges) {
  int64_t count = edges.size(0) - 1;
  at::Tensor low = edges[0], high = edges[count];
  at::Tensor inside = values.ge(low).logical_and_(values.le(high));
  at::Tensor places = values.sub(low).mul_(at::Scalar(count)).div_(high.sub(low));
  return {at::where(inside, places, at::zeros({}, places.options())).to(at::kLong).clamp_(0, count - 1), inside};
}

std::vector<at::Tensor> bin_edges(const at::Tensor &elements, at::IntArrayRef bins, const Range &range) {
  int64_t dims = static_cast<int64_t>(bins.size());
  TORCH_CHECK(elements.size(1) == dims, "histogramdd: expected bins to be a sequence of ", elements.size(1),
              " numbers, but got ", dims);
  TORCH_CHECK(!range || static_cast<int64_t>(range->size()) == 2 * dims, "histogramdd: for a ", dims,
              "-dimensional histogram, range should have ", 2 * dims, " elements, but got ", range ? range->size() : 0);
  std::vector<at::Tensor> edges;
  for (int64_t d = 0; d < dims; d++) {
    TORCH_CHECK(bins[d] > 0, "histogramdd: bins must be > 0, but got ", bins[d], " for dimension ", d);
    double low = 0, high = 1;
    if (range) {
      low = (*range)[2 * d], high = (*range)[2 * d + 1];
    } else if (elements.numel() > 0) {
      auto [least, most] = at::aminmax(elements.select(1, d));
      low = least.item<double>(), high = most.item<double>();
    }
    TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "histogramdd: dimension ", d, "'s range [", low, ", ", high,
                "] is not finite");
    TORCH_CHECK(low <= high, "histogramdd: min should not exceed max, but got min ", low, " max ", high,
                " for dimension ", d);
    if (low == high) low -= 0.5, high += 0.5;
    edges.push_back(at::linspace(low, high, bins[d] + 1, elements.options()));
  }
  return edges;
}

at::Tensor count(const at::Tensor &elements, at::TensorList edges, const Weight &weight, bool density,
                 Places (*places_of)(const at::Tensor &, const at::Tensor &)) {
  int64_t dims = elements.size(1), bins = 1;
  TORCH_CHECK(static_cast<int64_t>(edges.size()) == dims, "histogramdd: expected ", dims,
              " sequences of bin edges, but got ", edges.size());
  std::vector<int64_t> sizes;
  Places places;
  for (int64_t d = 0; d < dims; d++) {
    TORCH_CHECK(edges[d].dim() == 1 && edges[d].size(0) > 1, "histogramdd: bins of dimension ", d,
                " should be one-dimensional, with 2 edges or more, but have the shape ", edges[d].sizes());
    TORCH_CHECK(edges[d].scalar_type() == elements.scalar_type(),
                "histogramdd: input and bins should have one dtype, but have ", elements.scalar_type(), " and ",
                edges[d].scalar_type());
    Places here = places_of(elements.select(1, d), edges[d]);
    sizes.push_back(edges[d].size(0) - 1);
    bins *= sizes.back();
    places.bins = d ? places.bins.mul_(sizes.back()).add_(here.bins) : here.bins;
    places.inside = d ? places.inside.logical_and_(here.inside) : here.inside;
  }
  at::Tensor each = weight ? weight->reshape({-1}) : at::ones_like(elements.select(1, 0));
  TORCH_CHECK(
      each.numel() == elements.size(0) && each.scalar_type() == elements.scalar_type(),
      "histogramdd: if weight is given, it should have the input's dtype and a value for each element, but got ",
      each.scalar_type(), each.sizes());
  each = at::where(places.inside, each, at::zeros({}, each.options()));
  at::Tensor histogram = at::zeros({bins}, elements.options()).scatter_add_(0, places.bins, each).reshape(sizes);
  if (!density) return histogram;
  histogram = histogram.div(histogram.sum());
  for (int64_t d = 0; d < dims; d++) {
    std::vector<int64_t> shape(dims, 1);
    shape[d] = sizes[d];
    histogram = histogram.div(edges[d].diff().reshape(shape));
  }
  return histogram;
}

// --- histogramdd ---

at::Tensor rows(const at::Tensor &self) {
  TORCH_CHECK(self.dim() >= 2, "histogramdd: input tensor should have at least 2 dimensions, but got ", self.dim());
  return self.reshape({-1, self.size(-1)});
}

std::vector<at::Tensor> histogramdd_bin_edges(const at::Tensor &self, at::IntArrayRef bins, Range range, const Weight &,
                                              bool) {
  return bin_edges(rows(self), bins, range);
}

at::Tensor histogramdd_from_bin_cts(const at::Tensor &self, at::IntArrayRef bins, Range range, const Weight &weight,
                                    bool density) {
  at::Tensor elements = rows(self);
  return count(elements, bin_edges(elements, bins, range), weight, density, linear);
}

at::Tensor histogramdd_from_bin_tensors(const at::Tensor &self, at::TensorList bins, const Weight &weight,
                                        bool density) {
  return count(rows(self), bins, weight, density, among);
}

// --- histogram ---

std::tuple<at::Tensor, at::Tensor> histogram_bins(const at::Tensor &self, const at::Tensor &bins, const Weight &weight,
                                                  bool density) {
  return {count(self.reshape({-1, 1}), {bins}, weight, density, among), bins.clone()};
}

std::tuple<at::Tensor, at::Tensor> histogram_count(const at::Tensor &self, int64_t bins, Range range,
                                                   const Weight &weight, bool density) {
  at::Tensor elements = self.reshape({-1, 1});
  std::vector<at::Tensor> edges = bin_edges(elements, {bins}, range);
  return {count(elements, edges, weight, density, among), edges[0]};
}

std::tuple<at::Tensor &, at::Tensor &> written(const std::tuple<at::Tensor, at::Tensor> &from, at::Tensor &histogram,
                                               at::Tensor &edges) {
  write_result(histogram, std::get<0>(from));
  write_result(edges, std::get<1>(from));
  return std::forward_as_tuple(histogram, edges);
}

std::tuple<at::Tensor &, at::Tensor &> histogram_bins_out(const at::Tensor &self, const at::Tensor &bins,
                                                          const Weight &weight, bool density, at::Tensor &histogram,
                                                          at::Tensor &edges) {
  return written(histogram_bins(self, bins, weight, density), histogram, edges);
}

std::tuple<at::Tensor &, at::Tensor &> histogram_count_out(const at::Tensor &self, int64_t bins, Range range,
                                                           const Weight &weight, bool density, at::Tensor &histogram,
                                                           at::Tensor &edges) {
  return written(histogram_count(self, bins, range, weight, density), histogram, edges);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("histogram.bins_tensor", TORCH_FN(histogram_bins));
  m.impl("histogram.bins_tensor_out", TORCH_FN(histogram_bins_out));
  m.impl("histogram.bin_ct", TORCH_FN(histogram_count));
  m.impl("histogram.bin_ct_out", TORCH_FN(histogram_count_out));
  m.impl("_histogramdd_bin_edges", TORCH_FN(histogramdd_bin_edges));
  m.impl("_histogramdd_from_bin_cts", TORCH_FN(histogramdd_from_bin_cts));
  m.impl("_histogramdd_from_bin_tensors", TORCH_FN(histogramdd_from_bin_tensors));
}

}  // namespace torch_graft
