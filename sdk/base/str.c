#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

char *str_new(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  if (vasprintf(&text, format, arguments) < 0) text = NULL;
  va_end(arguments);
  return text;
}
