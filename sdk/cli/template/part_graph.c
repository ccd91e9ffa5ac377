/* --- calls that become one program ---
 * Extension "graft.graph" (graft/abi/graph.h): sums and relus that follow each other are one pass over memory, a block
 * of elements at a time, and what only they see stays in that block. All other calls run alone. Begin with what a call
 * may look like (is_step) and which calls go together (fits); a compiler of yours takes the place of run_chain. */

enum { STEPS = 16, VALUES = 3 * STEPS, BLOCK = 64 };

/* A call: numbers of values. relu has no b. */
typedef struct step {
  uint32_t op_id, a, b, out;
  float factor;
} step;

struct graft_executable {
  uint32_t nsteps, nvalues;
  int64_t elements;
  step steps[STEPS];
  int64_t input[VALUES], output[VALUES]; /* where each value is in the lists of a run; -1: it has no memory there */
};

static int is_plain(const graft_tensor_desc *t, const graft_tensor_desc *like) {
  if (t->dl.dtype != GRAFT_F32 || t->flags & GRAFT_TENSOR_HOST_VALUE || t->dl.ndim != like->dl.ndim) return 0;
  int64_t run = 1;
  for (int32_t d = t->dl.ndim - 1; d >= 0; d--) {
    if (t->dl.shape[d] != like->dl.shape[d] || (t->dl.shape[d] != 1 && t->dl.strides[d] != run)) return 0;
    run *= t->dl.shape[d];
  }
  return 1;
}

/* A call of ours, whose tensors are contiguous and have the shape of what `first` writes. */
static int is_step(const graft_graph_node *node, const graft_graph_node *first) {
  if (!node->args || (node->args->op_id != GRAFT_OP_ADD_TENSOR && node->args->op_id != GRAFT_OP_RELU)) return 0;
  const graft_tensor_desc *like = first->writes[0];
  for (uint32_t i = 0; i < node->read_count; i++) {
    if (!is_plain(node->reads[i], like)) return 0;
  }
  return is_plain(node->writes[0], like);
}

/* Of tensors that are plain and of one shape. */
static int is_same(const graft_tensor_desc *a, const graft_tensor_desc *b) {
  return a->storage_id == b->storage_id && a->dl.byte_offset == b->dl.byte_offset;
}

static const graft_tensor_desc *tensor_of(const graft_graph_node *node, uint32_t i) {
  return i < node->read_count ? node->reads[i] : node->writes[i - node->read_count];
}

/* Whether two calls may be in one group: memory that both see is the same elements. */
static int go_together(const graft_graph_node *a, const graft_graph_node *b) {
  for (uint32_t i = 0; i < a->read_count + a->write_count; i++) {
    for (uint32_t j = 0; j < b->read_count + b->write_count; j++) {
      const graft_tensor_desc *mine = tensor_of(a, i), *other = tensor_of(b, j);
      if (mine->storage_id == other->storage_id && !is_same(mine, other)) return 0;
    }
  }
  return 1;
}

/* Whether node `end` may join the calls from `first` on. */
static int fits(const graft_graph_nodes *graph, uint32_t first, uint32_t end) {
  const graft_graph_node *node = graph->nodes[end];
  if (end - first == STEPS || !is_step(node, graph->nodes[first])) return 0;
  for (uint32_t n = first; n <= end; n++) {
    if (!go_together(graph->nodes[n], node)) return 0;
  }
  return 1;
}

/* What follows each other can run at once. A single call is left to its slot. */
static graft_status graph_query(const graft_exec *exec, const graft_graph_nodes *graph, uint32_t *groups) {
  (void)exec;
  for (uint32_t first = 0, end; first < graph->node_count; first = end) {
    end = first + 1;
    if (!fits(graph, first, first)) continue;
    while (end < graph->node_count && fits(graph, first, end)) end++;
    for (uint32_t n = first; n < end && end - first > 1; n++) groups[n] = first + 1;
  }
  return GRAFT_OK;
}

static int64_t place_of(const graft_tensor_desc *t, const graft_tensor_desc *const *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (is_same(list[i], t)) return i;
  }
  return -1;
}

/* The number of a tensor's value: that of the tensor which is the same, or a new one. */
static uint32_t value_of(const graft_tensor_desc *t, graft_executable *e, const graft_tensor_desc **values,
                         const graft_graph_group *group) {
  const int64_t known = place_of(t, values, e->nvalues);
  if (known >= 0) return (uint32_t)known;
  const uint32_t made = e->nvalues++;
  values[made] = t;
  e->input[made] = place_of(t, group->inputs, group->input_count);
  e->output[made] = place_of(t, group->outputs, group->output_count);
  return made;
}

static graft_status graph_compile(const graft_exec *exec, const graft_graph_group *group,
                                  graft_graph_compiled *compiled) {
  const graft_tensor_desc *values[VALUES];
  if (group->node_count > STEPS) return GRAFT_UNIMPLEMENTED;
  graft_executable *e = calloc(1, sizeof *e);
  if (!e) return fail(exec->device->self, GRAFT_OUT_OF_MEMORY, "@NAME@: no memory for a group of calls");
  for (uint32_t n = 0; n < group->node_count; n++) {
    const graft_args *args = group->nodes[n]->args;
    step *s = &e->steps[e->nsteps++];
    s->op_id = args->op_id;
    if (args->op_id == GRAFT_OP_ADD_TENSOR) {
      const graft_args_add_Tensor *add = (const graft_args_add_Tensor *)(const void *)args;
      s->a = value_of(add->self, e, values, group);
      s->b = value_of(add->other, e, values, group);
      s->factor = factor_of(add->alpha);
      s->out = value_of(add->out, e, values, group);
    } else {
      const graft_args_relu *one = (const graft_args_relu *)(const void *)args;
      s->a = value_of(one->self, e, values, group);
      s->out = value_of(one->out, e, values, group);
    }
  }
  e->elements = elements(values[0]);
  compiled->executable = e;
  compiled->flags = GRAFT_EXECUTABLE_UNALIGNED;
  return GRAFT_OK;
}

typedef struct chain_work {
  const graft_executable *e;
  const float *from[VALUES];
  float *to[VALUES];
} chain_work;

static void run_step(const step *s, float (*values)[BLOCK], int64_t count) {
  const float *a = values[s->a], *b = values[s->b];
  float *out = values[s->out];
  if (s->op_id == GRAFT_OP_ADD_TENSOR) {
    for (int64_t i = 0; i < count; i++) out[i] = add_one(a[i], b[i], s->factor);
  } else {
    for (int64_t i = 0; i < count; i++) out[i] = relu_one(a[i]);
  }
}

static void run_chain(const void *work) {
  const chain_work *w = work;
  const graft_executable *e = w->e;
  float values[VALUES][BLOCK];
  for (int64_t begin = 0; begin < e->elements; begin += BLOCK) {
    const int64_t count = e->elements - begin < BLOCK ? e->elements - begin : BLOCK;
    for (uint32_t v = 0; v < e->nvalues; v++) {
      if (w->from[v]) memcpy(values[v], w->from[v] + begin, (size_t)count * sizeof(float));
    }
    for (uint32_t n = 0; n < e->nsteps; n++) run_step(&e->steps[n], values, count);
    for (uint32_t v = 0; v < e->nvalues; v++) {
      if (w->to[v]) memcpy(w->to[v] + begin, values[v], (size_t)count * sizeof(float));
    }
  }
}

static graft_status graph_run(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  chain_work w = {.e = e};
  for (uint32_t v = 0; v < e->nvalues; v++) {
    if (e->input[v] >= 0) w.from[v] = f32(args->inputs[e->input[v]]);
    if (e->output[v] >= 0) w.to[v] = f32(args->outputs[e->output[v]]);
  }
  return submit(exec->stream, run_chain, &w, sizeof w);
}

static graft_status graph_destroy(graft_executable *e) {
  free(e);
  return GRAFT_OK;
}

static const graft_graph_api graph_api = {
    .struct_size = sizeof graph_api,
    .query = graph_query,
    .compile = graph_compile,
    .run = graph_run,
    .destroy = graph_destroy,
};
