/* Values: seeded, and rounded to the tensor's dtype before anybody sees them, so that the oracle computes with what the
 * kernel is given. */
#ifndef GRAFT_CF_FILL_H
#define GRAFT_CF_FILL_H

#include "conformance/judge/call.h"

typedef struct cf_random {
  uint64_t state;
} cf_random;
uint64_t cf_random_next(cf_random *r);
long double cf_random_unit(cf_random *r); /* [0, 1) */
uint64_t cf_hash(const char *text);

enum { CF_NUMBERS = 8 };
typedef struct cf_filling {
  cf_fill fill;
  cf_domain domain;
  bool reduced;               /* the values are summed or multiplied up: moderate ones */
  bool denormals;             /* the device keeps them */
  const long double *numbers; /* some elements are one of these, or its opposite */
  uint32_t number_count;
} cf_filling;
void cf_fill_values(cf_array *a, const cf_note *note, const cf_filling *how, cf_random *r);
/* Makes what was drawn matrices of a kind. */
void cf_fill_matrices(cf_array *a, cf_matrices kind);
/* The lower triangles, mirrored. */
void cf_fill_hermitian(cf_array *a);

#endif
