/* Extension "graft.graph" of the asynchronous plugin: chains of its one op, neg, each value of which is the chain's
 * input or its negative. */

enum { CHAIN_MAX = 64 };

struct graft_executable {
  uint32_t noutputs;
  int negates[CHAIN_MAX]; /* by output */
  uint64_t bytes;
};

static const graft_tensor_desc *read_by(const graft_graph_node *node) {
  return ((const graft_args_neg *)(const void *)node->args)->self;
}

static const graft_tensor_desc *written_by(const graft_graph_node *node) {
  return ((const graft_args_neg *)(const void *)node->args)->out;
}

static int is_contiguous(const graft_dl_tensor *t) {
  int64_t run = 1;
  for (int32_t d = t->ndim - 1; d >= 0; d--) {
    if (t->shape[d] != 1 && t->strides[d] != run) return 0;
    run *= t->shape[d];
  }
  return 1;
}

static int is_link(const graft_graph_node *node) {
  if (!node->args || node->args->op_id != GRAFT_OP_NEG) return 0;
  const graft_tensor_desc *from = read_by(node), *to = written_by(node);
  return from->dl.dtype == GRAFT_F32 && is_contiguous(&from->dl) && is_contiguous(&to->dl) &&
         from->storage_id != to->storage_id;
}

/* Whether some link of a chain from node `first` on uses the storage. */
static int uses(const graft_graph_nodes *graph, uint32_t first, uint32_t end, uint64_t storage) {
  for (uint32_t n = first; n < end; n++) {
    if (read_by(graph->nodes[n])->storage_id == storage || written_by(graph->nodes[n])->storage_id == storage) return 1;
  }
  return 0;
}

static graft_status groups_query(const graft_exec *exec, const graft_graph_nodes *graph, uint32_t *groups) {
  (void)exec;
  for (uint32_t first = 0, end; first < graph->node_count; first = end) {
    end = first + 1;
    if (!is_link(graph->nodes[first])) continue;
    while (end < graph->node_count && end - first < CHAIN_MAX && is_link(graph->nodes[end]) &&
           read_by(graph->nodes[end]) == written_by(graph->nodes[end - 1]) &&
           !uses(graph, first, end, written_by(graph->nodes[end])->storage_id))
      end++;
    for (uint32_t n = first; n < end && end - first > 1; n++) groups[n] = first + 1;
  }
  return GRAFT_OK;
}

static graft_status groups_compile(const graft_exec *exec, const graft_graph_group *group,
                                   graft_graph_compiled *compiled) {
  (void)exec;
  if (group->input_count != 1 || group->output_count > CHAIN_MAX) return GRAFT_UNIMPLEMENTED;
  graft_executable *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->noutputs = group->output_count;
  made->bytes = sizeof(float);
  for (int32_t d = 0; d < group->inputs[0]->dl.ndim; d++) made->bytes *= (uint64_t)group->inputs[0]->dl.shape[d];
  for (uint32_t i = 0; i < group->output_count; i++) {
    uint32_t n = 0;
    while (written_by(group->nodes[n]) != group->outputs[i]) n++;
    made->negates[i] = n % 2 == 0;
  }
  compiled->executable = made;
  compiled->flags = GRAFT_EXECUTABLE_UNALIGNED;
  return GRAFT_OK;
}

static void run_move(command *c) {
  memmove(c->to, c->from, c->bytes);
}

static graft_status groups_run(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  for (uint32_t i = 0; i < e->noutputs; i++) {
    command *c = command_new(e->negates[i] ? run_neg : run_move);
    c->bytes = e->bytes;
    c->from = first_byte(args->inputs[0]);
    c->to = first_byte(args->outputs[i]);
    profile(exec->stream, c, GRAFT_RECORD_KERNEL, "chain");
    submit(exec->stream, c);
  }
  return GRAFT_OK;
}

static graft_status groups_destroy(graft_executable *e) {
  free(e);
  return GRAFT_OK;
}

static graft_graph_api graph_api = {sizeof graph_api, groups_query, groups_compile, groups_run, groups_destroy};
