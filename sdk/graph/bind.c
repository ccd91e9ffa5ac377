/* What the inputs of a run say of open sizes, and whether they lie as a graph takes them. */
#include <stdlib.h>

#include "graph/exec.h"
#include "graph/script.h"

/* --- where sizes stand --- */

/* The first one decides. */
static bool find_size(const graft_graph *open, int64_t name, gr_size *size) {
  for (uint32_t i = 0; i < open->ninputs; i++) {
    for (int32_t d = 0; d < open->inputs[i].view.ndim; d++) {
      if (open->inputs[i].open->sizes[d] == name) return size->input = i, size->dim = d, true;
    }
  }
  return false;
}

graft_status gr_find_bound(graft_graph *open) {
  const gr_sizes *sizes = &open->script->sizes;
  for (uint32_t i = 0; i < sizes->count; i++) {
    gr_size *size = &sizes->items[i];
    if (size->op != GR_SIZE_OPEN || find_size(open, gr_size_name(i), size)) continue;
    return err_set(
        GRAFT_INVALID_ARGUMENT,
        "graft_graph_compile: the size %s is no dimension of an input as it stands, so that no run could tell "
        "it; add an input that has it",
        size->name);
  }
  return GRAFT_OK;
}

/* --- finding them --- */

/* What does not fit first. */
typedef enum misfit_kind { FITS, OTHER_KIND, OUT_OF_RANGE, NO_NUMBER, OTHER_DIM } misfit_kind;
typedef struct misfit {
  misfit_kind kind;
  uint32_t at; /* the input; of a range or a number the size */
  int32_t dim;
} misfit;

static bool is_of_kind(const gr_port *port, const graft_tensor *t) {
  return t && t->ndim == port->view.ndim && t->dtype == port->view.dtype;
}

static misfit find_sizes(const gr_sizes *sizes, graft_tensor *const *inputs, int64_t *values) {
  for (uint32_t i = 0; i < sizes->count; i++) {
    const gr_size *s = &sizes->items[i];
    if (s->op != GR_SIZE_OPEN) {
      if (!gr_size_compute(sizes, i, values)) return (misfit){NO_NUMBER, i, 0};
      continue;
    }
    values[i] = inputs[s->input]->sizes[s->dim];
    if (values[i] < s->least || values[i] > s->most) return (misfit){OUT_OF_RANGE, i, 0};
  }
  return (misfit){FITS, 0, 0};
}

static misfit bind(const graft_graph *open, graft_tensor *const *inputs, int64_t *values) {
  const gr_sizes *sizes = &open->script->sizes;
  for (uint32_t i = 0; i < open->ninputs; i++) {
    if (!is_of_kind(&open->inputs[i], inputs[i])) return (misfit){OTHER_KIND, i, 0};
  }
  const misfit found = find_sizes(sizes, inputs, values);
  if (found.kind != FITS) return found;
  for (uint32_t i = 0; i < open->ninputs; i++) {
    for (int32_t d = 0; d < inputs[i]->ndim; d++) {
      if (inputs[i]->sizes[d] != gr_size_value(sizes, values, open->inputs[i].open->sizes[d]))
        return (misfit){OTHER_DIM, i, d};
    }
  }
  return found;
}

/* --- saying what is wrong --- */

static graft_status refuse_kind(const graft_graph *open, const gr_port *port, const graft_tensor *t) {
  char shape[GR_SIZE_TEXT];
  if (!t) return err_set(GRAFT_INVALID_ARGUMENT, "input %s is NULL", port->name);
  return err_set(GRAFT_INVALID_ARGUMENT, "input %s is %s; the graph was recorded for %s%s", port->name, TNS_SHAPE(t),
                 graft_dtype_name(port->view.dtype),
                 gr_shape_text(&open->script->sizes, port->view.ndim, port->open->sizes, shape, sizeof shape));
}

static graft_status refuse_range(const graft_graph *open, const gr_size *s, int64_t is) {
  return err_set(GRAFT_INVALID_ARGUMENT, "input %s: dimension %d is %lld, and the size %s goes from %lld to %lld",
                 open->inputs[s->input].name, (int)s->dim, (long long)is, s->name, (long long)s->least,
                 (long long)s->most);
}

static graft_status refuse_dim(const gr_sizes *sizes, const int64_t *values, const gr_port *port, int32_t d,
                               int64_t is) {
  const int64_t number = port->open->sizes[d], expected = gr_size_value(sizes, values, number);
  char formula[GR_SIZE_TEXT], where[GR_SIZE_TEXT];
  if (!gr_is_open(sizes, number))
    return err_set(GRAFT_INVALID_ARGUMENT, "input %s: dimension %d is %lld; expected %lld", port->name, (int)d,
                   (long long)is, (long long)expected);
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "input %s: dimension %d is %lld; expected %lld, which is %s, where %s by other inputs", port->name,
                 (int)d, (long long)is, (long long)expected, gr_size_text(sizes, number, formula, sizeof formula),
                 gr_sizes_of_text(sizes, values, number, where, sizeof where));
}

graft_status gr_bind_sizes(const graft_graph *open, graft_tensor *const *inputs, int64_t *values) {
  const gr_sizes *sizes = &open->script->sizes;
  const misfit found = bind(open, inputs, values);
  switch (found.kind) {
    case FITS: return GRAFT_OK;
    case OTHER_KIND: return refuse_kind(open, &open->inputs[found.at], inputs[found.at]);
    case OUT_OF_RANGE: return refuse_range(open, &sizes->items[found.at], values[found.at]);
    case NO_NUMBER: return gr_size_refuse(sizes, found.at, values);
    default: return refuse_dim(sizes, values, &open->inputs[found.at], found.dim, inputs[found.at]->sizes[found.dim]);
  }
}

/* --- without a word --- */

graft_rt_device *gr_input_device(const graft_graph_exec *e, const gr_port *port) {
  return e->graph->buffers[port->view.buffer].on_host ? graft_device_reference() : e->device;
}

bool gr_input_fits(const graft_graph_exec *e, const gr_port *port, const graft_tensor *t, const int64_t *sizes,
                   const int64_t *strides) {
  if (t->device != gr_input_device(e, port) || t->dtype != port->view.dtype) return false;
  if ((t->flags & (TNS_CONJ | TNS_NEG)) != port->view.flags || !tns_has_sizes(t, port->view.ndim, sizes)) return false;
  if (!tns_numel(t->ndim, t->sizes)) return true; /* strides say nothing */
  for (int32_t i = 0; i < t->ndim; i++) {
    if (t->sizes[i] > 1 && t->strides[i] != strides[i]) return false;
  }
  return true;
}

static bool fits_open(const graft_graph_exec *e, const gr_port *port, const graft_tensor *t, const int64_t *values) {
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  uint64_t dense = 1; /* of a tensor without elements it may be any number, which does not count */
  for (int32_t d = port->view.ndim; d-- > 0;) {
    sizes[d] = gr_size_value(&e->graph->script->sizes, values, port->open->sizes[d]);
    strides[d] =
        port->open->strided ? gr_size_value(&e->graph->script->sizes, values, port->open->strides[d]) : (int64_t)dense;
    dense *= (uint64_t)sizes[d];
  }
  return gr_input_fits(e, port, t, sizes, strides);
}

static bool fit_open(const graft_graph_exec *e, graft_tensor *const *inputs) {
  int64_t few[64];
  const uint32_t count = e->graph->script->sizes.count;
  int64_t *values = count > 64 ? malloc(count * sizeof *values) : few;
  bool fit = values && bind(e->graph, inputs, values).kind == FITS;
  for (uint32_t i = 0; i < e->graph->ninputs && fit; i++) fit = fits_open(e, &e->graph->inputs[i], inputs[i], values);
  if (values != few) free(values);
  return fit;
}

bool graft_graph_exec_fits(const graft_graph_exec *e, graft_tensor *const *inputs, uint32_t ninputs) {
  if (err_is_null(e, __func__, "exec") || (ninputs && err_is_null(inputs, __func__, "inputs"))) return false;
  if (ninputs != e->graph->ninputs) return false;
  if (e->made) return fit_open(e, inputs);
  for (uint32_t i = 0; i < ninputs; i++) {
    const gr_view *view = &e->graph->inputs[i].view;
    if (!inputs[i] || !gr_input_fits(e, &e->graph->inputs[i], inputs[i], view->sizes, view->strides)) return false;
  }
  return true;
}
