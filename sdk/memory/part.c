/* Parts of segments: their structs, the sets of free ones, splitting and merging. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "memory/internal.h"

#define SLAB 64

/* The first item of a slab lies behind its link, aligned for any struct here. */
void *mem_slab_new(mem_allocator *allocator, size_t count, size_t bytes) {
  const size_t head = 16;
  char *slab = calloc(1, head + count * bytes);
  if (!slab) return NULL;
  memcpy(slab, &allocator->slabs, sizeof allocator->slabs);
  allocator->slabs = slab;
  return slab + head;
}

mem_part *mem_part_take(mem_allocator *allocator) {
  if (!allocator->spare_parts) {
    mem_part *slab = mem_slab_new(allocator, SLAB, sizeof *slab);
    if (!slab) return NULL;
    for (int i = 0; i < SLAB; i++) mem_part_return(allocator, &slab[i]);
  }
  mem_part *part = allocator->spare_parts;
  allocator->spare_parts = part->right;
  memset(part, 0, sizeof *part);
  part->block.device = allocator->device;
  return part;
}

void mem_part_return(mem_allocator *allocator, mem_part *part) {
  part->right = allocator->spare_parts;
  allocator->spare_parts = part;
}

mem_segment *mem_segment_take(mem_allocator *allocator) {
  mem_segment *segment = allocator->spare_segments;
  if (!segment) return calloc(1, sizeof *segment);
  allocator->spare_segments = segment->next;
  memset(segment, 0, sizeof *segment);
  return segment;
}

void mem_segment_return(mem_allocator *allocator, mem_segment *segment) {
  segment->next = allocator->spare_segments;
  allocator->spare_segments = segment;
}

void mem_stat_add(graft_memory_stat *stat, int64_t amount) {
  stat->current += amount;
  if (amount > 0) stat->allocated += amount;
  if (amount < 0) stat->freed -= amount;
  if (stat->current > stat->peak) stat->peak = stat->current;
}

/* A free part of a divided segment counts as inactive split for as long as it is in its set: its neighbours can't
 * change meanwhile without taking it out. */
static void count_split(mem_allocator *allocator, const mem_part *part, int64_t sign) {
  if (!part->prev && !part->next) return;
  mem_stat_add(&allocator->stats.inactive_split, sign);
  mem_stat_add(&allocator->stats.inactive_split_bytes, sign * (int64_t)part->block.bytes);
}

static void insert(mem_allocator *allocator, mem_part *part) {
  uint32_t random = allocator->random;
  random ^= random << 13;
  random ^= random >> 17;
  random ^= random << 5;
  allocator->random = random;
  part->free = true;
  mem_tree_insert(&part->segment->pool->free[part->segment->small], part, random);
  count_split(allocator, part, 1);
}

void mem_part_remove(mem_allocator *allocator, mem_part *part) {
  count_split(allocator, part, -1);
  mem_tree_remove(&part->segment->pool->free[part->segment->small], part);
  part->free = false;
}

graft_status mem_part_split(mem_allocator *allocator, mem_part *part, uint64_t bytes) {
  mem_part *rest = mem_part_take(allocator);
  if (!rest) return err_about(GRAFT_OUT_OF_MEMORY, allocator->device->text, "no host memory to divide a block");
  rest->segment = part->segment;
  rest->block = part->block;
  rest->block.offset += bytes;
  rest->block.bytes -= bytes;
  rest->block.address += bytes;
  if (rest->block.host_pointer) rest->block.host_pointer = (char *)rest->block.host_pointer + bytes;
  rest->prev = part;
  rest->next = part->next;
  if (rest->next) rest->next->prev = rest;
  part->next = rest;
  part->block.bytes = bytes;
  insert(allocator, rest);
  return GRAFT_OK;
}

/* Makes `part` as large as both; the one behind it disappears. */
static void absorb_next(mem_allocator *allocator, mem_part *part) {
  mem_part *gone = part->next;
  part->block.bytes += gone->block.bytes;
  part->next = gone->next;
  if (part->next) part->next->prev = part;
  mem_part_return(allocator, gone);
}

void mem_part_release(mem_allocator *allocator, mem_part *part) {
  if (part->next && part->next->free) {
    mem_part_remove(allocator, part->next);
    absorb_next(allocator, part);
  }
  if (part->prev && part->prev->free) {
    part = part->prev;
    mem_part_remove(allocator, part);
    absorb_next(allocator, part);
  }
  insert(allocator, part);
}
