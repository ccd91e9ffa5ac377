/* The cache of plans; see plan.h. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "dispatch/state.h"

static bool same_key(const dsp_plan *plan, uint64_t hash, const dsp_key *key) {
  return plan->hash == hash && plan->key_words == key->count && !memcmp(plan->key, key->words, key->count * 8u);
}

static uint64_t hash_of(const dsp_key *key) {
  return XXH3_64bits(key->words, key->count * 8u);
}

static dsp_plan *find_locked(dsp_device *state, uint64_t hash, const dsp_key *key) {
  for (dsp_plan *plan = state->buckets[hash % DSP_BUCKETS]; plan; plan = plan->next) {
    if (!same_key(plan, hash, key)) continue;
    atomic_fetch_add_explicit(&plan->refs, 1, memory_order_relaxed);
    plan->used = true;
    return plan;
  }
  return NULL;
}

dsp_plan *dsp_plan_find(graft_rt_device *device, const dsp_key *key) {
  dsp_device *state = dsp_device_of(device);
  uint64_t hash = hash_of(key);
  pthread_mutex_lock(&state->lock);
  dsp_plan *plan = find_locked(state, hash, key);
  pthread_mutex_unlock(&state->lock);
  return plan;
}

static void append_locked(dsp_device *state, dsp_plan *plan) {
  plan->newer = NULL;
  *(state->oldest ? &state->newest->newer : &state->oldest) = plan;
  state->newest = plan;
}

/* Takes out the oldest plan that was not used since it was last looked at here. Shapes that change with every step
 * would otherwise fill memory; what is still in use lives on until its last release. */
static dsp_plan *take_oldest_locked(dsp_device *state) {
  for (;;) {
    dsp_plan *plan = state->oldest;
    state->oldest = plan->newer;
    if (plan->used) {
      plan->used = false;
      append_locked(state, plan);
      continue;
    }
    dsp_plan **at = &state->buckets[plan->hash % DSP_BUCKETS];
    while (*at != plan) at = &(*at)->next;
    *at = plan->next;
    state->plan_count--;
    return plan;
  }
}

dsp_plan *dsp_plan_insert(graft_rt_device *device, const dsp_key *key, dsp_plan *plan) {
  dsp_device *state = dsp_device_of(device);
  plan->hash = hash_of(key);
  plan->key = arena_copy(&plan->memory, key->words, key->count * sizeof *plan->key);
  if (!plan->key) return plan; /* used once, not kept */
  plan->key_words = key->count;
  pthread_mutex_lock(&state->lock);
  dsp_plan *other = find_locked(state, plan->hash, key);
  dsp_plan *evicted = NULL;
  if (!other) {
    if (state->plan_count == DSP_MAX_PLANS) evicted = take_oldest_locked(state);
    plan->next = state->buckets[plan->hash % DSP_BUCKETS];
    state->buckets[plan->hash % DSP_BUCKETS] = plan;
    append_locked(state, plan);
    state->plan_count++;
    atomic_fetch_add(&plan->refs, 1);
  }
  pthread_mutex_unlock(&state->lock);
  dsp_plan_release(evicted);
  if (other) dsp_plan_free(plan);
  return other ? other : plan;
}

void dsp_plan_release(dsp_plan *plan) {
  if (plan && atomic_fetch_sub(&plan->refs, 1) == 1) dsp_plan_free(plan);
}

void dsp_plan_free(dsp_plan *plan) {
  dsp_memo *memo = atomic_load(&plan->memo);
  if (memo && memo->destroy) memo->destroy(memo->value);
  free(memo);
  arena_free(&plan->memory);
  free(plan);
}

void dsp_device_destroy(dsp_device *state) {
  for (dsp_plan *plan = state->oldest, *newer; plan; plan = newer) {
    newer = plan->newer;
    dsp_plan_release(plan);
  }
  pthread_mutex_destroy(&state->lock);
  free(state);
}
