/* The asynchronous plugin with ops of its own. */
#define ASYNC_IS_PART
#include "async.c"
#include "custom_ops.c"

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  async_instance *self;
  const char *lie = getenv("GRAFT_LIE");                              /* wrong numbers, for the conformance suite */
  int again = options && *options && !strcmp(*options, "instance=2"); /* another instance of the same ops */
  graft_status status = again ? GRAFT_OK : refuse_options(host, options);
  if (!status) status = async_open(host, "custom", &self);
  if (status) return status;
  if (lie && !strcmp(lie, "numbers")) number_error = 1e-3;
  if (lie && !strcmp(lie, "gradients")) gradient_error = 1e-3;
  if (lie && !strcmp(lie, "formula")) formula_error = 1e-3; /* the slot's and the reference function's alike */
  if (lie && !strcmp(lie, "cases")) acme_rows[2].cases = "T[3]\nT[3";
  if (lie && !strcmp(lie, "no cases")) acme_rows[2].cases = " \n";
  if (lie && !strcmp(lie, "pytorch")) { /* what libgraft takes and PyTorch does not */
    acme_rows[0].schema = "acme::scale_add(Tensor x, *, Tensor y, float alpha=1.0) -> Tensor";
    acme_rows[1].schema =
        "acme::scale_add_backward(Tensor grad, Tensor x, *, Tensor y, float alpha=1.0) -> (Tensor, Tensor)";
    acme_rows[2].schema = "acme::cube(Tensor in) -> Tensor";
  }
  acme_join(self);
  *plugin = &self->plugin;
  return GRAFT_OK;
}
