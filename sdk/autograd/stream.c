/* Backward on the streams of forward. Where all ran on one stream, nothing here does anything. */
#include <stdlib.h>

#include "autograd/node.h"

/* The recorded stream may be destroyed by now, so it is looked for by its id and never by its pointer. */
graft_rt_stream *ag_stream_of(const ag_node *node) {
  graft_rt_stream *current = graft_stream_current(node->device);
  if (!node->stream_id || !current || current->id == node->stream_id) return current;
  if (node->device->default_stream && node->device->default_stream->id == node->stream_id) {
    return node->device->default_stream;
  }
  pthread_mutex_lock(&node->device->streams_lock);
  graft_rt_stream *at = node->device->streams;
  while (at && at->id != node->stream_id) at = at->next;
  pthread_mutex_unlock(&node->device->streams_lock);
  return at ? at : current;
}

/* Events are kept for the next hand-over: a wait captures the record at its time, so one can serve again at once. */
typedef struct event_entry {
  struct event_entry *next;
  graft_rt_device *device;
  graft_rt_event *event;
} event_entry;
static event_entry *spare;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static graft_status event_take(graft_rt_device *device, event_entry **taken) {
  pthread_mutex_lock(&spare_lock);
  event_entry **at = &spare;
  while (*at && (*at)->device != device) at = &(*at)->next;
  event_entry *entry = *at;
  if (entry) *at = entry->next;
  pthread_mutex_unlock(&spare_lock);
  *taken = entry;
  if (entry) return GRAFT_OK;
  entry = calloc(1, sizeof *entry);
  if (!entry) return err_set(GRAFT_OUT_OF_MEMORY, "backward: no host memory for an event");
  entry->device = device;
  graft_status status = graft_event_create(device, 0, &entry->event);
  if (status) {
    free(entry);
  } else {
    *taken = entry;
  }
  return status;
}

static void event_give_back(event_entry *entry) {
  pthread_mutex_lock(&spare_lock);
  entry->next = spare;
  spare = entry;
  pthread_mutex_unlock(&spare_lock);
}

graft_status ag_stream_hand_over(graft_tensor *tensor, graft_rt_stream *from, graft_rt_stream *to) {
  if (from == to || !from || !to) return GRAFT_OK;
  event_entry *entry;
  graft_status status = event_take(from->device, &entry);
  if (status) return status;
  status = graft_event_record(entry->event, from);
  if (!status) status = graft_stream_wait(to, entry->event);
  event_give_back(entry);
  if (!status && tensor->storage && tensor->storage->block) status = mem_record_stream(tensor->storage->block, to);
  return status;
}

void ag_forget_device(graft_rt_device *device) {
  pthread_mutex_lock(&spare_lock);
  for (event_entry **at = &spare; *at;) {
    event_entry *entry = *at;
    if (entry->device != device) {
      at = &entry->next;
      continue;
    }
    *at = entry->next;
    graft_event_destroy(entry->event);
    free(entry);
  }
  pthread_mutex_unlock(&spare_lock);
}
