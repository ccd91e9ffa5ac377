/* What commands share. */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

int cli_error(const char *command, int status) {
  fprintf(stderr, "graft %s: %s\n", command, graft_last_error());
  return status;
}

bool cli_open_with(const char *name, const char *const *options, int index, graft_rt_device **device) {
  graft_rt_backend *backend;
  if (graft_backend_open(name, options, &backend)) return false;
  return !graft_backend_device(backend, index, device);
}

bool cli_open(const char *name, int index, graft_rt_device **device) {
  return cli_open_with(name, NULL, index, device);
}

void cli_add_option(const char **options, uint32_t *count, size_t most, const char *text, struct argp_state *state) {
  if (!strchr(text, '=')) argp_error(state, "-o: '%s' is no KEY=VALUE", text);
  if (*count == most) argp_error(state, "-o: more than %zu options for the plugin", most);
  options[(*count)++] = text;
}

const char *cli_only_pattern(const char *before, const char *text, struct argp_state *state) {
  if (before) argp_error(state, "--op: one pattern; '%s' is another one", text);
  return text;
}

uint64_t cli_number(const char *text, const char *option, struct argp_state *state) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno || *end || end == text || *text == '-') argp_error(state, "%s: '%s' is no number", option, text);
  return value;
}

int cli_device_number(const char *text, struct argp_state *state) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, 10);
  if (errno || *end || end == text || value < 0 || value > INT_MAX)
    argp_error(state, "-d: '%s' is no device number", text);
  return (int)value;
}
