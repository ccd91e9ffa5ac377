/* The schema of an op that a plugin brings, as text, made a row as the generator makes those of the tables. */
#ifndef GRAFT_SDK_SCHEMA_TEXT_H
#define GRAFT_SDK_SCHEMA_TEXT_H

#include "base/arena.h"
#include "ops/core/schema.h"

/* Reads "vendor::name.overload(Tensor self, int n=2) -> Tensor". What the row points to lies in `memory`; its id is for
 * others to give. INVALID_ARGUMENT, with a text that names the piece and what is served, for what it can't be read as
 * or what no custom op can have (extension.h says that). */
graft_status op_schema_read(const char *text, arena *memory, op_schema *schema);

#endif
