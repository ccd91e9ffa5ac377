/* Cases by name: ids, and what their parts are called. */
#ifndef GRAFT_CF_CASE_H
#define GRAFT_CF_CASE_H

#include "conformance/judge/call.h"

enum { CF_ID_BYTES = 288 };

/* aten.mm.default/f32/33x17,17x129/transposed/uniform/0, then /vjp and so on for gradients. False: the case does not
 * exist (a layout that changes nothing, a prim that can't say it). */
bool cf_case_id(const cf_case *c, char id[CF_ID_BYTES]);

/* Prints the words of ids: part, word, meaning, with tabs between. */
void cf_print_words(void);

const char *cf_layout_name(int layout);
const char *cf_fill_name(int fill);
const char *cf_mode_name(int mode);
const char *cf_level_name(int level);
int cf_level_parse(const char *name); /* -1: unknown */

#endif
