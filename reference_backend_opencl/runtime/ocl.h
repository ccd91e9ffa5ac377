/* The OpenCL reference backend, from the inside: all of its runtime for the kernels. Begin in README.md; each header
 * here says what its .c does.
 *
 *   plugin.h    the table that the host sees, options   program.h   kernel sources to programs, in memory and on disk
 *   op.h        which op lies in which slot             launch.h    prepared kernels, their launches, memos
 *   device.h    finding and opening devices             table.h     tables of constants that kernels read
 *   memory.h    buffers and copies                      dtype.h     dtypes and numbers
 *   stream.h    queues, events                          geometry.h  index spaces
 *   fault.h     failures that kernels find              text.h      error texts
 *   profiler.h  records of what ran, and when
 *
 * An op, on its first call with some dtypes and shapes, generates the source of one kernel for just that case, and
 * hangs the prepared kernel on the call's memo. Every later call sets the buffers and launches. */
#ifndef OCL_OCL_H
#define OCL_OCL_H

#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/exit.h"
#include "runtime/fault.h"
#include "runtime/geometry.h"
#include "runtime/launch.h"
#include "runtime/memory.h"
#include "runtime/nvidia.h"
#include "runtime/op.h"
#include "runtime/plugin.h"
#include "runtime/profiler.h"
#include "runtime/program.h"
#include "runtime/ptx.h"
#include "runtime/stream.h"
#include "runtime/table.h"
#include "runtime/text.h"

#endif
