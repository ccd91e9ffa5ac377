/* Each case of the suite is of its op's name; cf_run is called through here (-Wl,--wrap). */
#include <string.h>

#include "conformance/run/case.h"
#include "conformance/run/run.h"
#include "reached.h"

void __real_cf_run(const cf_backend *backend, const cf_case *c, cf_result *result);
void __wrap_cf_run(const cf_backend *backend, const cf_case *c, cf_result *result);

void __wrap_cf_run(const cf_backend *backend, const cf_case *c, cf_result *result) {
  char id[CF_ID_BYTES];
  cf_case_id(c, id);
  id[strcspn(id, "/")] = 0;
  reached_begin(id);
  __real_cf_run(backend, c, result);
}
