/* Buffers and copies. A buffer is a cl_mem, however large: the host divides it and hands kernels byte offsets.
 * Sub-buffers would need an object a tensor and offsets aligned to the device's liking. */
#define _DEFAULT_SOURCE /* madvise */
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "runtime/ocl.h"

/* A reusable source up to this size is copied aside; a larger one is cheaper to wait for. */
#define STAGED_BYTES_MAX (1u << 20)

static graft_status map_pinned(graft_device *device, graft_buffer *buffer) {
  cl_int error;
  buffer->mapped = clEnqueueMapBuffer(device->map_queue, buffer->handle, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                      buffer->bytes, 0, NULL, NULL, &error);
  if (error == CL_SUCCESS) return GRAFT_OK;
  return ocl_fail(device->plugin, GRAFT_OUT_OF_MEMORY, "%llu bytes of pinned memory: %s",
                  (unsigned long long)buffer->bytes, ocl_error_name(error));
}

/* Of x86-64, and of most others. */
#define HUGE_PAGE_BYTES (2u << 20)

static void CL_CALLBACK free_pages(cl_mem handle, void *pages) {
  (void)handle;
  free(pages);
}

/* A buffer of a processor in huge pages, where the system has them: with pages of 4 KiB a kernel that streams through
 * memory waits for their look-up as long as for the data. Drivers allocate without asking for them. NULL: not so. */
static cl_mem in_huge_pages(graft_device *device, uint64_t bytes, const char **at) {
#ifdef MADV_HUGEPAGE
  void *pages = NULL;
  if (!device->host_memory || bytes < HUGE_PAGE_BYTES) return NULL;
  if (posix_memalign(&pages, HUGE_PAGE_BYTES, bytes) != 0) return NULL;
  madvise(pages, bytes, MADV_HUGEPAGE); /* where it is refused the pages are small, and as good as the driver's */
  cl_int error;
  cl_mem handle = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, pages, &error);
  if (error != CL_SUCCESS) {
    free(pages);
    return NULL;
  }
  if (clSetMemObjectDestructorCallback(handle, free_pages, pages) == CL_SUCCESS) {
    *at = pages;
    return handle;
  }
  clReleaseMemObject(handle);
  free(pages);
#else
  (void)device, (void)bytes, (void)at;
#endif
  return NULL;
}

static cl_mem create(graft_device *device, uint64_t bytes, bool pinned, const char **pages, cl_int *error) {
  cl_mem handle = in_huge_pages(device, bytes, pages);
  if (handle) return handle;
  return clCreateBuffer(device->context, CL_MEM_READ_WRITE | (pinned ? CL_MEM_ALLOC_HOST_PTR : 0), bytes, NULL, error);
}

static graft_status allocate(graft_device *device, graft_allocation *request) {
  const ocl_plugin *plugin = device->plugin;
  if (request->kind != GRAFT_MEMORY_DEVICE && request->kind != GRAFT_MEMORY_PINNED) return GRAFT_UNIMPLEMENTED;
  if (request->flags & 0xffffu) return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT, "unknown memory flags");
  if (request->bytes == 0) return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT, "an allocation of 0 bytes");
  if (request->bytes > device->max_allocation) {
    return ocl_fail(plugin, GRAFT_OUT_OF_MEMORY, "%llu bytes asked for, the device's largest allocation is %llu",
                    (unsigned long long)request->bytes, (unsigned long long)device->max_allocation);
  }
  graft_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return GRAFT_OUT_OF_MEMORY;
  bool pinned = request->kind == GRAFT_MEMORY_PINNED;
  cl_int error = CL_SUCCESS;
  buffer->bytes = request->bytes;
  buffer->handle = create(device, request->bytes, pinned, &buffer->pages, &error);
  if (!buffer->handle) {
    free(buffer);
    return ocl_fail(plugin, GRAFT_OUT_OF_MEMORY, "%llu bytes: %s", (unsigned long long)request->bytes,
                    ocl_error_name(error));
  }
  if (pinned && map_pinned(device, buffer) != GRAFT_OK) {
    clReleaseMemObject(buffer->handle);
    free(buffer);
    return GRAFT_OUT_OF_MEMORY;
  }
  request->buffer = buffer;
  request->host_pointer = buffer->mapped;
  request->device_address = 0;
  return GRAFT_OK;
}

void ocl_buffer_release(graft_device *device, cl_mem handle) {
  atomic_fetch_add(&device->buffers_released, 1); /* before its handle can be another's */
  clReleaseMemObject(handle);
}

static graft_status release(graft_device *device, graft_buffer *buffer) {
  if (buffer->mapped) {
    clEnqueueUnmapMemObject(device->map_queue, buffer->handle, buffer->mapped, 0, NULL, NULL);
    clFlush(device->map_queue);
  }
  ocl_buffer_release(device, buffer->handle);
  free(buffer);
  return GRAFT_OK;
}

static void CL_CALLBACK free_staged(cl_event event, cl_int status, void *staged) {
  (void)event;
  (void)status;
  free(staged);
}

/* Writes from a copy of `from` that lives until the write is done. */
static cl_int write_staged(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from, uint64_t bytes) {
  void *staged = malloc(bytes);
  if (!staged) return CL_OUT_OF_HOST_MEMORY;
  memcpy(staged, from, bytes);
  cl_event done;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_COPY_FROM_HOST, bytes);
  cl_int error = clEnqueueWriteBuffer(command.queue, to->handle, CL_FALSE, offset, bytes, staged, 0, NULL, &done);
  if (error != CL_SUCCESS) {
    free(staged);
    return error;
  }
  if (clSetEventCallback(done, CL_COMPLETE, free_staged, staged) != CL_SUCCESS) {
    clWaitForEvents(1, &done);
    free(staged);
  }
  ocl_command_end(&command, done, NULL);
  return CL_SUCCESS;
}

static cl_int write(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from, uint64_t bytes,
                    bool waits) {
  cl_event event = NULL;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_COPY_FROM_HOST, bytes);
  cl_int error = clEnqueueWriteBuffer(command.queue, to->handle, waits, offset, bytes, from, 0, NULL,
                                      command.recorded ? &event : NULL);
  ocl_command_end(&command, event, NULL);
  return error;
}

static graft_status copy_from_host(graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
                                   uint64_t bytes, graft_copy_flags flags) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK || bytes == 0) return status;
  bool reusable = flags & GRAFT_COPY_SOURCE_REUSABLE;
  if (flags & 0xffffu & ~GRAFT_COPY_SOURCE_REUSABLE) {
    return ocl_fail(stream->device->plugin, GRAFT_INVALID_ARGUMENT, "unknown copy flags");
  }
  cl_int error = reusable && bytes <= STAGED_BYTES_MAX ? write_staged(stream, to, offset, from, bytes)
                                                       : write(stream, to, offset, from, bytes, reusable);
  return ocl_stream_result(stream, error, "clEnqueueWriteBuffer");
}

/* Up to this size a copy takes the host less than handing it to a thread of the driver, and waking with the answer. */
#define READ_IN_PLACE_MAX (64u << 10)

/* Whether all of the stream's commands are known to be done and have left what they wrote where the host sees it. While
 * records are kept a copy is a command, of which there is one. */
static bool reads_in_place(graft_stream *stream, const graft_buffer *from, uint64_t bytes) {
  return stream->device->buffers_in_place && from->pages && bytes <= READ_IN_PLACE_MAX && ocl_stream_is_idle(stream) &&
         !atomic_load(&stream->device->recording);
}

static graft_status copy_to_host(graft_stream *stream, void *to, graft_buffer *from, uint64_t offset, uint64_t bytes,
                                 graft_copy_flags flags) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK || bytes == 0) return status;
  if (flags & 0xffffu) return ocl_fail(stream->device->plugin, GRAFT_INVALID_ARGUMENT, "unknown copy flags");
  if (reads_in_place(stream, from, bytes)) {
    memcpy(to, from->pages + offset, bytes);
    return GRAFT_OK;
  }
  cl_event event = NULL;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_COPY_TO_HOST, bytes);
  cl_int error = clEnqueueReadBuffer(command.queue, from->handle, CL_FALSE, offset, bytes, to, 0, NULL,
                                     command.recorded ? &event : NULL);
  ocl_command_end(&command, event, NULL);
  return ocl_stream_result(stream, error, "clEnqueueReadBuffer");
}

/* A processor's driver copies with one thread, which takes a part of what its memory gives: a large copy is a kernel's.
 */
enum { COPY_BY_KERNEL = 1 << 20, WORD = sizeof(cl_uint) };

static bool overlap(ocl_place to, ocl_place from, uint64_t bytes) {
  return to.buffer == from.buffer && to.offset < from.offset + bytes && from.offset < to.offset + bytes;
}

/* What overlaps the driver refuses. */
static bool copies_by_kernel(const graft_device *device, ocl_place to, ocl_place from, uint64_t bytes) {
  return device->is_cpu && device->compute_units > 1 && bytes >= COPY_BY_KERNEL &&
         (to.offset | from.offset | bytes) % WORD == 0 && !overlap(to, from, bytes);
}

static graft_status copy_by_kernel(graft_stream *stream, ocl_place to, ocl_place from, uint64_t bytes) {
  enum { PARTS_A_UNIT = 2, PART_UNIT = 1024 };
  graft_device *device = stream->device;
  const int64_t words = (int64_t)(bytes / WORD);
  const int64_t share = ocl_ceil_divide(words, PARTS_A_UNIT * (int64_t)device->compute_units);
  const int64_t part = ocl_round_up(share, PART_UNIT);
  ocl_kernel *kernel;
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, GRAFT_I32), device->vector_width, 1);
  graft_status status = ocl_kernel_shared(&kernel, device, &head, "core/copy", "copy_words", 1);
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_PLACE(to), OCL_PLACE(from), OCL_VALUE(words), OCL_VALUE(part)};
  return ocl_launch_groups(kernel, stream, (size_t)ocl_ceil_divide(words, part), OCL_ALL(arguments));
}

static graft_status copy(graft_stream *stream, graft_buffer *to, uint64_t to_offset, graft_buffer *from,
                         uint64_t from_offset, uint64_t bytes) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK || bytes == 0) return status;
  const ocl_place target = {to, to_offset}, source = {from, from_offset};
  if (copies_by_kernel(stream->device, target, source, bytes)) return copy_by_kernel(stream, target, source, bytes);
  cl_event event = NULL;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_COPY, bytes);
  cl_int error = clEnqueueCopyBuffer(command.queue, from->handle, to->handle, from_offset, to_offset, bytes, 0, NULL,
                                     command.recorded ? &event : NULL);
  ocl_command_end(&command, event, NULL);
  return ocl_stream_result(stream, error, "clEnqueueCopyBuffer");
}

graft_status ocl_fill(graft_stream *stream, graft_buffer *to, uint64_t offset, uint64_t bytes, const void *pattern,
                      uint32_t pattern_bytes) {
  graft_status status = ocl_stream_check(stream);
  if (status != GRAFT_OK || bytes == 0) return status;
  cl_event event = NULL;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_FILL, bytes);
  cl_int error = clEnqueueFillBuffer(command.queue, to->handle, pattern, pattern_bytes, offset, bytes, 0, NULL,
                                     command.recorded ? &event : NULL);
  ocl_command_end(&command, event, NULL);
  return ocl_stream_result(stream, error, "clEnqueueFillBuffer");
}

const graft_memory_api ocl_memory_api = {
    .struct_size = sizeof ocl_memory_api,
    .allocate = allocate,
    .release = release,
    .copy_from_host = copy_from_host,
    .copy_to_host = copy_to_host,
    .copy = copy,
    .fill = ocl_fill,
};
