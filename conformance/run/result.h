/* What became of a case. */
#ifndef GRAFT_CF_RESULT_H
#define GRAFT_CF_RESULT_H

#include "conformance/judge/compare.h"

/* CF_ABSENT: it asks for a way that the call does not have on this device, and counts nowhere. */
typedef enum cf_outcome { CF_PASS, CF_FAIL, CF_UNSUPPORTED, CF_CRASH, CF_TIMEOUT, CF_WAIVED, CF_ABSENT } cf_outcome;

/* Crosses the pipe: plain bytes. */
typedef struct cf_result {
  cf_case c;
  uint8_t outcome;
  uint8_t route;        /* dsp_route */
  uint8_t fallback;     /* bytes left the device */
  uint8_t waiver_stale; /* waived, and passed */
  uint32_t waiver_line;
  double ratio, error, limit;
  double milliseconds;
  char text[320];
} cf_result;

/* Marks a case as failed, with a text; false, to return. */
__attribute__((format(printf, 2, 3))) bool cf_fail(cf_result *result, const char *format, ...);
/* Marks what a status says: a failure with its text, or that nothing can run the case. True for GRAFT_OK. */
bool cf_succeeded(cf_result *result, graft_status status, const char *who);
/* Marks a case whose way the call does not have; false, to return. */
bool cf_has_no_way(cf_result *result);
/* Fails, crashes or runs out of time. */
bool cf_is_red(const cf_result *r);
const char *cf_outcome_name(int outcome);
/* "pass", "decomposed", "host", "fallback", "unsupported", "fail", "waived": what a report shows. */
const char *cf_result_word(const cf_result *r);

/* How often bytes have left a device so far. */
uint64_t cf_fallback_total(void);

#endif
