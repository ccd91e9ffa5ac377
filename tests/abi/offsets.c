/* Compiled, not run: the layout of every struct of the ABI, in C and in C++, and that of a DLTensor. */
#include "graft/abi/plugin.h"

#ifdef __cplusplus
#define GRAFT_ASSERT static_assert
#else
#define GRAFT_ASSERT _Static_assert
#endif
#define GRAFT_ASSERT_OFFSET(type, field, offset) GRAFT_ASSERT(offsetof(type, field) == (offset), #type "." #field);
#define GRAFT_ASSERT_SIZE(type, size)            GRAFT_ASSERT(sizeof(type) == (size), #type);
#define GRAFT_ASSERT_SIZE_TODAY(type, size)      GRAFT_ASSERT_SIZE(type, size) /* of a struct that may grow */

/* One assertion a line. clang-format would wrap them: */
/* clang-format off */
#include "generated_offsets.h"
#include "hand_written_offsets.h"

GRAFT_ASSERT(sizeof(graft_status) == 4, "status");
GRAFT_ASSERT(GRAFT_SIZE_TO(graft_op_caps, max_ndim) == sizeof(graft_op_caps), "no hidden tail padding");
GRAFT_ASSERT(GRAFT_DTYPE_BYTES(GRAFT_BOOL) == 1 && GRAFT_DTYPE_BYTES(GRAFT_C128) == 16, "sizes of dtypes");
GRAFT_ASSERT(GRAFT_DTYPE_BYTES(0x00020411u) == 1 && GRAFT_DTYPE_BITS(0x00020411u) == 8, "two lanes of 4 bits");
GRAFT_ASSERT(GRAFT_DTYPE_BYTES(0x00010411u) == 0 && GRAFT_DTYPE_BITS(0x00010411u) == 4, "4 bits are no byte");
GRAFT_ASSERT(GRAFT_DTYPE_BYTES(0x00030611u) == 0 && GRAFT_DTYPE_BITS(0x00030611u) == 18, "nor are 18");
