/* Faults that kernels find: an index out of range, a division by zero. A kernel never acts on such a value; it leaves
 * one record in the stream's fault words (REPORT in common.cl), which are read back when somebody waits for the stream
 * and then stick to it, as any fault of a device does. */
#ifndef OCL_FAULT_H
#define OCL_FAULT_H

#include "runtime/device.h"

/* What stands where the size would, if a fault is no index; common.cl names them alike. */
enum {
  OCL_FAULT_WEIGHTS = -1,     /* the row `index` of weights is no distribution */
  OCL_FAULT_PROBABILITY = -2, /* a number does not lie between 0 and 1 */
  OCL_FAULT_DIVISION = -3,    /* of an integer by zero */
  OCL_FAULT_SEGMENTS = -4,    /* the parts of row `index` do not lie in the dim that they divide */
  OCL_FAULT_PIVOT = -5,       /* pivot `index` names no row */
  OCL_FAULT_RANGE = -6        /* the least or the most of the data is not finite */
};

/* What the kernels of one stream found wrong first. Shared by the stream and the events recorded on it. */
typedef struct ocl_faults {
  atomic_int references;
  graft_device *device;
  cl_mem words;
  int64_t seen[3]; /* the words as they were last read back: id of the op (0: nothing), index, size or OCL_FAULT_* */
} ocl_faults;

/* The words for a kernel that may REPORT and is about to be launched on the stream. */
graft_status ocl_stream_faults(graft_stream *stream, cl_mem *words);

/* What stream.c does with them: asks for the words, which have come when what is submitted next has been done. */
cl_int ocl_faults_read(graft_stream *stream);
bool ocl_faults_seen(const ocl_faults *faults);
/* Says which op found what, in `capacity` bytes. */
void ocl_fault_text(const ocl_faults *faults, char *text, size_t capacity);
ocl_faults *ocl_faults_retain(ocl_faults *faults);
void ocl_faults_release(ocl_faults *faults);

#endif
