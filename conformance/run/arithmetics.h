/* An extension of plugins that are right in more than one way, such as sums in another order: each case runs in all of
 * them, and is red where it is red in one. */
#ifndef GRAFT_CF_ARITHMETICS_H
#define GRAFT_CF_ARITHMETICS_H

#include <stddef.h>
#include <stdint.h>

#define CF_ARITHMETICS "graft.conformance.arithmetics"

typedef struct cf_arithmetics {
  size_t struct_size;
  uint32_t count;
  const char *(*choose)(uint32_t which); /* all calls from now on; its name */
} cf_arithmetics;

#endif
