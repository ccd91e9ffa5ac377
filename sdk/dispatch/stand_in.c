/* Other memory in the place of what was captured, for one launch: descriptors name it, and what they named before when
 * the launch has been made. */
#include "dispatch/capture.h"

/* Plans hold for where tensors begin. */
static bool is_aligned_alike(const dsp_capture *c, const graft_graph_stand_in *item) {
  return (tns_first_byte(item->given) - tns_first_byte(item->captured)) % c->base.base.device->alignment == 0;
}

static bool can_name_another(const dsp_place *place) {
  return place->bytes || (place->desc && !(place->desc->flags & GRAFT_TENSOR_HOST_VALUE));
}

/* A result that no launch writes is what it was. */
static bool can_all(const dsp_capture *c, const graft_graph_stand_in *item) {
  const uint64_t id = item->captured->storage->id;
  bool named = !item->is_result;
  for (uint32_t i = 0; i < c->nplaces; i++) {
    if (c->places[i].storage_id != id) continue;
    if (!can_name_another(&c->places[i])) return false;
    named = true;
  }
  return named;
}

bool dsp_can_stand_in(const dsp_capture *c, const graft_graph_stand_in *items, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (!is_aligned_alike(c, &items[i]) || !can_all(c, &items[i])) return false;
  }
  return true;
}

static void name(const dsp_place *place, const graft_tensor *old, const graft_tensor *new) {
  const uint64_t further = tns_first_byte(new) - tns_first_byte(old); /* it may wrap around */
  if (place->bytes) {
    place->bytes->buffer = new->storage->buffer;
    place->bytes->offset += further;
    return;
  }
  place->desc->dl.data = new->storage->buffer;
  place->desc->dl.byte_offset += further;
  place->desc->storage_id = new->storage->id;
  if (place->seen) place->seen->storage = new->storage;
}

static void name_everywhere(dsp_capture *c, uint64_t id, const graft_tensor *old, const graft_tensor *new) {
  for (uint32_t i = 0; i < c->nplaces; i++) {
    if (c->places[i].storage_id == id) name(&c->places[i], old, new);
  }
}

void dsp_stand_in(dsp_capture *c, const graft_graph_stand_in *items, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    name_everywhere(c, items[i].captured->storage->id, items[i].captured, items[i].given);
}

void dsp_stand_back(dsp_capture *c, const graft_graph_stand_in *items, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    name_everywhere(c, items[i].captured->storage->id, items[i].given, items[i].captured);
}
