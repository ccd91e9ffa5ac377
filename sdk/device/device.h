/* device/: devices, streams, events and generators above a plugin.
 *
 * Internal to libgraft. Depends on plugin/; what stands above (the allocator, dispatch) keeps its state of a device
 * here. Begin reading in open.c, then stream.c. */
#ifndef GRAFT_SDK_DEVICE_H
#define GRAFT_SDK_DEVICE_H

#include "plugin/backend.h"

typedef struct mem_allocator mem_allocator;
typedef struct mem_pool mem_pool;
typedef struct dsp_device dsp_device; /* dispatch's state of a device: capabilities, plans, counters */

/* What stands above device/ and is needed here; wiring.c fills it in. */
typedef struct dev_hooks_table {
  graft_status (*allocator_create)(graft_rt_device *device, mem_allocator **allocator); /* when a device is opened */
  graft_status (*dispatch_create)(graft_rt_device *device, dsp_device **dispatch);      /* likewise */
  int64_t (*allocator_blocks)(mem_allocator *allocator);                                /* in use */
  void (*device_closing)(graft_rt_device *device); /* what autograd keeps of it goes */
  /* When a device is closed: memos go, then the allocator's events, its memory last. */
  void (*dispatch_destroy)(dsp_device *dispatch);
  void (*allocator_settle)(mem_allocator *allocator);
  void (*allocator_destroy)(mem_allocator *allocator);
  /* The stream is done and about to be destroyed: its memory belongs to the default stream from now on. */
  void (*stream_closing)(graft_rt_stream *stream);
} dev_hooks_table;
extern const dev_hooks_table dev_hooks;

struct graft_generator {
  pthread_mutex_t lock;
  uint64_t seed, offset;
};

/* Work that streams are given is captured instead of run: what all rooms know of it. It is the first member of a
 * tns_capture (tensor/capture.h). */
typedef struct dev_capture {
  graft_rt_device *device;
  uint64_t id;    /* unique in the process */
  mem_pool *pool; /* where memory of the captured streams comes from */
  /* The error of something that can't be captured, which ends the capture; `what` was to be done. */
  graft_status (*refuse)(struct dev_capture *self, const char *what);
} dev_capture;

/* One moment on two clocks. */
typedef struct dev_moment {
  uint64_t device_ns, host_ns;
} dev_moment;

struct graft_rt_device {
  graft_rt_backend *backend;
  int32_t index;
  graft_device *handle;
  char text[80];
  /* Properties that the hot path needs, with their defaults filled in. */
  uint64_t alignment, granularity, copy_granularity, max_allocation;
  uint64_t dtypes, denormals;
  int32_t dlpack_type;
  uint32_t memory_kinds;
  bool indivisible, unified, is_reference;
  bool uncached;     /* the host keeps no memory of it */
  bool waits_across; /* its streams wait for events of other devices of the instance */
  graft_rt_stream *default_stream;
  pthread_mutex_t streams_lock;
  graft_rt_stream *streams; /* all created ones, for graft_device_synchronize */
  graft_generator generator;
  mem_allocator *allocator;
  dsp_device *dispatch;
  _Atomic(const graft_profiler_api *) profiler; /* the plugin's, while records are kept; else NULL */
  dev_moment profile_began;                     /* guarded by streams_lock */
  _Atomic(int64_t) storages, events_out;        /* that somebody holds */
  /* Destroyed by their owners and kept for the next ones, oldest first: see event.c. Guarded by streams_lock. */
  graft_rt_event *events, *last_event;
  dev_capture *capture;                             /* under way; guarded by streams_lock */
  uint32_t generation;                              /* as the backend's */
  uint32_t memory_flags, stream_flags, event_flags; /* must-understand flags that the plugin knows */
};

struct graft_rt_stream {
  graft_rt_device *device;
  graft_stream *handle;
  int32_t priority;
  graft_stream_flags flags;
  pthread_mutex_t lock; /* serialises calls that name the stream */
  /* Held for reading by calls that use the handle without the lock (query, synchronize, event_record); to exchange the
   * handle takes both. */
  pthread_rwlock_t exchange;
  /* Unique in the process, from 1; 0 once destroyed. The struct is recycled with another id, never freed, so that an
   * old pointer can be told from a live one. */
  _Atomic(uint64_t) id;
  _Atomic(dev_capture *) capture; /* that its work goes to; NULL: it runs */
  struct graft_rt_stream *next;
};

/* The capture that a stream's work goes to, or NULL. */
static inline dev_capture *dev_capture_of(const graft_rt_stream *stream) {
  return atomic_load_explicit(&stream->capture, memory_order_acquire);
}
/* Captures what the stream is given from now on. Error: another capture of the device is under way. */
graft_status dev_capture_begin(dev_capture *capture, graft_rt_stream *stream);
/* Its streams run their work again. */
void dev_capture_end(dev_capture *capture);
/* The stream's work belongs to the capture with this id, too, if that is still under way. */
void dev_capture_join(graft_rt_stream *stream, uint64_t id);

/* Whether a driver was used before this process was forked from its parent, or the process has begun to exit: nothing
 * may enter a plugin then. The check is one comparison of a counter that pthread_atfork and atexit handlers move. */
bool dev_forked(const graft_rt_device *device);
/* FORKED with its text, to return. */
graft_status dev_forked_error(const graft_rt_device *device);

/* All devices opened so far, for statistics and shutdown: calls visit for each. */
void dev_each(void (*visit)(void *context, graft_rt_device *device), void *context);

/* Waiting for libgraft's own needs: failures stay with their streams, to be reported to the user. */
void dev_wait_for_work(graft_rt_device *device);

/* Puts the event behind what was submitted to the stream so far; as the plugin says, without a text. */
graft_status dev_event_record(graft_event *event, graft_rt_stream *stream);

/* Puts *event, made here where it is NULL, behind what was submitted to the stream that had this id. False: there is
 * nothing to wait for, because the stream was destroyed since, or was waited for in the event's stead. */
bool dev_stream_fence(graft_rt_device *device, graft_rt_stream *stream, uint64_t id, graft_event **event);

/* Completes the text of a failed call that waits for the stream, and gives the user the news: a stream that a fault
 * of its own made unusable is replaced by a new one behind the same graft_rt_stream. */
graft_status dev_waited(graft_rt_stream *stream, graft_status status, const char *what);

/* Draws `count` 32-bit words (a multiple of 4) from a generator: returns seed and offset before, and advances. */
void dev_generator_draw(graft_generator *generator, uint64_t count, uint64_t *seed, uint64_t *offset);

/* Says of what the stream is about to be given which op (0: none) and thread it comes from, if somebody records it.
 * [stream->lock held] */
void dev_mark_submission(const graft_profiler_api *profiler, graft_rt_stream *stream, uint32_t op_id);
static inline void dev_mark(graft_rt_stream *stream, uint32_t op_id) {
  const graft_profiler_api *profiler = atomic_load_explicit(&stream->device->profiler, memory_order_acquire);
  if (profiler) dev_mark_submission(profiler, stream, op_id);
}

/* plg_status_of for a call that concerns a device. */
static inline graft_status dev_status(const graft_rt_device *device, graft_status status, const char *what) {
  return status == GRAFT_OK ? GRAFT_OK : plg_status_of(device->text, status, what);
}

#endif
