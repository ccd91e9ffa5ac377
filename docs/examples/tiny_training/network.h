/* The network that record.c records, in f32 or quantized, and how it learns. */
#ifndef NETWORK_H
#define NETWORK_H

#include <graft/graft.h>

#include "digits.h"

/* What a step changes: everything, the last layer, the biases, or the last layer and some channels of the second
 * convolution. */
typedef enum update { UPDATE_ALL, UPDATE_LINEAR, UPDATE_BIASES, UPDATE_CHANNELS } update;
enum { CHOSEN_CHANNELS = CHANNELS_2 / 2 }; /* the first ones: weights were drawn, so none stands out */

typedef struct recipe {
  update update;
  bool quantized;
  bool scaled;  /* gradients of quantized numbers count as much as those of what they stand for */
  bool nearest; /* quantized weights are rounded to the nearest number, else up or down at random */
  double rate;
  uint32_t seed; /* of the first weights */
} recipe;

typedef struct network {
  const recipe *recipe;
  bool learns;
  graft_tensor *parameters[PARAMETERS]; /* the caller's, as a graph's inputs */
  graft_tensor *numbers[PARAMETERS];    /* the same as f32: of quantized ones the whole numbers */
  /* Where channels are chosen: of the second convolution. */
  graft_tensor *chosen_x, *chosen_sums;
} network;

/* Ends the program with libgraft's error. */
void must(graft_status status);

/* While a graph records. All tensors are the caller's. */
void network_begin(network *n, const recipe *recipe, bool learns);
graft_tensor *network_forward(network *n, graft_tensor *x);
/* Gradients of a scalar, and what a step writes to parameters. */
void network_learn(network *n, graft_tensor *loss);
void network_end(network *n);

#endif
