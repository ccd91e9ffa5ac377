/* What exit waits for, of a driver that compiles in threads of this process. */
#ifndef OCL_EXIT_H
#define OCL_EXIT_H

#include "runtime/stream.h"

/* From `watch` to `forget`, exit waits for what the stream was given. */
void ocl_exit_watch(graft_stream *stream);
void ocl_exit_forget(graft_stream *stream);

/* Around the making of a program. Once exit has begun to wait, `begins` does not return. */
void ocl_exit_build_begins(const graft_device *device);
void ocl_exit_build_ends(const graft_device *device);

#endif
