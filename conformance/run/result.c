#include "conformance/run/result.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/dispatch.h"

bool cf_fail(cf_result *result, const char *format, ...) {
  va_list list;
  va_start(list, format);
  result->outcome = CF_FAIL;
  result->ratio = INFINITY;
  vsnprintf(result->text, sizeof result->text, format, list);
  va_end(list);
  return false;
}

bool cf_succeeded(cf_result *result, graft_status status, const char *who) {
  if (status == GRAFT_OK) return true;
  cf_fail(result, "%s%s%s: %s", who, *who ? ": " : "", graft_status_name(status), graft_last_error());
  if (status == GRAFT_UNIMPLEMENTED) result->outcome = CF_UNSUPPORTED;
  return false;
}

bool cf_has_no_way(cf_result *result) {
  result->outcome = CF_ABSENT;
  return false;
}

bool cf_is_red(const cf_result *r) {
  return r->outcome == CF_FAIL || r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT;
}

const char *cf_outcome_name(int outcome) {
  static const char *const names[] = {"pass", "fail", "unsupported", "crash", "timeout", "waived", "absent"};
  return names[outcome];
}

const char *cf_result_word(const cf_result *r) {
  if (r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT) return "fail";
  if (r->outcome != CF_PASS) return cf_outcome_name(r->outcome);
  if (r->c.way == DSP_ROUTE_REFERENCE) return "host"; /* it was asked to */
  if (r->fallback || r->route == DSP_ROUTE_REFERENCE) return "fallback";
  if (r->route == DSP_ROUTE_DECOMPOSITION) return "decomposed";
  return r->route == DSP_ROUTE_PLUGIN || r->route == DSP_ROUTE_EQUAL ? "pass" : "host";
}

uint64_t cf_fallback_total(void) {
  static graft_fallback_info rows[2048];
  size_t n = graft_fallbacks(rows, sizeof *rows, 2048);
  uint64_t total = 0;
  for (size_t i = 0; i < n && i < 2048; i++) total += rows[i].count;
  return total;
}
