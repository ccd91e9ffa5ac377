/* Words: error texts, log lines, and strings that grow. */
#ifndef OCL_TEXT_H
#define OCL_TEXT_H

#include <stddef.h>

#include "runtime/plugin.h"

#define OCL_TEXT_CAPACITY 1024

/* "CL_OUT_OF_RESOURCES" and so on; "unknown OpenCL error" for what OpenCL 1.2 does not name. */
const char *ocl_error_name(cl_int error);

/* Of PoCL's own cache, for errors: what keeps it from working is said nowhere else. */
#define OCL_POCL_FOLDER                                                                 \
  "set POCL_CACHE_DIR to a folder that can be written, on a disk with room (PoCL's is " \
  "$XDG_CACHE_HOME/pocl, else ~/.cache/pocl)"
/* Sets the host's error text as printf does, and returns `status`. */
graft_status ocl_fail(const ocl_plugin *plugin, graft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ocl_log(const ocl_plugin *plugin, graft_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A growing string. A failed allocation makes `items` NULL for good, so that only the end need be checked. */
typedef struct ocl_text {
  char *items;
  size_t length, capacity;
  bool failed;
} ocl_text;

void ocl_text_add(ocl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ocl_text_append(ocl_text *text, const char *more); /* as it is: sources of kernels are long */
void ocl_text_free(ocl_text *text);

/* The word of the list (NULL at its end) that is most like the first `length` letters of `word`; NULL: none is. */
const char *ocl_nearest(const char *word, size_t length, const char *const *words);

#endif
