/* The same, without libgraft: step.c and predict.c are what `graft tiny` wrote. This main stands for the program of a
 * microcontroller; what it takes from the machine is the digits and a place to print.
 *
 *   tiny_train DATA [EPOCHS [PERCENT]]
 *
 * Exit status 0 where more than PERCENT (default: 95) of the digits that were held back are right. */
#define TINY_DECLARATIONS
#include "digits.h"
#include "predict.c"
#include "step.c"

enum { MOST_BYTES = 256 * 1024 };
_Static_assert(step_ARENA_BYTES + step_UPDATED_BYTES <= MOST_BYTES, "a step takes more than 256 KB of memory");

static void predict(const float *x, float *scores) {
  predict_run(x, step_conv1_weight, step_conv1_bias, step_conv2_weight, step_conv2_bias, step_linear_weight,
              step_linear_bias, scores);
}

int main(int argc, char **argv) {
  static digits train, held_back;
  if (argc < 2) {
    fprintf(stderr, "usage: tiny_train DATA [EPOCHS [PERCENT]]\n");
    return 2;
  }
  load_digits(argv[1], &train, &held_back);
  const int epochs = argc > 2 ? atoi(argv[2]) : 20;
  const double wanted = argc > 3 ? atof(argv[3]) : 95;
  printf("memory: %d bytes of values and gradients, %d of what is updated, together %d of %d\n", step_ARENA_BYTES,
         step_UPDATED_BYTES, step_ARENA_BYTES + step_UPDATED_BYTES, MOST_BYTES);
  for (int epoch = 1; epoch <= epochs; epoch++) printf("epoch %d, loss %.4f\n", epoch, learn_epoch(&train, step_run));
  const double right = percent_right(&held_back, predict);
  printf("%.1f %% of the held-back digits are right\n", right);
  return right > wanted ? 0 : 1;
}
