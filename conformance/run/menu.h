/* Rows to cases. */
#ifndef GRAFT_CF_MENU_H
#define GRAFT_CF_MENU_H

#include "conformance/judge/call.h"
#include "conformance/run/listed.h"
#include "dispatch/dispatch.h"

typedef struct cf_selection {
  cf_level level;
  const char *ops;        /* globs with commas between, over "aten.mm.default" and "aten::mm"; NULL: all */
  const char *families;   /* as in docs/architecture.md, with commas between; NULL: all */
  uint32_t dtypes;        /* 0: all */
  int grad;               /* 0 both, 1 only gradients, -1 none */
  cf_listed *listed;      /* only the cases with these ids; NULL: all */
  uint32_t shard, shards; /* shards 0: all */
  uint32_t ways;          /* bits of dsp_route, CF_CHOSEN_WAY among them; 0: as the level has it */
} cf_selection;

/* The way that dispatch chooses, as a bit of cf_selection.ways. */
enum { CF_CHOSEN_WAY = 1u << DSP_ROUTE_NONE };
/* Bits of ways by their words, "chosen,decomposition" or "all"; 0: there is no such word. */
uint32_t cf_ways_parse(const char *list);

/* Visits the cases of a selection in a fixed order, until visit returns false. */
typedef bool (*cf_visit_fn)(void *context, const cf_case *c, const char *id);
void cf_menu(const cf_selection *selection, cf_visit_fn visit, void *context);
/* The primary dtype first, then a half type (another for each op, so that both are met early), then the rest.
 * Returns how many there are. */
uint32_t cf_op_dtypes(const cf_op *op, graft_dtype order[GRAFT_NUMBER_WIDE]);
/* Whether some row has the family whose name begins there. */
bool cf_is_family(const char *name, size_t length);
/* Whether one of the selection's globs is the name of any op. */
bool cf_any_op_selected(const cf_selection *selection);
/* Names of ops near a glob that is none, "aten.relu, aten.relu6": at most three, nearest first. Returns how many. */
size_t cf_near_ops(const char *glob, char *text, size_t room);
/* The case of an id; false: there is none. */
bool cf_case_find(const char *id, cf_case *c);

#endif
