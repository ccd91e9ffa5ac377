/* Lies about groups of calls. */

static graft_status query_and_lie(const graft_exec *exec, const graft_graph_nodes *graph, uint32_t *groups) {
  static int calls;
  graft_status status = groups_query(exec, graph, groups);
  if (tells("groups_beyond")) groups[0] = graph->node_count + 1;
  if (tells("groups_overrun")) groups[graph->node_count] = 0;
  if (tells("groups_drift") && calls++ % 2) groups[0] = groups[0] ? 0 : 1;
  for (uint32_t n = 0; n < graph->node_count; n++) {
    if (tells("groups_stolen")) groups[n] = 1;
    if (tells("groups_circle") && graph->nodes[n]->args) groups[n] = 1;
  }
  return status;
}

static graft_status compile_nothing(const graft_exec *exec, const graft_graph_group *group,
                                    graft_graph_compiled *compiled) {
  (void)exec, (void)group, (void)compiled;
  return GRAFT_OK;
}

/* No run of it is right in place. */
static graft_status compile_over(const graft_exec *exec, const graft_graph_group *group,
                                 graft_graph_compiled *compiled) {
  graft_status status = groups_compile(exec, group, compiled);
  compiled->in_place = 1;
  return status;
}

static graft_executable first_made; /* as it was */

static graft_status compile_once(const graft_exec *exec, const graft_graph_group *group,
                                 graft_graph_compiled *compiled) {
  graft_status status = groups_compile(exec, group, compiled);
  if (!first_made.bytes) first_made = *compiled->executable;
  return status;
}

/* What was destroyed goes on. */
static graft_status run_first(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  (void)e;
  return groups_run(exec, &first_made, args);
}

static graft_status run_and_lie(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  graft_executable other = *e;
  if (tells("groups_wrong")) other.negates[0] = !other.negates[0];
  if (tells("groups_silent")) other.noutputs = 0;
  if (tells("groups_wide")) other.bytes += sizeof(float);
  if (tells("groups_over") && args->inputs[0]->dl.data == args->outputs[0]->dl.data) other.noutputs = 0;
  return tells("groups_refuses") ? GRAFT_UNIMPLEMENTED : groups_run(exec, &other, args);
}

static graft_status keep_executable(graft_executable *e) {
  (void)e;
  return GRAFT_INTERNAL;
}

static void groups_lie(async_instance *self) {
  (void)self;
  graph_api.query = query_and_lie;
  graph_api.run = run_and_lie;
  if (tells("groups_part")) graph_api.struct_size = GRAFT_SIZE_TO(graft_graph_api, run);
  if (tells("groups_no_run")) graph_api.run = NULL;
  if (tells("groups_empty")) graph_api.compile = compile_nothing;
  if (tells("groups_over")) graph_api.compile = compile_over;
  if (tells("groups_kept")) graph_api.destroy = keep_executable;
  if (!tells("groups_destroyed")) return;
  graph_api.compile = compile_once;
  graph_api.run = run_first;
}
