#include "conformance/run/fused.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/grouped.h"
#include "conformance/run/teller.h"
#include "graph/graph.h"

enum { PATIENCE_S = 60 };

/* ---- a call with a neighbour ---- */

typedef struct cf_pair {
  const cf_call *call;
  graft_rt_device *device;
  graft_graph *graph;
  graft_tensor *tensors[CF_MAX_TENSORS], *outs[CF_MAX_TENSORS], *negated;
} cf_pair;

static graft_status cf_add_inputs(cf_pair *p) {
  graft_status status = graft_graph_create(p->device, &p->graph);
  for (uint32_t i = 0; i < p->call->ntensors && !status; i++) {
    const txt_tensor *t = &p->call->specs[i];
    char name[16];
    snprintf(name, sizeof name, "t%u", i);
    status = graft_graph_input(p->graph, name, t->dtype, t->ndim, t->sizes, NULL, &p->tensors[i]);
  }
  return status;
}

static graft_status cf_add_call(cf_pair *p, graft_tensor *const *tensors) {
  graft_tensor *items[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  const uint32_t nouts = cf_call_outs(p->call);
  if (!nouts || nouts > CF_MAX_TENSORS) return GRAFT_UNIMPLEMENTED;
  if (cf_call_returns_input(p->call)) graft_tensor_retain(p->outs[0] = tensors[0]);
  cf_call_args(p->call, p->device, tensors, args, items);
  return graft_graph_call(p->graph, p->call->schema->id, args, p->call->schema->nargs, p->outs, nouts);
}

static graft_status cf_add_before(cf_pair *p) {
  const int first = cf_call_first_read(p->call);
  if (first < 0) return GRAFT_UNIMPLEMENTED;
  graft_status status = cf_add_negation(p->graph, p->tensors[first], &p->negated);
  if (status) return status;
  graft_tensor *tensors[CF_MAX_TENSORS];
  memcpy(tensors, p->tensors, sizeof tensors);
  tensors[first] = p->negated;
  status = cf_add_call(p, tensors);
  for (uint32_t i = 0; i < CF_MAX_TENSORS && !status; i++) {
    char name[16];
    snprintf(name, sizeof name, "o%u", i);
    if (p->outs[i]) status = graft_graph_output(p->graph, name, p->outs[i]);
  }
  return status;
}

static graft_status cf_add_after(cf_pair *p) {
  graft_status status = cf_add_call(p, p->tensors);
  if (!status) status = p->outs[0] ? cf_add_negation(p->graph, p->outs[0], &p->negated) : GRAFT_UNIMPLEMENTED;
  return status ? status : graft_graph_output(p->graph, "negated", p->negated);
}

static void cf_pair_release(cf_pair *p) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    graft_tensor_release(p->tensors[i]);
    graft_tensor_release(p->outs[i]);
  }
  graft_tensor_release(p->negated);
  graft_graph_destroy(p->graph);
}

static bool cf_joins(const cf_call *call, graft_rt_device *device, bool before) {
  cf_pair p = {.call = call, .device = device};
  graft_status status = cf_add_inputs(&p);
  if (!status) status = before ? cf_add_before(&p) : cf_add_after(&p);
  const bool joined = !status && cf_joins_end(p.graph, device, before);
  cf_pair_release(&p);
  return joined;
}

/* ---- an op ---- */

static unsigned cf_fusion_of_row(cf_case row, const op_schema *schema, graft_rt_device *device) {
  const cf_op *op = cf_case_op(&row);
  graft_dtype dtypes[GRAFT_NUMBER_WIDE];
  unsigned found = CF_FUSES_NOTHING;
  if (!cf_op_dtypes(op, dtypes)) return found;
  row.dtype = dtypes[0], row.op_id = schema->id;
  for (uint16_t text = 0; op->texts[text] && found != CF_FUSES_BOTH; text++) {
    cf_call call;
    row.text = text;
    if (!cf_call_open(&row, &call)) continue;
    if (!(found & CF_FUSES_BEFORE) && cf_joins(&call, device, true)) found |= CF_FUSES_BEFORE;
    if (!(found & CF_FUSES_AFTER) && cf_joins(&call, device, false)) found |= CF_FUSES_AFTER;
    cf_call_close(&call);
  }
  return found;
}

cf_fusion cf_fusion_of(const op_schema *schema, graft_rt_device *device) {
  const uint32_t meaning = schema->equal ? schema->equal->op_id : schema->id;
  unsigned found = CF_FUSES_NOTHING;
  for (uint32_t t = 0; t < cf_topic_count; t++) {
    for (uint32_t i = 0; i < cf_topics[t]->count && found != CF_FUSES_BOTH; i++) {
      const op_schema *of = op_schema_find(cf_topics[t]->ops[i].name);
      const cf_case row = {.topic = (uint16_t)t, .op = (uint16_t)i};
      if (of && (of == schema || of->id == meaning)) found |= cf_fusion_of_row(row, schema, device);
    }
  }
  return (cf_fusion)found;
}

const char *cf_fusion_name(cf_fusion fusion) {
  static const char *const names[] = {
      [CF_FUSES_NOTHING] = "none", [CF_FUSES_BEFORE] = "before", [CF_FUSES_AFTER] = "after", [CF_FUSES_BOTH] = "both"};
  return names[fusion];
}

/* ---- all, in a process of its own ---- */

int cf_fusions_tell(const cf_options *options) {
  cf_backend backend = {0};
  size_t count;
  const op_schema *all = op_schema_all(&count);
  FILE *to = cf_teller_open();
  alarm(PATIENCE_S);
  bool ok = to && cf_backend_open(options, &backend) == GRAFT_OK;
  for (size_t i = 0; i < count && ok; i++) ok = putc(cf_fusion_of(&all[i], backend.device), to) != EOF;
  if (to && fclose(to)) ok = false;
  return ok ? 0 : 2;
}

uint8_t *cf_fusions_fetch(const cf_options *options) {
  size_t count;
  pid_t pid = 0;
  op_schema_all(&count);
  uint8_t *fusions = malloc(count);
  FILE *from = fusions ? cf_teller_start(options, "--fusions", &pid) : NULL;
  const bool whole = from && fread(fusions, 1, count, from) == count && getc(from) == EOF;
  const int status = cf_teller_end(from, pid);
  if (whole && status == 0) return fusions;
  fprintf(stderr,
          "graft: warning: the plugin of %s %s when it was asked which calls it compiles together (extension "
          "graft.graph)\n",
          options->backend, WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "came to no end" : "died");
  free(fusions);
  return NULL;
}

cf_fusion cf_fusion_among(const uint8_t *fusions, const op_schema *schema) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  const bool listed = fusions && schema >= all && schema < all + count; /* not so a plugin's own */
  return listed ? (cf_fusion)(fusions[schema - all] & CF_FUSES_BOTH) : CF_FUSES_NOTHING;
}
