/* The asynchronous plugin of tests/plugins whose op neg fails and says which flags it was sent. */
#include <stdio.h>

#define ASYNC_IS_PART
#include "async.c"

static graft_status telling_neg(const graft_exec *exec, const graft_args_neg *args) {
  const graft_host *host = exec->device->self->host;
  char text[32];
  (void)args;
  snprintf(text, sizeof text, "flags %#x", (unsigned)exec->flags);
  host->set_error(host->context, text);
  return GRAFT_INTERNAL;
}

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  (void)options;
  async_instance *self;
  graft_status status = async_open(host, "flags", &self);
  if (status) return status;
  self->core.neg = telling_neg;
  *plugin = &self->plugin;
  return GRAFT_OK;
}
