/* Errors that name the op, and what its arguments are. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ops/core/op.h"

enum { SHOW_BUFFERS = 4, SHOW_BYTES = 512 };
static _Thread_local char show_buffers[SHOW_BUFFERS][SHOW_BYTES];
static _Thread_local unsigned show_next;

static size_t show_value(char *buffer, size_t room, const graft_value *value) {
  if (value->kind == GRAFT_VALUE_TENSOR) {
    tns_describe(value->as.tensor, buffer, room);
  } else if (value->kind == GRAFT_VALUE_SCALAR) {
    snprintf(buffer, room, "number of %s", graft_dtype_name(value->as.scalar.dtype));
  } else if (value->kind == GRAFT_VALUE_TENSORS) {
    size_t used = (size_t)snprintf(buffer, room, "{");
    for (uint32_t i = 0; i < value->count && used + 40 < room; i++) {
      graft_value item = fx_tensor(value->as.tensors[i]);
      if (i) used += (size_t)snprintf(buffer + used, room - used, ";");
      used += show_value(buffer + used, room - used, &item);
    }
    snprintf(buffer + used, room - used, "}");
  } else {
    snprintf(buffer, room, "absent");
  }
  return strlen(buffer);
}

const char *op_show(const op_call *call, int arg) {
  char *buffer = show_buffers[show_next++ % SHOW_BUFFERS];
  show_value(buffer, SHOW_BYTES, &call->args[arg]);
  return buffer;
}

const char *op_show_tensors(const op_call *call) {
  char *buffer = show_buffers[show_next++ % SHOW_BUFFERS];
  size_t used = 0;
  *buffer = 0;
  for (int i = 0; i < call->schema->nargs; i++) {
    uint8_t kind = call->schema->args[i].kind;
    if ((kind != OPK_TENSOR && kind != OPK_TENSORS) || op_absent(call, i) || used + 64 > SHOW_BYTES) continue;
    used += (size_t)snprintf(buffer + used, SHOW_BYTES - used, "%s%s ", used ? ", " : "", call->schema->args[i].name);
    used += show_value(buffer + used, SHOW_BYTES - used, &call->args[i]);
  }
  return buffer;
}

graft_status op_fail(const op_call *call, graft_status status, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return err_about(status, call->schema->name, "%s", text);
}

graft_status op_refuse(const op_call *call, int arg, const char *expected, ...) {
  char text[512];
  va_list list;
  va_start(list, expected);
  vsnprintf(text, sizeof text, expected, list);
  va_end(list);
  return op_error(call, "%s is %s; expected %s", call->schema->args[arg].name, op_show(call, arg), text);
}
