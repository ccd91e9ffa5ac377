/* Words: error texts, log lines, and strings that grow. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

graft_status ocl_fail(const ocl_plugin *plugin, graft_status status, const char *format, ...) {
  char text[OCL_TEXT_CAPACITY];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  plugin->host->set_error(plugin->host->context, text);
  return status;
}

void ocl_log(const ocl_plugin *plugin, graft_log_level level, const char *format, ...) {
  if (!GRAFT_HAS(plugin->host, graft_host, log)) return;
  char text[OCL_TEXT_CAPACITY];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  plugin->host->log(plugin->host->context, level, text);
}

/* Room for `needed` letters more, and the end. */
static bool grow(ocl_text *text, size_t needed) {
  const size_t least = text->length + needed + 1;
  const size_t capacity = least > 2 * text->capacity ? least : 2 * text->capacity;
  char *items = realloc(text->items, capacity);
  if (items) {
    text->items = items;
    text->capacity = capacity;
  } else {
    ocl_text_free(text);
    text->failed = true;
  }
  return items;
}

void ocl_text_add(ocl_text *text, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  const size_t room = text->capacity - text->length;
  const int needed = vsnprintf(room ? text->items + text->length : NULL, room, format, arguments);
  va_end(arguments);
  if (!text->failed && needed >= 0) {
    bool fits = (size_t)needed < room;
    if (!fits) {
      fits = grow(text, (size_t)needed);
      if (fits) vsnprintf(text->items + text->length, (size_t)needed + 1, format, again);
    }
    if (fits) text->length += (size_t)needed;
  }
  va_end(again);
}

void ocl_text_append(ocl_text *text, const char *more) {
  const size_t bytes = strlen(more);
  if (text->failed || (bytes >= text->capacity - text->length && !grow(text, bytes))) return;
  memcpy(text->items + text->length, more, bytes + 1);
  text->length += bytes;
}

void ocl_text_free(ocl_text *text) {
  free(text->items);
  *text = (ocl_text){0};
}

/* How many letters must be changed, put in or left out to make one word of the other. */
static size_t distance(const char *a, size_t a_length, const char *b) {
  enum { LONGEST = 32 };
  size_t b_length = strlen(b), row[LONGEST + 1];
  if (a_length > LONGEST || b_length > LONGEST) return LONGEST;
  for (size_t j = 0; j <= b_length; j++) row[j] = j;
  for (size_t i = 1; i <= a_length; i++) {
    size_t before = row[0]++; /* of the row above, one to the left */
    for (size_t j = 1; j <= b_length; j++) {
      size_t change = before + (a[i - 1] != b[j - 1]), least = row[j] < row[j - 1] ? row[j] : row[j - 1];
      before = row[j];
      row[j] = change < least + 1 ? change : least + 1;
    }
  }
  return row[b_length];
}

const char *ocl_nearest(const char *word, size_t length, const char *const *words) {
  const size_t most = 3;
  const char *nearest = NULL;
  size_t best = length < most ? length : most;
  for (; *words; words++) {
    size_t d = distance(word, length, *words);
    if (d < best) {
      best = d;
      nearest = *words;
    }
  }
  return nearest;
}

const char *ocl_error_name(cl_int error) {
#define NAME(code) \
  case code: return #code;
  switch (error) {
    NAME(CL_SUCCESS)
    NAME(CL_DEVICE_NOT_FOUND)
    NAME(CL_DEVICE_NOT_AVAILABLE)
    NAME(CL_COMPILER_NOT_AVAILABLE)
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE)
    NAME(CL_OUT_OF_RESOURCES)
    NAME(CL_OUT_OF_HOST_MEMORY)
    NAME(CL_PROFILING_INFO_NOT_AVAILABLE)
    NAME(CL_MEM_COPY_OVERLAP)
    NAME(CL_BUILD_PROGRAM_FAILURE)
    NAME(CL_MAP_FAILURE)
    NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET)
    NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    NAME(CL_INVALID_VALUE)
    NAME(CL_INVALID_DEVICE_TYPE)
    NAME(CL_INVALID_PLATFORM)
    NAME(CL_INVALID_DEVICE)
    NAME(CL_INVALID_CONTEXT)
    NAME(CL_INVALID_QUEUE_PROPERTIES)
    NAME(CL_INVALID_COMMAND_QUEUE)
    NAME(CL_INVALID_HOST_PTR)
    NAME(CL_INVALID_MEM_OBJECT)
    NAME(CL_INVALID_BINARY)
    NAME(CL_INVALID_BUILD_OPTIONS)
    NAME(CL_INVALID_PROGRAM)
    NAME(CL_INVALID_PROGRAM_EXECUTABLE)
    NAME(CL_INVALID_KERNEL_NAME)
    NAME(CL_INVALID_KERNEL_DEFINITION)
    NAME(CL_INVALID_KERNEL)
    NAME(CL_INVALID_ARG_INDEX)
    NAME(CL_INVALID_ARG_VALUE)
    NAME(CL_INVALID_ARG_SIZE)
    NAME(CL_INVALID_KERNEL_ARGS)
    NAME(CL_INVALID_WORK_DIMENSION)
    NAME(CL_INVALID_WORK_GROUP_SIZE)
    NAME(CL_INVALID_WORK_ITEM_SIZE)
    NAME(CL_INVALID_GLOBAL_OFFSET)
    NAME(CL_INVALID_EVENT_WAIT_LIST)
    NAME(CL_INVALID_EVENT)
    NAME(CL_INVALID_OPERATION)
    NAME(CL_INVALID_BUFFER_SIZE)
    NAME(CL_INVALID_GLOBAL_WORK_SIZE)
    default: return error == -1001 ? "CL_PLATFORM_NOT_FOUND_KHR" : "unknown OpenCL error";
  }
#undef NAME
}
