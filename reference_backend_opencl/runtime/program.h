/* Programs: kernel sources to cl_program, kept in memory (program.c) and on disk (disk.c). */
#ifndef OCL_PROGRAM_H
#define OCL_PROGRAM_H

#include "runtime/device.h"

/* The kernel sources, embedded at build time from kernels/<name>.cl; NULL where there is no such file. */
const char *ocl_kernel_source(const char *name);

/* The program for `head` (the #defines of the case at hand) followed by the named .cl file, or files with spaces
 * between. Shared, kept until the device is closed. Two threads that ask for the same one wait for one build. */
graft_status ocl_program_get(graft_device *device, const char *head, const char *file, ocl_program **program);
/* The same for a source that has all of it, common.cl too; `name` is for reports. */
graft_status ocl_program_get_whole(graft_device *device, const char *source, const char *name, ocl_program **program);
/* Of such a source: "lines softmax" is lines.cl and then softmax.cl. */
void ocl_program_add_files(ocl_text *source, const char *files);
/* What it is at the moment: of a program made for small calls it changes once, to one that the driver has optimized. */
cl_program ocl_program_handle(const ocl_program *program);
/* Counts a launch. Where the program is not optimized and has been launched so often that it pays, it becomes so. */
graft_status ocl_program_launched(graft_device *device, ocl_program *program);

/* Says that the calls that this thread makes from here on are small, so that a driver which optimizes slowly need not
 * for a program's first uses. */
void ocl_program_for_small_calls(bool small);
void ocl_program_close_all(graft_device *device);

/* A 128-bit name for a program, and the folder of compiled ones (disk.c). */
typedef struct ocl_key {
  uint64_t low, high;
} ocl_key;
ocl_key ocl_key_of(const char *source, const char *options, const char *device);
/* False where compiled programs are not kept. */
bool ocl_disk_folder(graft_device *device, char *folder, size_t capacity);
/* Returns the binary, to be freed, or NULL: not there, cut, or not what was written. */
void *ocl_disk_load(graft_device *device, ocl_key key, size_t *bytes);
void ocl_disk_save(graft_device *device, ocl_key key, const void *binary, size_t bytes);

#endif
