/* Arrays as .npy files, of NumPy's formats 1 to 3. bf16 and the 8-bit floats, which NumPy lacks, are its raw bytes, V2
 * and V1. */
#ifndef GRAFT_CLI_NPY_H
#define GRAFT_CLI_NPY_H

#include "graft/graft.h"

typedef struct cli_npy {
  graft_dtype dtype; /* NONE: raw bytes */
  uint32_t item_bytes;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
  bool by_columns;     /* the first index is the fastest */
  unsigned char *data; /* owned */
} cli_npy;

/* Errors name the file and what it has that can't be read. */
graft_status cli_npy_read(const char *path, cli_npy *npy);
void cli_npy_free(cli_npy *npy);
/* Waits for the tensor's device. A file that was there stays where this fails. */
graft_status cli_npy_write(const char *path, graft_tensor *tensor);

#endif
