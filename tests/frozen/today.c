/* Compiled, not run: a released minor's offsets.h and values.h hold for the headers on the include path. Structs that
 * carry their size may have grown. */
#include "graft/abi/plugin.h"

#define GRAFT_ASSERT_OFFSET(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field);
#define GRAFT_ASSERT_SIZE(type, size)            _Static_assert(sizeof(type) == (size), #type);
#define GRAFT_ASSERT_SIZE_TODAY(type, size)      _Static_assert(sizeof(type) >= (size), #type);
#define GRAFT_ASSERT_VALUE(name, value)          _Static_assert((long long)(name) == (value), #name);
#define GRAFT_ASSERT_TEXT(name, text)            _Static_assert(__builtin_strcmp(name, text) == 0, #name);

#include "offsets.h"
#include "values.h"
