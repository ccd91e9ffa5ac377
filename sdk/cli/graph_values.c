/* Inputs from files or from a seed, laid out as the graph takes them. */
#include "graph_values.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "cli.h"
#include "graph/graph.h"
#include "npy.h"
#include "tensor/tensor.h"

/* --- options --- */

/* NULL, or what is wrong with it: the caller's text. */
static char *add_pair(cli_pairs *pairs, const char *text) {
  const char *equals = strchr(text, '=');
  void *items = pairs->items;
  if (!equals || equals == text || !equals[1]) return str_new("'%s' is no NAME=WHAT", text);
  char *name = gr_grow(&items, pairs->count, sizeof *pairs->items) ? NULL : strndup(text, (size_t)(equals - text));
  pairs->items = items;
  if (!name) return str_new("no host memory for '%s'", text);
  if (cli_pairs_find(pairs, name)) {
    free(name);
    return str_new("%.*s is given twice", (int)(equals - text), text);
  }
  pairs->items[pairs->count++] = (cli_pair){name, equals + 1};
  return NULL;
}

void cli_pairs_free(cli_pairs *pairs) {
  for (uint32_t i = 0; i < pairs->count; i++) free(pairs->items[i].name);
  free(pairs->items);
  *pairs = (cli_pairs){0};
}

void cli_take_pair(cli_pairs *pairs, const char *text, const char *option, struct argp_state *state) {
  char *problem = add_pair(pairs, text);
  if (problem) argp_error(state, "%s: %s", option, problem);
  free(problem);
}

static bool is_number(const char *text) {
  return *text && !text[strspn(text, "0123456789")];
}

int cli_take_graph_option(int key, const char *argument, struct argp_state *state, cli_graph_options *options) {
  switch (key) {
    case 'b': options->backend = argument; return 0;
    case 'd': options->device = cli_device_number(argument, state); return 0;
    case 'i': cli_take_pair(&options->inputs, argument, "--input", state); return 0;
    case CLI_KEY_SIZE:
      cli_take_pair(&options->sizes, argument, "--size", state);
      if (!is_number(strrchr(argument, '=') + 1)) argp_error(state, "--size %s: expected NAME=N, N a number", argument);
      return 0;
    case ARGP_KEY_ARG:
      if (options->file) argp_usage(state);
      options->file = argument;
      return 0;
    case ARGP_KEY_END:
      if (!options->file) argp_error(state, "which file? (graft_graph_save and GRAFT_GRAPH_DUMP write them)");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

const char *cli_pairs_find(const cli_pairs *pairs, const char *name) {
  for (uint32_t i = 0; i < pairs->count; i++) {
    if (strcmp(pairs->items[i].name, name) == 0) return pairs->items[i].what;
  }
  return NULL;
}

/* --- values in the order of an array --- */

static double random_unit(uint64_t *state) { /* splitmix64; [0, 1) */
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static graft_status draw_values(const graft_graph_port *port, const char *seed, cli_npy *npy) {
  char *end;
  errno = 0;
  uint64_t state = strtoull(seed, &end, 10);
  if (errno || *end || end == seed || *seed == '-') {
    return err_set(GRAFT_INVALID_ARGUMENT, "input %s: 'random:%s' has no seed; expected random:1 or the like",
                   port->name, seed);
  }
  for (const char *c = port->name; *c; c++) state = state * 31 + (unsigned char)*c; /* others for each input */
  *npy = (cli_npy){.dtype = port->dtype, .item_bytes = (uint32_t)dt_bytes(port->dtype), .ndim = port->ndim};
  memcpy(npy->sizes, port->sizes, sizeof npy->sizes);
  const int64_t numel = tns_numel(npy->ndim, npy->sizes);
  npy->data = malloc((size_t)numel * npy->item_bytes + 1);
  if (!npy->data) return err_set(GRAFT_OUT_OF_MEMORY, "input %s: no host memory for it", port->name);
  const bool whole = dt_is_integral(port->dtype, true);
  for (int64_t i = 0; i < numel; i++) {
    double re = random_unit(&state), im = random_unit(&state);
    dt_value v = whole ? (dt_value){re < 0.5 ? 0 : 1, 0} : (dt_value){2 * re - 1, 2 * im - 1};
    dt_store(port->dtype, npy->data + i * npy->item_bytes, v);
  }
  return GRAFT_OK;
}

static graft_status read_values(const graft_graph_port *port, const char *path, cli_npy *npy) {
  char expected[160];
  graft_status status = cli_npy_read(path, npy);
  if (status) return err_attribute(status, port->name);
  cli_graph_port_text(port, expected, sizeof expected);
  const bool raw = !npy->dtype && npy->item_bytes == dt_bytes(port->dtype) &&
                   (port->dtype == GRAFT_BF16 || dt_is_float8(port->dtype));
  bool fits = (raw || npy->dtype == port->dtype) && npy->ndim == port->ndim;
  for (int32_t i = 0; i < port->ndim && fits; i++) fits = npy->sizes[i] == port->sizes[i];
  if (fits) return GRAFT_OK;
  status = err_set(GRAFT_INVALID_ARGUMENT, "input %s: %s has %s%s; expected %s", port->name, path,
                   npy->dtype ? graft_dtype_name(npy->dtype) : "raw bytes ", TNS_INTS(npy->ndim, npy->sizes), expected);
  cli_npy_free(npy);
  return status;
}

/* --- values as the graph takes them --- */

/* Where element number `i` of a shape, in row-major order, lies by these strides. */
static int64_t place_of(const cli_npy *npy, int64_t i, const int64_t *strides) {
  int64_t at = 0;
  for (int32_t d = npy->ndim; d-- > 0; i /= npy->sizes[d]) at += i % npy->sizes[d] * strides[d];
  return at;
}

static void column_strides(const cli_npy *npy, int64_t *strides) {
  int64_t step = 1;
  for (int32_t d = 0; d < npy->ndim; step *= npy->sizes[d++]) strides[d] = step;
}

/* The bytes from the first element to the last, with the elements in their places. */
static unsigned char *lay_out(const graft_graph_port *port, const cli_npy *npy, int64_t bytes) {
  const uint32_t unit = npy->item_bytes;
  const int64_t numel = tns_numel(npy->ndim, npy->sizes);
  int64_t from[GRAFT_MAX_DIMS];
  unsigned char *data = calloc(1, (size_t)bytes + 1);
  tns_contiguous_strides(npy->ndim, npy->sizes, from);
  if (npy->by_columns) column_strides(npy, from);
  for (int64_t i = 0; data && i < numel; i++)
    memcpy(data + place_of(npy, i, port->strides) * unit, npy->data + place_of(npy, i, from) * unit, unit);
  return data;
}

static graft_status make_tensor(const graft_graph_port *port, const cli_npy *npy, graft_rt_device *device,
                                graft_tensor **t) {
  graft_tensor *whole;
  if (port->on_host) device = graft_device_reference();
  const int64_t bytes = tns_extent_bytes(port->dtype, port->ndim, port->sizes, port->strides, 0);
  unsigned char *data = lay_out(port, npy, bytes);
  if (!data) return err_set(GRAFT_OUT_OF_MEMORY, "input %s: no host memory for it", port->name);
  graft_status status = graft_tensor_from_host(device, GRAFT_U8, 1, &bytes, data, &whole);
  free(data);
  if (status) return err_attribute(status, port->name);
  status = tns_new(whole->storage, device, port->dtype, port->ndim, port->sizes, port->strides, 0, t);
  graft_tensor_release(whole);
  /* What stands in the file is what lies in memory; the bits say how it is read. */
  if (!status) (*t)->flags |= (port->conjugate ? TNS_CONJ : 0u) | (port->negative ? TNS_NEG : 0u);
  return status;
}

static graft_status missing(const graft_graph_port *port) {
  char expected[160];
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "input %s is missing: %s; give --input %s=FILE.npy or --input %s=random:1, or "
                 "--random 1 for all that are missing",
                 port->name, cli_graph_port_text(port, expected, sizeof expected), port->name, port->name);
}

static graft_status make_input(const graft_graph_port *port, const char *what, graft_rt_device *device,
                               graft_tensor **t) {
  static const char random[] = "random:";
  cli_npy npy = {0};
  if (!what) return missing(port);
  graft_status status = strncmp(what, random, sizeof random - 1) == 0
                            ? draw_values(port, what + sizeof random - 1, &npy)
                            : read_values(port, what, &npy);
  if (!status) status = make_tensor(port, &npy, device, t);
  cli_npy_free(&npy);
  return status;
}

static graft_status check_names(const graft_graph *graph, const cli_pairs *given) {
  for (uint32_t i = 0; i < given->count; i++) {
    bool known = false;
    graft_graph_port port = {0};
    for (uint32_t k = 0; k < graft_graph_input_count(graph) && !known; k++) {
      graft_graph_input_query(graph, k, &port, sizeof port);
      known = strcmp(port.name, given->items[i].name) == 0;
    }
    if (known) continue;
    return err_set(GRAFT_INVALID_ARGUMENT, "the graph has no input %s; `graft graph FILE` lists what it has",
                   given->items[i].name);
  }
  return GRAFT_OK;
}

static graft_status take_input(const graft_graph *graph, uint32_t i, graft_rt_device *device, const cli_pairs *given,
                               const char *otherwise, graft_tensor **input) {
  graft_graph_port port;
  graft_status status = graft_graph_input_query(graph, i, &port, sizeof port);
  if (status) return status;
  const char *what = cli_pairs_find(given, port.name);
  if (!what && *input && tns_has_sizes(*input, port.ndim, port.sizes)) return GRAFT_OK;
  graft_tensor_release(*input);
  *input = NULL;
  if (!what && port.has_value) return graft_graph_input_value(graph, i, device, input);
  return make_input(&port, what ? what : otherwise, device, input);
}

graft_status cli_graph_inputs(const graft_graph *graph, graft_rt_device *device, const cli_pairs *given,
                              const char *otherwise, graft_tensor **inputs) {
  const uint32_t count = graft_graph_input_count(graph);
  graft_status status = check_names(graph, given);
  for (uint32_t i = 0; i < count && !status; i++) status = take_input(graph, i, device, given, otherwise, &inputs[i]);
  for (uint32_t i = 0; status && i < count; i++) {
    graft_tensor_release(inputs[i]);
    inputs[i] = NULL;
  }
  return status;
}

/* --- what is said --- */

const char *cli_graph_port_text(const graft_graph_port *port, char *text, size_t room) {
  char sizes[128], strides[128];
  tns_format_ints(sizes, sizeof sizes, (uint64_t)port->ndim, port->sizes);
  tns_format_ints(strides, sizeof strides, (uint64_t)port->ndim, port->strides);
  const bool contiguous = tns_is_contiguous(port->ndim, port->sizes, port->strides);
  snprintf(text, room, "%s%s%s%s%s", graft_dtype_name(port->dtype), sizes, contiguous ? "" : " with strides ",
           contiguous ? "" : strides, port->on_host ? " in host memory" : "");
  return text;
}

/* Of complex numbers the magnitude. */
static long double size_of(dt_value v) {
  return v.im != 0 ? hypotl(v.re, v.im) : v.re;
}

static void print_range(graft_dtype dtype, const unsigned char *data, int64_t numel) {
  long double least = INFINITY, most = -INFINITY, sum = 0;
  int64_t numbers = 0;
  for (int64_t i = 0; i < numel; i++) {
    long double x = size_of(dt_load(dtype, data + i * (int64_t)dt_bytes(dtype)));
    if (isnan(x)) continue;
    numbers++;
    sum += x;
    if (x < least) least = x;
    if (x > most) most = x;
  }
  if (numbers) printf("  min %.6Lg  max %.6Lg  mean %.6Lg", least, most, sum / (long double)numbers);
  if (numbers < numel) printf("  %" PRId64 " NaN", numel - numbers);
}

graft_status cli_graph_print_values(const char *kind, const char *name, graft_tensor *t) {
  unsigned char *data = malloc((size_t)t->numel * dt_bytes(t->dtype) + 1);
  if (!data) return err_set(GRAFT_OUT_OF_MEMORY, "%s %s: no host memory for it", kind, name);
  graft_status status = graft_tensor_to_host(t, data);
  if (!status) {
    printf("%-7s %-12s %s", kind, name, TNS_SHAPE(t));
    print_range(t->dtype, data, t->numel);
    putchar('\n');
  }
  free(data);
  return status;
}
