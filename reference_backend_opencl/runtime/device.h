/* Devices: finding and opening them, and what all that runs on one shares. */
#ifndef OCL_DEVICE_H
#define OCL_DEVICE_H

#include "runtime/plugin.h"

typedef struct ocl_program ocl_program;
typedef struct ocl_shared_kernel ocl_shared_kernel;
typedef struct ocl_tables ocl_tables;
typedef struct ocl_profiler ocl_profiler;

enum { OCL_PROGRAM_LISTS = 256 }; /* a device has some thousand programs where many models run */

struct graft_device {
  ocl_plugin *plugin;
  cl_device_id id;
  cl_context context;
  cl_command_queue map_queue;    /* maps pinned memory; never carries work */
  bool breaks_unrolled_barriers; /* loops around barriers go wrong where their length is known: docs/opencl.md, Mesa */
  bool is_cpu;                   /* long pieces of work for a few cores; else a work-item for each few elements */
  bool host_memory;              /* a processor, whose buffers lie in host memory, whatever kernels it runs */
  bool has_f64, exact_division;
  bool permutes;        /* vpermps of 16 lanes may stand in kernels, as inline assembly */
  bool dots_bytes;      /* vpdpbusd may stand in kernels, as inline assembly */
  bool dots_bf16;       /* likewise vdpbf16ps, and it is twice as fast as an fma */
  cl_uint vector_width; /* f32 lanes worth naming in a kernel: 4, 8 or 16 */
  cl_uint compute_units;
  cl_uint nvidia_capability; /* the first number of it; 0: another's device */
  size_t largest_group;      /* work-items of one */
  cl_ulong local_bytes;      /* local memory of one */
  cl_ulong max_allocation;
  atomic_uint_fast64_t buffers_released; /* times that one was given back */
  size_t parameter_bytes;                /* the most that the arguments of a kernel may have together */

  pthread_mutex_t program_lock; /* guards `programs` and the state of each */
  pthread_cond_t program_ready;
  ocl_program *programs[OCL_PROGRAM_LISTS]; /* by their keys */
  atomic_bool disk_unusable;                /* said once, then no more tries */
  bool long_header;                         /* the driver puts a long header in front of each program */
  atomic_bool keeps_header;                 /* and can't be told not to */
  bool optimizes_slowly; /* most of what compiling a program takes: one for small calls may do without */
  bool keeps_programs;   /* the driver keeps what it compiles, and compiles it once more for a binary */
  bool buffers_in_place; /* a buffer made of the host's memory lies there, and nowhere else */
  bool compiles_here;    /* in this process, a kernel in the driver's threads where it is first run */

  pthread_mutex_t tensor_lock; /* guards what nvidia.c found out */
  bool tensor_known, tensor_cores;

  pthread_mutex_t shared_lock; /* guards `shared_kernels` */
  ocl_shared_kernel *shared_kernels;
  ocl_tables *tables;

  atomic_bool recording; /* what streams are given is recorded */
  ocl_profiler *profiler;
};

graft_status ocl_device_count(void *self, int32_t *count);
graft_status ocl_device_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                              size_t *size);
graft_status ocl_device_open(void *self, int32_t index, graft_device **device);
graft_status ocl_device_close(graft_device *device);

#endif
