/* How much the caching allocator holds beyond what is used, and how often it reuses: on traces shaped like training
 * steps.
 *
 *   allocation_trace [FILE]
 *
 * FILE is a recorded trace, a line an event: "a ID BYTES", "f ID". Without it three traces are made: a transformer with
 * one sequence length, one whose length changes each step, and a convolutional network. Live bytes are those asked for.
 * Exit 1 when reserved exceeds 1.3 x the peak of live bytes (traces of at least 64 MiB), or less than 95 % of the
 * blocks after the first two steps are served without a new buffer. Runs on the reference device: the policy is the
 * same on all. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graft/memory.h"
#include "memory/memory.h"

#define MIB           (1024.0 * 1024.0)
#define LIMIT_RATIO   1.3
#define LIMIT_REUSE   0.95
#define WARM_UP_STEPS 2

/* What runs a trace and what it has seen. */
typedef struct tracer {
  graft_rt_device *device;
  uint64_t live, peak;
  uint64_t blocks;        /* allocated after warm-up */
  int64_t buffers_before; /* asked of the plugin until then */
  double seconds;
  int64_t blocks_before; /* handed out by the allocator before the trace */
  uint64_t random;
} tracer;

/* A block with the size that was asked for. */
typedef struct item {
  mem_block *block;
  uint64_t bytes;
} item;

static graft_memory_statistics stats_of(const tracer *t) {
  graft_memory_statistics stats = {.struct_size = sizeof stats};
  graft_memory_stats(t->device, &stats);
  return stats;
}

static item get(tracer *t, uint64_t bytes) {
  item made = {NULL, bytes};
  if (mem_allocate(t->device, NULL, bytes, &made.block)) {
    fprintf(stderr, "allocation_trace: %s\n", graft_last_error());
    exit(1);
  }
  t->blocks++;
  t->live += bytes;
  if (t->live > t->peak) t->peak = t->live;
  return made;
}

static void put(tracer *t, item *old) {
  if (!old->block) return;
  mem_free(old->block);
  t->live -= old->bytes;
  old->block = NULL;
}

static uint64_t random_below(tracer *t, uint64_t limit) {
  t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (t->random >> 33) % limit;
}

/* --- a model: the sizes of its weights, and of what each layer keeps for its backward --- */

typedef struct model {
  uint64_t weights[512], kept[512], temporary[512];
  int weight_count, layer_count;
  int weight_of[512]; /* the layer's, or -1 */
} model;

static void add_layer(model *m, uint64_t weight, uint64_t kept, uint64_t temporary) {
  int layer = m->layer_count++;
  m->kept[layer] = kept * 4;
  m->temporary[layer] = temporary * 4;
  m->weight_of[layer] = weight ? m->weight_count : -1;
  if (weight) m->weights[m->weight_count++] = weight * 4;
}

static void make_transformer(model *m, uint64_t width, uint64_t batch, uint64_t length) {
  const uint64_t heads = 6, tokens = batch * length;
  *m = (model){.layer_count = 0};
  add_layer(m, 8000 * width, tokens * width, 0);
  for (int i = 0; i < 6; i++) {
    add_layer(m, width * 2, tokens * width, tokens * 2);                               /* norm */
    add_layer(m, width * width * 3, tokens * width * 3, tokens * width);               /* q, k, v */
    add_layer(m, 0, batch * heads * length * length, batch * heads * length * length); /* softmax */
    add_layer(m, width * width, tokens * width, tokens * width);
    add_layer(m, width * 2, tokens * width, tokens * 2);
    add_layer(m, width * width * 4, tokens * width * 4, 0);
    add_layer(m, 0, tokens * width * 4, 0); /* gelu */
    add_layer(m, width * width * 4, tokens * width, tokens * width);
  }
  add_layer(m, 8000 * width, tokens * 8000, tokens * 8000);
}

static void make_convolutional(model *m, uint64_t batch, uint64_t side) {
  uint64_t channels = 32;
  *m = (model){.layer_count = 0};
  for (int stage = 0; stage < 4; stage++, side /= 2, channels *= 2) {
    for (int i = 0; i < 4; i++) {
      uint64_t points = batch * side * side * channels;
      add_layer(m, channels * channels * 9, points, channels * channels * 9 + points / 4); /* with im2col's share */
      add_layer(m, channels * 2, points, channels * 2);                                    /* batch norm */
      add_layer(m, 0, points, 0);                                                          /* relu */
    }
    add_layer(m, 0, batch * side * side * channels / 4, 0); /* pool */
  }
  add_layer(m, channels * 1000, batch * 1000, batch * 1000);
}

/* --- a step: forward keeps, backward frees in reverse and makes gradients, the optimizer uses temporaries --- */

static void step(tracer *t, const model *m, item *gradients) {
  item kept[512], upstream = {NULL, 0};
  for (int i = 0; i < m->layer_count; i++) {
    item temporary = m->temporary[i] ? get(t, m->temporary[i]) : (item){NULL, 0};
    kept[i] = get(t, m->kept[i]);
    item scalar = get(t, 4 + 8 * random_below(t, 4));
    put(t, &temporary);
    put(t, &scalar);
  }
  for (int i = m->layer_count - 1; i >= 0; i--) {
    item down = get(t, i ? m->kept[i - 1] : m->kept[0]);
    item temporary = m->temporary[i] ? get(t, m->temporary[i]) : (item){NULL, 0};
    int w = m->weight_of[i];
    if (w >= 0 && !gradients[w].block) gradients[w] = get(t, m->weights[w]);
    put(t, &upstream);
    put(t, &temporary);
    put(t, &kept[i]);
    upstream = down;
  }
  put(t, &upstream);
  for (int w = 0; w < m->weight_count; w++) { /* unfused: two temporaries a weight */
    item a = get(t, m->weights[w]), b = get(t, m->weights[w]);
    put(t, &a);
    put(t, &b);
  }
  for (int w = 0; w < m->weight_count; w++) put(t, &gradients[w]); /* zero_grad(set_to_none=True) */
}

typedef void (*make_model)(tracer *t, model *m);

static void one_length(tracer *t, model *m) {
  (void)t, make_transformer(m, 384, 4, 128);
}
static void many_lengths(tracer *t, model *m) {
  make_transformer(m, 384, 4, 64 + 8 * random_below(t, 17));
}
static void small(tracer *t, model *m) {
  make_transformer(m, 120, 2, 40 + 8 * random_below(t, 12));
}
static void pictures(tracer *t, model *m) {
  (void)t, make_convolutional(m, 8, 56);
}
static void small_pictures(tracer *t, model *m) {
  make_convolutional(m, 2 + random_below(t, 5), 40);
}

static void train(tracer *t, make_model make) {
  static model m;
  static item weights[512], moments[1024], gradients[512];
  memset(weights, 0, sizeof weights);
  memset(moments, 0, sizeof moments);
  memset(gradients, 0, sizeof gradients);
  make(t, &m);
  for (int w = 0; w < m.weight_count; w++) weights[w] = get(t, m.weights[w]);
  for (int i = 0; i < 50; i++) {
    make(t, &m);
    step(t, &m, gradients);
    for (int w = 0; i == 0 && w < 2 * m.weight_count; w++)
      moments[w] = get(t, m.weights[w / 2]); /* Adam's first step */
    if (i + 1 == WARM_UP_STEPS) {
      t->blocks = 0;
      t->buffers_before = stats_of(t).num_device_alloc;
    }
  }
  for (int w = 0; w < m.weight_count; w++) put(t, &weights[w]);
  for (int w = 0; w < 2 * m.weight_count; w++) put(t, &moments[w]);
}

/* --- a recorded trace --- */

static void replay(tracer *t, FILE *file) {
  static item items[1 << 20];
  const size_t count = sizeof items / sizeof *items;
  char kind;
  unsigned long long id, bytes;
  t->buffers_before = -1;
  for (size_t line = 1; fscanf(file, " %c %llu", &kind, &id) == 2; line++) {
    item *at = &items[id % count];
    if (kind == 'a' && !at->block && fscanf(file, "%llu", &bytes) == 1) {
      *at = get(t, bytes);
    } else if (kind == 'f' && at->block) {
      put(t, at);
    } else {
      fprintf(stderr, "allocation_trace: event %zu is not understood\n", line);
      exit(2);
    }
  }
  if (t->buffers_before < 0) t->buffers_before = 0;
}

/* --- the figures --- */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool report(const char *name, tracer *t) {
  graft_memory_statistics stats = stats_of(t);
  double ratio = (double)stats.reserved_bytes.peak / (double)t->peak;
  double reused = 1 - (double)(stats_of(t).num_device_alloc - t->buffers_before) / (double)t->blocks;
  double each = t->seconds / (double)(stats.allocation.allocated - t->blocks_before) * 1e9;
  bool good = (ratio <= LIMIT_RATIO || (double)t->peak < 64 * MIB) && reused >= LIMIT_REUSE;
  printf("%-28s peak live %7.1f MiB  reserved %7.1f MiB  ratio %.3f  reused %6.2f %%  %4.0f ns a block  %s\n", name,
         (double)t->peak / MIB, (double)stats.reserved_bytes.peak / MIB, ratio, reused * 100, each,
         good ? "ok" : "TOO MUCH");
  return good;
}

static void empty(graft_rt_device *device) {
  graft_memory_empty_cache(device);
  graft_memory_reset_peak(device);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    make_model make;
  } traces[] = {{"transformer, one length", one_length},
                {"transformer, many lengths", many_lengths},
                {"small transformer", small},
                {"convolutional network", pictures},
                {"small pictures", small_pictures}};
  graft_rt_device *device = graft_device_reference();
  bool good = true;
  if (argc > 1) {
    FILE *file = fopen(argv[1], "r");
    if (!file) {
      perror(argv[1]);
      return 2;
    }
    tracer t = {.device = device, .random = 1};
    double start = now();
    replay(&t, file);
    t.seconds = now() - start;
    fclose(file);
    return report(argv[1], &t) ? 0 : 1;
  }
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
    tracer t = {.device = device, .random = 1};
    t.blocks_before = stats_of(&t).allocation.allocated;
    double start = now();
    train(&t, traces[i].make);
    t.seconds = now() - start;
    good = report(traces[i].name, &t) && good;
    empty(device);
  }
  return good ? 0 : 1;
}
