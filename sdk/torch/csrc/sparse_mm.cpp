// Products of sparse and dense matrices: graft::csr_mm and graft::csr_sampled_mm of plugin_api/ops. A COO matrix is
// coalesced and taken by rows, a CSC one sorted by rows, so that all are products of a CSR matrix.
#include <ATen/ops/_sparse_csr_tensor_unsafe.h>
#include <ATen/ops/mv_native.h>
#include <torch/library.h>

#include "graft/abi/op_ids.h"
#include "hot.h"

namespace torch_graft {

namespace {

// Names end in _of and _to: at:: has functions that are called mm and addmm, which arguments of its types would find.

struct Csr {
  at::Tensor starts, columns, values;
};

bool is_sparse(const at::Tensor &tensor) {
  return tensor.layout() != at::kStrided;
}

Csr csr_of(const at::Tensor &matrix) {
  at::Layout layout = matrix.layout();
  TORCH_CHECK_NOT_IMPLEMENTED(layout == at::kSparse || layout == at::kSparseCsr || layout == at::kSparseCsc,
                              "graft: products with tensors of layout ", layout,
                              " are not supported; use to_sparse_csr()");
  at::Tensor csr = layout == at::kSparseCsr ? matrix : matrix.to_sparse_csr();
  return {csr.crow_indices(), csr.col_indices(), csr.values()};
}

at::Tensor call(uint32_t op_id, const Csr &matrix, const at::Tensor &first, const at::Tensor &second) {
  CallFrame frame;
  for (const at::Tensor *operand : {&matrix.starts, &matrix.columns, &first, &second}) {
    graft_value value = {};
    set(frame, value, *operand);
    frame.add_arg(value);
  }
  frame.reserve_outs(1);
  check(graft_call(op_id, frame.args, frame.nargs, frame.outs, frame.nouts));
  return wrap(std::exchange(frame.outs[0], nullptr));
}

at::Tensor csr_mm(const Csr &matrix, const at::Tensor &dense) {
  return call(GRAFT_OP_CSR_MM, matrix, matrix.values, dense);
}

void check_product(const char *op, const at::Tensor &left, const at::Tensor &right) {
  TORCH_CHECK(left.dim() == 2 && right.dim() == 2, op, ": expected two matrices, got tensors of ", left.dim(), " and ",
              right.dim(), " dims");
  TORCH_CHECK(left.size(1) == right.size(0), op, ": mat1 and mat2 shapes cannot be multiplied (", left.size(0), "x",
              left.size(1), " and ", right.size(0), "x", right.size(1), ")");
  TORCH_CHECK(left.scalar_type() == right.scalar_type(), op, ": expected mat1 and mat2 to have the same dtype, got ",
              left.scalar_type(), " and ", right.scalar_type());
  TORCH_CHECK(left.device() == right.device(), op, ": expected mat1 and mat2 on one device, got ", left.device(),
              " and ", right.device());
}

at::Tensor mm_of(const at::Tensor &left, const at::Tensor &right) {
  check_product("mm", left, right);
  TORCH_CHECK_NOT_IMPLEMENTED(!is_sparse(left) || !is_sparse(right),
                              "graft: aten::mm does not take two sparse tensors; make one dense, by to_dense()");
  return is_sparse(left) ? csr_mm(csr_of(left), right) : csr_mm(csr_of(right.t()), left.t()).t();
}

at::Tensor &mm_to(const at::Tensor &left, const at::Tensor &right, at::Tensor &out) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_sparse(out), "graft: aten::mm.out does not write to sparse tensors; use a dense one");
  return write_result(out, mm_of(left, right));
}

at::Tensor addmm_of(const at::Tensor &self, const at::Tensor &left, const at::Tensor &right, const at::Scalar &beta,
                    const at::Scalar &alpha) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_sparse(self),
                              "graft: aten::addmm does not add to sparse tensors; make it dense, by to_dense()");
  check_product("addmm", left, right);
  at::Tensor product = mm_of(left, right).mul_(alpha);
  at::Tensor added = self.expand(product.sizes());
  return beta.equal(0) ? product : product.add_(added, beta);
}

at::Tensor &addmm_to(const at::Tensor &self, const at::Tensor &left, const at::Tensor &right, const at::Scalar &beta,
                     const at::Scalar &alpha, at::Tensor &out) {
  TORCH_CHECK_NOT_IMPLEMENTED(!is_sparse(out),
                              "graft: aten::addmm.out does not write to sparse tensors; use a dense one");
  return write_result(out, addmm_of(self, left, right, beta, alpha));
}

at::Tensor &addmm_in_place(at::Tensor &self, const at::Tensor &left, const at::Tensor &right, const at::Scalar &beta,
                           const at::Scalar &alpha) {
  return addmm_to(self, left, right, beta, alpha, self);
}

at::Tensor sampled_addmm(const at::Tensor &self, const at::Tensor &left, const at::Tensor &right,
                         const at::Scalar &beta, const at::Scalar &alpha) {
  check_product("sampled_addmm", left, right);
  TORCH_CHECK(self.layout() == at::kSparseCsr && !is_sparse(left) && !is_sparse(right),
              "sampled_addmm: expected a CSR matrix and two dense ones, got ", self.layout(), ", ", left.layout(),
              " and ", right.layout());
  TORCH_CHECK(self.dim() == 2 && self.size(0) == left.size(0) && self.size(1) == right.size(1),
              "sampled_addmm: expected a CSR matrix of ", left.size(0), "x", right.size(1), ", got ", self.sizes());
  Csr matrix = csr_of(self);
  at::Tensor values = call(GRAFT_OP_CSR_SAMPLED_MM, matrix, left, right.t()).mul_(alpha);
  if (!beta.equal(0)) values.add_(matrix.values, beta);
  return at::_sparse_csr_tensor_unsafe(matrix.starts.clone(), matrix.columns.clone(), values, self.sizes(),
                                       values.options().layout(at::kSparseCsr));
}

at::Tensor &sampled_addmm_out(const at::Tensor &self, const at::Tensor &left, const at::Tensor &right,
                              const at::Scalar &beta, const at::Scalar &alpha, at::Tensor &out) {
  return out.copy_(sampled_addmm(self, left, right, beta, alpha));
}

void register_products(torch::Library &m) {
  m.impl("mm", TORCH_FN(mm_of));
  m.impl("mm.out", TORCH_FN(mm_to));
  m.impl("mv", TORCH_FN(at::native::mv_sparse));
  m.impl("addmm", TORCH_FN(addmm_of));
  m.impl("addmm.out", TORCH_FN(addmm_to));
  m.impl("addmm_", TORCH_FN(addmm_in_place));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  register_products(m);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  register_products(m);
  m.impl("sparse_sampled_addmm", TORCH_FN(sampled_addmm));
  m.impl("sparse_sampled_addmm.out", TORCH_FN(sampled_addmm_out));
}

}  // namespace torch_graft
