/* Addresses for memory that has none: a range of this process's address space that is reserved and never readable. A
 * tensor's data pointer is then ordinary arithmetic, two tensors never share one, and a host read faults at once. */
#include <sys/mman.h>

#include "base/error.h"
#include "memory/internal.h"

graft_status mem_address_reserve(uint64_t bytes, uint64_t alignment, uint64_t *address, uint64_t *reserved) {
  const uint64_t page = 4096;
  uint64_t slack = alignment > page ? alignment : 0;
  uint64_t length = (bytes + slack + page - 1) / page * page;
  void *range = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    return err_set(GRAFT_OUT_OF_MEMORY,
                   "no address range of %llu bytes is left in this process (ulimit -v, vm.max_map_count)",
                   (unsigned long long)bytes);
  }
  uint64_t start = (uint64_t)(uintptr_t)range;
  if (slack) { /* give back what alignment does not need */
    uint64_t aligned = (start + alignment - 1) / alignment * alignment;
    uint64_t kept = (bytes + page - 1) / page * page;
    if (aligned > start) munmap(range, aligned - start);
    if (start + length > aligned + kept) munmap((void *)(uintptr_t)(aligned + kept), start + length - aligned - kept);
    start = aligned;
    length = kept;
  }
  *address = start;
  *reserved = length;
  return GRAFT_OK;
}

void mem_address_release(uint64_t address, uint64_t reserved) {
  if (reserved) munmap((void *)(uintptr_t)address, reserved);
}
