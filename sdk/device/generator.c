/* The random streams of devices: a seed and an offset. What is drawn from them is said in graft/abi/exec.h. */
#include <stdlib.h>

#include "device/internal.h"

void dev_generator_init(graft_generator *generator) {
  pthread_mutex_init(&generator->lock, NULL);
  generator->seed = DEV_DEFAULT_SEED;
  generator->offset = 0;
}

void dev_generator_draw(graft_generator *generator, uint64_t count, uint64_t *seed, uint64_t *offset) {
  pthread_mutex_lock(&generator->lock);
  *seed = generator->seed;
  *offset = generator->offset;
  generator->offset += (count + 3) / 4 * 4;
  pthread_mutex_unlock(&generator->lock);
}

graft_generator *graft_generator_default(graft_rt_device *device) {
  if (err_is_null(device, __func__, "device")) return NULL;
  return &device->generator;
}

void graft_generator_seed(graft_generator *generator, uint64_t seed) {
  if (err_is_null(generator, __func__, "generator")) return;
  graft_generator_set_state(generator, seed, 0);
}

void graft_generator_state(graft_generator *generator, uint64_t *seed, uint64_t *offset) {
  if (err_is_null(generator, __func__, "generator")) return;
  pthread_mutex_lock(&generator->lock);
  if (seed) *seed = generator->seed;
  if (offset) *offset = generator->offset;
  pthread_mutex_unlock(&generator->lock);
}

void graft_generator_set_state(graft_generator *generator, uint64_t seed, uint64_t offset) {
  if (err_is_null(generator, __func__, "generator")) return;
  pthread_mutex_lock(&generator->lock);
  generator->seed = seed;
  generator->offset = (offset + 3) / 4 * 4; /* a draw begins with a whole block */
  pthread_mutex_unlock(&generator->lock);
}

graft_status graft_generator_create(graft_rt_device *device, graft_generator **generator) {
  if (!device) return err_null(__func__, "device");
  if (!generator) return err_null(__func__, "generator");
  (void)device; /* every device draws from the same stream of numbers */
  graft_generator *made = calloc(1, sizeof *made);
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a random generator");
  dev_generator_init(made);
  *generator = made;
  return GRAFT_OK;
}

void graft_generator_destroy(graft_generator *generator) {
  if (!generator) return;
  pthread_mutex_destroy(&generator->lock);
  free(generator);
}
