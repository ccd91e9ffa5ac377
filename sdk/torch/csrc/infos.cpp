// Infos of factorizations: where a call asks for it, one that is not 0 is PyTorch's own error, in its own words.
#include <ATen/ops/_linalg_check_errors.h>

#include <cstring>

#include "bridge.h"

namespace torch_graft {

namespace {

// What PyTorch calls the function in its errors, by the beginning of the overload's name.
constexpr struct {
  const char *overload, *name;
} kNames[] = {{"linalg_cholesky_ex", "linalg.cholesky_ex"},
              {"linalg_inv_ex", "linalg.inv_ex"},
              {"linalg_lu_factor_ex", "torch.linalg.lu_factor_ex"},
              {"linalg_ldl_factor_ex", "torch.linalg.ldl_factor_ex"},
              {"_linalg_solve_ex", "torch.linalg.solve_ex"}};

const char *name_of(const OpRow &row) {
  for (const auto &each : kNames) {
    if (!std::strncmp(row.name, each.overload, std::strlen(each.overload))) return each.name;
  }
  return row.name;
}

}  // namespace

void check_infos(const OpRow &row, const at::Tensor &infos, bool one_matrix) {
  at::_linalg_check_errors(infos, name_of(row), one_matrix);
}

}  // namespace torch_graft
