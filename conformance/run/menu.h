/* Rows to cases. */
#ifndef GRAFT_CF_MENU_H
#define GRAFT_CF_MENU_H

#include "conformance/judge/call.h"

typedef struct cf_selection {
  cf_level level;
  const char *op;         /* glob, over "aten.mm.default" and "aten::mm"; NULL: all */
  uint32_t dtypes;        /* 0: all */
  int grad;               /* 0 both, 1 only gradients, -1 none */
  uint32_t shard, shards; /* shards 0: all */
} cf_selection;

/* Visits the cases of a selection in a fixed order, until visit returns false. */
typedef bool (*cf_visit_fn)(void *context, const cf_case *c, const char *id);
void cf_menu(const cf_selection *selection, cf_visit_fn visit, void *context);
/* The primary dtype first, then a half type (another for each op, so that both are met early), then the rest.
 * Returns how many there are. */
uint32_t cf_op_dtypes(const cf_op *op, graft_dtype order[GRAFT_NUMBER_WIDE]);
/* Whether the selection's glob is the name of any op. */
bool cf_any_op_selected(const cf_selection *selection);
/* Names of ops near a glob that is none, "aten.relu, aten.relu6": at most three, nearest first. Returns how many. */
size_t cf_near_ops(const char *glob, char *text, size_t room);
/* The case of an id; false: there is none. */
bool cf_case_find(const char *id, cf_case *c);

#endif
