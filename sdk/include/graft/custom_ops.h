/* libgraft: the ops that plugins bring beside those of Graft's tables (docs/custom_ops.md). graft_op_find gives the id
 * of one by its name, and graft_call runs it; here is which there are, for who shows them to another framework.
 * Thread-safe. */
#ifndef GRAFT_CUSTOM_OPS_H
#define GRAFT_CUSTOM_OPS_H

#include "graft/value.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of them, known once its plugin is open. Strings and lists stay valid. A later libgraft may append fields. */
typedef struct graft_custom_op_info {
  uint32_t op_id;
  uint32_t gradient_id; /* gives gradients: it takes a cotangent for each result, then the op's arguments; 0: none */
  const char *schema;   /* as PyTorch writes it: "acme::scale_add(Tensor x, Tensor y) -> Tensor" */
  const char *plugin;
  const int8_t *gradient_of; /* for each argument the result of gradient_id that is its gradient; -1: it has none */
  bool has_reference;        /* it runs in host memory, too */
} graft_custom_op_info;

/* Fills at most `capacity` rows of row_bytes each (sizeof(graft_custom_op_info), as in graft_fallbacks), none where
 * `rows` is NULL, and returns how many there are; later ones come behind. */
GRAFT_EXPORT size_t graft_custom_ops(GRAFT_NULLABLE graft_custom_op_info *rows, size_t row_bytes, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
