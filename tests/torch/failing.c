/* The asynchronous plugin of tests/plugins whose op neg fails at the call that GRAFT_FAIL_AT names, counted from 1. */
#define ASYNC_IS_PART
#include "async.c"

static atomic_int calls;

static graft_status failing_neg(const graft_exec *exec, const graft_args_neg *args) {
  const graft_host *host = exec->device->self->host;
  const char *at = getenv("GRAFT_FAIL_AT");
  if (atomic_fetch_add(&calls, 1) + 1 != (at ? atoi(at) : 0)) return neg(exec, args);
  host->set_error(host->context, "the op broke");
  return GRAFT_INTERNAL;
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  (void)options;
  async_instance *self;
  graft_status status = async_open(host, "failing", &self);
  if (status) return status;
  self->core.neg = failing_neg;
  *plugin = &self->plugin;
  return GRAFT_OK;
}
