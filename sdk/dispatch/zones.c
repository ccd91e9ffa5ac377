/* Red zones around workspaces: see dsp_zone_watch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/plan.h"

enum { ZONE_BYTE = 0xFF };

_Thread_local dsp_zone_watch dsp_zones;

uint64_t dsp_zone_bytes(const graft_rt_device *device) {
  if (!dsp_zones.bytes) return 0;
  return (dsp_zones.bytes + device->alignment - 1) / device->alignment * device->alignment;
}

graft_status dsp_zone_allocate(dsp_frame *frame, uint64_t bytes, mem_block **block) {
  const uint64_t zone = dsp_zone_bytes(frame->device), unit = frame->device->alignment;
  const uint64_t whole = 2 * zone + (bytes + unit - 1) / unit * unit;
  const unsigned char pattern = ZONE_BYTE, inside = dsp_zones.inside;
  graft_status status = mem_allocate(frame->device, frame->stream, zone ? whole : bytes, block);
  if (status || !zone) return status;
  const graft_memory_api *memory = &frame->device->backend->memory;
  status = memory->fill(frame->stream->handle, (*block)->buffer, (*block)->offset, whole, &pattern, 1);
  if (!status && bytes)
    status = memory->fill(frame->stream->handle, (*block)->buffer, (*block)->offset + zone, bytes, &inside, 1);
  if (status) mem_free(*block);
  return status;
}

/* How many of these bytes are another than was filled in. */
static uint64_t changed(const unsigned char *bytes, uint64_t count) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < count; i++) n += bytes[i] != ZONE_BYTE;
  return n;
}

static graft_status check_one(const dsp_frame *frame, const mem_block *block, uint64_t bytes) {
  const uint64_t zone = dsp_zone_bytes(frame->device), unit = frame->device->alignment;
  const uint64_t whole = 2 * zone + (bytes + unit - 1) / unit * unit;
  unsigned char *now = malloc(whole);
  if (!now) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to look around a workspace");
  graft_status status = mem_to_host(frame->stream, now, block->buffer, block->offset, whole);
  if (!status) {
    uint64_t before = changed(now, zone), behind = changed(now + zone + bytes, whole - zone - bytes);
    if (before | behind)
      snprintf(dsp_zones.broken, sizeof dsp_zones.broken, "wrote %llu bytes %s a workspace of %llu bytes",
               (unsigned long long)(before ? before : behind), before ? "before" : "behind", (unsigned long long)bytes);
  }
  free(now);
  return status;
}

graft_status dsp_zone_check(const dsp_frame *frame) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; dsp_zones.bytes && !status && i < frame->workspace_count; i++)
    status = check_one(frame, frame->workspaces[i], frame->workspace_bytes[i]);
  return status;
}
