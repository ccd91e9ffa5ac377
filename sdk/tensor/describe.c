/* Tensors and lists as texts say them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tensor/tensor.h"

/* snprintf at the end of what is there; a full buffer takes no more. */
__attribute__((format(printf, 4, 5))) static void append(char *buffer, size_t capacity, size_t *at, const char *format,
                                                         ...) {
  if (*at >= capacity) return;
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(buffer + *at, capacity - *at, format, arguments);
  va_end(arguments);
  *at += written > 0 ? (size_t)written : 0;
}

char *tns_describe(const graft_tensor *tensor, char *buffer, size_t capacity) {
  size_t at = 0;
  append(buffer, capacity, &at, "%s[", graft_dtype_name(tensor->dtype));
  for (int32_t i = 0; i < tensor->ndim; i++) {
    append(buffer, capacity, &at, "%s%" PRId64, i ? "," : "", tensor->sizes[i]);
  }
  append(buffer, capacity, &at, "]");
  if (tns_is_contiguous(tensor->ndim, tensor->sizes, tensor->strides)) return buffer;
  for (int32_t i = 0; i < tensor->ndim; i++) {
    append(buffer, capacity, &at, "%s%" PRId64, i ? "," : ":", tensor->strides[i]);
  }
  return buffer;
}

char *tns_format_ints(char *buffer, size_t capacity, uint64_t count, const int64_t *items) {
  size_t at = (size_t)snprintf(buffer, capacity, "[");
  for (uint64_t i = 0; i < count; i++) {
    if (at + 32 >= capacity) {
      at += (size_t)snprintf(buffer + at, capacity - at, ",...");
      break;
    }
    at += (size_t)snprintf(buffer + at, capacity - at, "%s%" PRId64, i ? "," : "", items[i]);
  }
  snprintf(buffer + at, capacity - at, "]");
  return buffer;
}
