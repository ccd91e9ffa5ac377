/* Times calls on a backend for a program that compares: commands on stdin, one answer line each.
 *
 *   call_timer BACKEND
 *     make CALL        makes the tensors of a call (the grammar of conformance/text/text.h) and runs it twice
 *     kept N, fresh N  seconds of one call: N calls up to a synchronize, into results that are there already, or into
 *                      new ones each time */
#include <string.h>

#include "conformance/text/text.h"
#include "measure.h"

typedef struct timer {
  graft_rt_device *device;
  txt_call call;
  graft_tensor *outs[OP_MAX_OUTS];
  bool made;
} timer;

static graft_status fill(void *context, uint32_t index, graft_tensor *tensor) {
  (void)context, (void)index;
  int64_t n = graft_tensor_numel(tensor);
  float *values = malloc((size_t)n * sizeof *values + 1);
  if (!values || graft_tensor_dtype(tensor) != GRAFT_F32) return GRAFT_INVALID_ARGUMENT;
  for (int64_t i = 0; i < n; i++) values[i] = (float)rand() / (float)RAND_MAX * 4 - 2;
  graft_tensor *from;
  must(graft_tensor_from_host(graft_tensor_device(tensor), GRAFT_F32, graft_tensor_ndim(tensor),
                              graft_tensor_sizes(tensor), values, &from));
  must(graft_tensor_copy(tensor, from));
  graft_tensor_release(from);
  free(values);
  return GRAFT_OK;
}

static void drop_results(timer *t) {
  for (int i = 0; i < OP_MAX_OUTS; i++) graft_tensor_release(t->outs[i]), t->outs[i] = NULL;
}

static double run(timer *t, int calls, bool fresh) {
  double start = now_s();
  for (int i = 0; i < calls; i++) {
    if (fresh) drop_results(t);
    must(graft_call(t->call.schema->id, t->call.args, t->call.nargs, t->outs, t->call.schema->nrets));
  }
  must(graft_device_synchronize(t->device));
  return (now_s() - start) / calls;
}

static void make(timer *t, const char *text) {
  drop_results(t);
  if (t->made) txt_free(&t->call);
  must(graft_memory_empty_cache(t->device));
  must(txt_parse_call(text, NULL, &t->call));
  must(txt_make(&t->call, t->device, fill, NULL));
  t->made = true;
  run(t, 2, false);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: call_timer BACKEND\n"), 2;
  timer t = {.device = device_of(argv[1])};
  char line[512];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "make ", 5))
      make(&t, line + 5), puts("made");
    else if (!strncmp(line, "kept ", 5))
      printf("%.9f\n", run(&t, atoi(line + 5), false));
    else if (!strncmp(line, "fresh ", 6))
      printf("%.9f\n", run(&t, atoi(line + 6), true));
    else
      return fprintf(stderr, "call_timer: '%s' is no command\n", line), 2;
    fflush(stdout);
  }
  return 0;
}
