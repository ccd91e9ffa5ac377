/* What commands share. */
#include <stdio.h>

#include "cli.h"

int cli_error(const char *command, int status) {
  fprintf(stderr, "graft %s: %s\n", command, graft_last_error());
  return status;
}

bool cli_open(const char *name, int index, graft_rt_device **device) {
  graft_rt_backend *backend;
  if (graft_backend_open(name, NULL, &backend)) return false;
  return !graft_backend_device(backend, index, device);
}
