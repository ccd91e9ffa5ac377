/* Ops that plugins bring (extension "graft.custom_ops"): which there are, and which backend serves which.
 *
 * - custom.c: the table
 * - custom_adopt.c: a plugin's rows come into it when it is opened
 * - custom_rules.c: what stands for the rule, the gradient and the reference kernel of such an op; these call the
 * plugin
 *
 * An op belongs to the plugin that brought its name first. That plugin may be opened again, with other options: each of
 * its backends then has a row of its own. */
#ifndef GRAFT_SDK_DISPATCH_CUSTOM_H
#define GRAFT_SDK_DISPATCH_CUSTOM_H

#include "dispatch/dispatch.h"

/* A plugin's row, as large as this host knows it, behind the backend that offers it. Rows stay; a backend that is
 * closed is passed over. */
typedef struct dsp_custom_row {
  struct dsp_custom_row *next;
  graft_rt_backend *backend;
  graft_custom_op op;
} dsp_custom_row;

typedef struct dsp_custom {
  op_schema schema;
  op_def def;
  const char *plugin;
  uint32_t op_id;                    /* the plugin's own */
  const struct dsp_custom *gradient; /* NULL: not differentiable */
  int8_t gradient_of[OP_MAX_ARGS];   /* for each argument the result of `gradient` that is its; -1: none */
  const char *cases;                 /* of the conformance suite; NULL: it makes some */
  uint32_t roundings;
  bool has_reference, gradient_has_reference;
  _Atomic(dsp_custom_row *) rows;
  arena memory;
} dsp_custom;

/* NULL: the op is one of the tables. */
const dsp_custom *dsp_custom_of(const op_schema *schema);
/* What a plugin calls an op. */
uint32_t dsp_plugin_op_id(const op_schema *schema);
/* The row of a backend, or, for host memory, of any that is open; NULL: none. */
const dsp_custom_row *dsp_custom_row_for(const dsp_custom *custom, const graft_rt_backend *backend);
/* A slot of a device, by the number of the op. */
op_slot dsp_custom_slot(const graft_rt_backend *backend, const op_schema *schema);

/* Reads the ops of a plugin that is being opened; what is wrong with one goes to the log. For plugin/. */
void dsp_custom_adopt(graft_rt_backend *backend);
/* The same, for who only wants to know what is wrong: nothing is added. False: no host memory. */
typedef void (*dsp_custom_tell_fn)(void *context, uint32_t row, const char *schema, const char *problem);
bool dsp_custom_review(const char *plugin, const graft_custom_ops_api *api, dsp_custom_tell_fn tell, void *context);

/* For a process that does not open the plugin and only reads of its ops: the conformance suite's parent. They come in
 * the order in which the plugin's process has them, so that both number them alike. False: the schema can't be read, or
 * there is no room. */
typedef struct dsp_custom_facts {
  const char *plugin, *schema, *cases;
  uint32_t op_id, roundings;
  bool has_reference, gradient_has_reference;
} dsp_custom_facts;
bool dsp_custom_declare(const dsp_custom_facts *facts);

/* --- custom_rules.c --- */
graft_status dsp_custom_infer(op_call *call);
void dsp_custom_vjp(op_vjp *v);
graft_status dsp_custom_reference(const graft_exec *exec, const void *args);

#endif
