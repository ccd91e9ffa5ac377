/* What all programs of this example share: the data, the sizes of the network, its first weights. No libgraft. */
#ifndef DIGITS_H
#define DIGITS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, BATCH = 8, CHANNELS_1 = 8, CHANNELS_2 = 16, MOST_DIGITS = 2000 };

/* The parameters, in the order in which the graphs take them. Where a network is quantized, a weight is scale times
 * whole numbers of i8, and a bias the product of its layer's two scales times whole numbers of i32. */
enum { CONV1_WEIGHT, CONV1_BIAS, CONV2_WEIGHT, CONV2_BIAS, LINEAR_WEIGHT, LINEAR_BIAS, PARAMETERS };
typedef struct parameter {
  const char *name;
  int ndim, inputs; /* inputs: that one output sums over; 0: a bias, which begins as zeros */
  int64_t sizes[4];
  float largest; /* that a quantized weight can be: what it begins with, and room to learn */
} parameter;
static const parameter parameters[PARAMETERS] = {
    [CONV1_WEIGHT] = {"conv1_weight", 4, 9, {CHANNELS_1, 1, 3, 3}, 2},
    [CONV1_BIAS] = {"conv1_bias", 1, 0, {CHANNELS_1}, 0},
    [CONV2_WEIGHT] = {"conv2_weight", 4, 9 * CHANNELS_1, {CHANNELS_2, CHANNELS_1, 3, 3}, 1},
    [CONV2_BIAS] = {"conv2_bias", 1, 0, {CHANNELS_2}, 0},
    [LINEAR_WEIGHT] = {"linear_weight", 2, 4 * CHANNELS_2, {4 * CHANNELS_2, CLASSES}, 1.25f},
    [LINEAR_BIAS] = {"linear_bias", 1, 0, {CLASSES}, 0},
};

enum { LARGEST_I8 = 127 };

/* The scale of a quantized weight. */
static inline float weight_scale(int which) {
  return parameters[which].largest / LARGEST_I8;
}

static inline int parameter_count(const parameter *p) {
  int64_t count = 1;
  for (int d = 0; d < p->ndim; d++) count *= p->sizes[d];
  return (int)count;
}

/* The same numbers wherever it runs: a linear congruential generator, its upper bits, 0 to 1. */
static inline float draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (float)(*state >> 8) / 16777216.0f;
}

/* Uniform in +-sqrt(3 / inputs), so that what goes through a layer keeps its size; others for another seed. */
static inline void first_values(int which, uint32_t seed, float *values) {
  const parameter *p = &parameters[which];
  const float bound = p->inputs ? sqrtf(3.0f / (float)p->inputs) : 0;
  uint32_t state = 17u * seed + (uint32_t)which;
  for (int i = 0; i < parameter_count(p); i++) values[i] = (draw(&state) * 2 - 1) * bound;
}

/* The same of a quantized parameter, in i8 or, of a bias, in i32: `values` has room for PIXELS * PIXELS of these. */
static inline void first_whole_values(int which, uint32_t seed, void *values) {
  static float exact[PIXELS * PIXELS];
  const int count = parameter_count(&parameters[which]);
  if (!parameters[which].inputs) {
    memset(values, 0, (size_t)count * sizeof(int32_t));
    return;
  }
  first_values(which, seed, exact);
  for (int i = 0; i < count; i++) ((int8_t *)values)[i] = (int8_t)rintf(exact[i] / weight_scale(which));
}

/* Every fifth digit is held back. */
typedef struct digits {
  int count;
  float images[MOST_DIGITS][PIXELS]; /* 0 to 1 */
  int64_t labels[MOST_DIGITS];
} digits;

static inline void load_digits(const char *path, digits *train, digits *held_back) {
  unsigned char record[1 + PIXELS];
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(2);
  }
  for (int n = 0; fread(record, sizeof record, 1, file) == 1 && n < MOST_DIGITS; n++) {
    digits *set = n % 5 == 4 ? held_back : train;
    for (int i = 0; i < PIXELS; i++) set->images[set->count][i] = (float)record[1 + i] / 16.0f;
    set->labels[set->count++] = record[0];
  }
  fclose(file);
}

/* --- learning: what runs a step and what runs a digit through the network are the caller's --- */

typedef void (*step_function)(const float *x, const int64_t *target, float *loss); /* BATCH digits */
typedef void (*predict_function)(const float *x, float *scores);                   /* one */

static inline float learn_epoch(const digits *set, step_function step) {
  float sum = 0, loss;
  int batches = 0;
  for (int at = 0; at + BATCH <= set->count; at += BATCH, batches++) {
    step(set->images[at], &set->labels[at], &loss);
    sum += loss;
  }
  return sum / (float)batches;
}

static inline double percent_right(const digits *set, predict_function predict) {
  int right = 0;
  for (int n = 0; n < set->count; n++) {
    float scores[CLASSES];
    int best = 0;
    predict(set->images[n], scores);
    for (int i = 1; i < CLASSES; i++) best = scores[i] > scores[best] ? i : best;
    right += best == set->labels[n];
  }
  return 100.0 * right / set->count;
}

#endif
