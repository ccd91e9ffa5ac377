/* What the files of memory/ share. Begin reading in allocator.c.
 *
 * A segment is one buffer of the plugin's. It is divided into parts, which form a list in address order; each is free
 * or handed out as a mem_block. A stream's free parts lie in its pool, in one ordered set for small and one for large
 * segments. Structs come from slabs and return to free lists, so that a program in its steady state asks the system for
 * nothing.
 *
 * `lock` guards everything in mem_allocator; functions marked [locked] expect it held, those marked [unlocked] call the
 * plugin and must not hold it. */
#ifndef GRAFT_SDK_MEMORY_INTERNAL_H
#define GRAFT_SDK_MEMORY_INTERNAL_H

#include "graft/memory.h"
#include "memory/memory.h"

#define MEM_SMALL_MAX     (UINT64_C(1) << 20) /* up to this a request comes from a small segment */
#define MEM_SMALL_SEGMENT (UINT64_C(2) << 20)
#define MEM_LARGE_SHARED  (UINT64_C(5) << 20)  /* from this on a request has a segment of its own size */
#define MEM_LARGE_SEGMENT (UINT64_C(20) << 20) /* at most, for those below */
#define MEM_LARGE_ROUND   (UINT64_C(2) << 20)
#define MEM_REQUEST_MAX   (UINT64_C(1) << 60) /* sums of a few such sizes still fit */

typedef struct mem_part mem_part;
typedef struct mem_segment mem_segment;
typedef struct mem_use mem_use;
typedef struct mem_pinned mem_pinned;

/* Work of another stream on some memory. Keeps its event between lives, once it has one. */
struct mem_use {
  graft_rt_stream *stream;
  uint64_t stream_id; /* when recorded; another one now: that stream is done and gone */
  graft_event *event;
  mem_use *next;
};

/* block comes first: users hold its address. */
struct mem_part {
  mem_block block;
  mem_segment *segment; /* NULL for a block without memory */
  mem_part *prev, *next;
  mem_use *uses;
  uint64_t requested;
  bool free;
  /* In the set of free parts; `right` also links free structs, and parts that wait for other streams. */
  mem_part *left, *right;
  uint32_t priority;
};

struct mem_segment {
  mem_segment *prev, *next;
  mem_pool *pool;
  mem_part *first;
  graft_buffer *buffer;
  uint64_t bytes;
  uint64_t address;
  uint64_t reserved; /* bytes of unreadable addresses behind `address`, 0: the address is the device's or the host's */
  void *host_pointer;
  bool small;
};

/* An ordered set of free parts, by size, then address: a treap. */
typedef struct mem_tree {
  mem_part *root;
} mem_tree;

void mem_tree_insert(mem_tree *tree, mem_part *part, uint32_t priority);
void mem_tree_remove(mem_tree *tree, mem_part *part);
mem_part *mem_tree_at_least(const mem_tree *tree, uint64_t bytes); /* the smallest that fits, or NULL */

struct mem_pool {
  graft_rt_stream *stream; /* NULL: unused */
  bool captured;           /* of captures: no stream's own */
  mem_tree free[2];        /* [segment->small] */
  mem_pool *next;
};

struct mem_allocator {
  graft_rt_device *device;
  pthread_mutex_t lock;
  uint64_t unit; /* sizes and offsets of blocks are multiples of it */
  uint64_t limit;
  bool uncached; /* a segment for each request, of its very size, given back before the next */
  bool ordered;  /* likewise, but given back when it is freed, in the order of its stream */
  mem_segment *segments;
  mem_pool *pools;
  mem_part *waiting, **waiting_end; /* freed, but in use by other streams; oldest first */
  mem_part *spare_parts;
  mem_use *spare_uses;
  mem_segment *spare_segments;
  void *slabs; /* each begins with a pointer to the next */
  uint32_t random;
  graft_memory_statistics stats;

  /* Pinned memory: see pinned.c. */
  mem_pinned **pinned; /* all, by address */
  size_t pinned_count, pinned_capacity;
  mem_pinned *pinned_free[64]; /* by log2 of the size */
  mem_pinned *pinned_waiting;
  uint64_t pinned_bytes;
};

/* Structs. [locked] NULL: no host memory. */
mem_part *mem_part_take(mem_allocator *allocator);
void mem_part_return(mem_allocator *allocator, mem_part *part);
mem_segment *mem_segment_take(mem_allocator *allocator);
void mem_segment_return(mem_allocator *allocator, mem_segment *segment);
void *mem_slab_new(mem_allocator *allocator, size_t count, size_t bytes); /* freed with the allocator */

/* Parts. [locked] */
mem_pool *mem_pool_of(mem_allocator *allocator, graft_rt_stream *stream);  /* made at first use; NULL: no host memory */
mem_pool *mem_pool_new(mem_allocator *allocator, graft_rt_stream *stream); /* NULL: no host memory */
mem_pool *mem_pool_for(mem_allocator *allocator, graft_rt_stream *stream); /* of its capture, else of it */
void mem_pool_move(mem_allocator *allocator, mem_pool *from, mem_pool *to); /* all memory */
void mem_part_remove(mem_allocator *allocator, mem_part *part);
graft_status mem_part_split(mem_allocator *allocator, mem_part *part, uint64_t bytes); /* the rest becomes free */
void mem_part_release(mem_allocator *allocator, mem_part *part); /* makes it free and merges it with its neighbours */

/* Uses by other streams. */
graft_status mem_use_add(mem_allocator *allocator, mem_use **uses, graft_rt_stream *stream); /* [locked] */
void mem_uses_fence(mem_allocator *allocator, mem_use **uses);                               /* [unlocked] */

/* Streams already found busy while polling: their later events need no asking. */
typedef struct mem_busy {
  const graft_rt_stream *streams[8];
  int count;
} mem_busy;
/* Makes `stream` wait for the uses, and takes them off. [unlocked] */
void mem_uses_follow(mem_allocator *allocator, mem_use **uses, graft_rt_stream *stream);
/* Takes off the uses that are done; true when none is left. With busy NULL it waits for them. [unlocked] */
bool mem_uses_done(mem_allocator *allocator, mem_use **uses, mem_busy *busy);

/* Segments. [unlocked] */
graft_status mem_segment_new(mem_allocator *allocator, uint64_t bytes, graft_rt_stream *stream, mem_segment **segment);
/* Gives the one block of a segment back in the order of its stream, behind what other streams do with it. */
void mem_segment_end(mem_allocator *allocator, mem_segment *segment);
void mem_segment_drop(mem_allocator *allocator, mem_segment *segment); /* from the books. [locked] */
void mem_release_cached(mem_allocator *allocator);                     /* waits for the device */
void mem_poll(mem_allocator *allocator, bool wait);

/* Destroys the events of unused uses, when the allocator ends. [unlocked] */
void mem_uses_end(mem_allocator *allocator);

/* How many pinned blocks somebody holds. [locked] */
int64_t mem_pinned_in_use(const mem_allocator *allocator);

/* Pinned memory. [unlocked] */
void mem_pinned_poll(mem_allocator *allocator, bool wait);
void mem_pinned_release_cached(mem_allocator *allocator);
/* Whether `bytes` are cached, or all pinned memory together is below `limit`. */
bool mem_pinned_has_room(mem_allocator *allocator, uint64_t bytes, uint64_t limit);

/* An address range that faults when touched; *address is a multiple of `alignment`. */
graft_status mem_address_reserve(uint64_t bytes, uint64_t alignment, uint64_t *address, uint64_t *reserved);
void mem_address_release(uint64_t address, uint64_t reserved);

void mem_stat_add(graft_memory_stat *stat, int64_t amount);

#endif
