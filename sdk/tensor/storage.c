/* Storages: memory with an identity and a version. */
#include <stdlib.h>

#include "base/error.h"
#include "tensor/recorder.h"

_Thread_local tns_recorder *tns_recording;

static graft_storage *storage_make(graft_rt_device *device) {
  static _Atomic(uint64_t) last_id;
  graft_storage *storage = calloc(1, sizeof *storage);
  if (!storage) return NULL;
  atomic_init(&storage->refs, 1);
  atomic_init(&storage->version, 1);
  storage->device = device;
  atomic_fetch_add_explicit(&device->storages, 1, memory_order_relaxed);
  storage->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
  return storage;
}

static graft_status no_host_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory left for the description of a tensor's storage");
}

graft_status tns_storage_symbolic(graft_rt_device *device, uint64_t bytes, uint64_t symbol, graft_storage **storage) {
  graft_storage *made = storage_make(device);
  if (!made) return no_host_memory();
  made->bytes = bytes;
  made->symbol = symbol;
  *storage = made;
  return GRAFT_OK;
}

static graft_status record_storage(graft_rt_device *device, uint64_t bytes, graft_storage **storage) {
  uint64_t symbol;
  graft_status status = tns_recording->place(tns_recording, bytes, &symbol);
  return status ? status : tns_storage_symbolic(device, bytes, symbol, storage);
}

const char *tns_no_memory_text(const graft_tensor *t) {
  if (!t->storage) return "has a shape but no memory";
  return "stands for a value of a graph, which is there only while the graph runs: make this call while the graph is "
         "recorded (graft_graph_record_begin), or name it as an output (graft_graph_output) and take what a run gives";
}

graft_status tns_check_memory(const graft_tensor *t, const char *what) {
  if (!tns_lacks_memory(t)) return GRAFT_OK;
  if (t->storage && tns_recording) return tns_recording->refuse(tns_recording, what);
  return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s %s", what, TNS_SHAPE(t), tns_no_memory_text(t));
}

graft_status tns_storage_new(graft_rt_device *device, uint64_t bytes, graft_storage **storage) {
  if (tns_recording && tns_recording->device == device) return record_storage(device, bytes, storage);
  mem_block *block = NULL;
  graft_status status = mem_allocate(device, graft_stream_current(device), bytes, &block);
  if (status) return status;
  graft_storage *made = storage_make(device);
  if (!made) {
    mem_free(block);
    return no_host_memory();
  }
  made->block = block;
  made->buffer = block->buffer;
  made->offset = block->offset;
  made->bytes = bytes;
  made->address = block->address;
  made->host_pointer = block->host_pointer;
  *storage = made;
  return GRAFT_OK;
}

graft_status tns_storage_foreign(graft_rt_device *device, const tns_foreign *memory, graft_storage **storage) {
  graft_storage *made = storage_make(device);
  if (!made) return no_host_memory();
  made->buffer = memory->buffer;
  made->offset = memory->offset;
  made->bytes = memory->bytes;
  made->address = memory->address;
  made->host_pointer = memory->host_pointer;
  made->release = memory->release;
  tns_storage_expose(made);
  made->release_context = memory->context;
  *storage = made;
  return GRAFT_OK;
}

void tns_storage_expose(graft_storage *storage) {
  atomic_store_explicit(&storage->unseen, true, memory_order_relaxed);
}

void tns_storage_retain(graft_storage *storage) {
  atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
}

void tns_storage_release(graft_storage *storage) {
  if (!storage || atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel) != 1) return;
  if (storage->block) mem_free(storage->block);
  graft_rt_device *device = storage->device;
  if (storage->release) storage->release(storage->release_context);
  free(storage);
  atomic_fetch_sub_explicit(&device->storages, 1, memory_order_release);
}
