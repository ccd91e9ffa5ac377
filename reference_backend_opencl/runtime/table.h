/* Tables of constants that kernels read, kept with the device. */
#ifndef OCL_TABLE_H
#define OCL_TABLE_H

#include "runtime/device.h"

ocl_tables *ocl_tables_new(void);
void ocl_tables_free(ocl_tables *tables);
/* A read-only buffer with this content. The caller gives it back (ocl_table_release) once the kernel that reads it is
 * enqueued. */
graft_status ocl_table_get(graft_device *device, const void *content, size_t bytes, cl_mem *buffer);
/* The same for content that is large, or takes time to make: `key` says which it is, and make(of) is asked for it where
 * the device has it no more. */
typedef graft_status (*ocl_table_make)(const void *of, void **content, size_t *bytes); /* malloc'ed */
graft_status ocl_table_made(graft_device *device, const void *key, size_t key_bytes, ocl_table_make make,
                            const void *of, cl_mem *buffer);
void ocl_table_release(graft_device *device, cl_mem buffer);

#endif
