/* Waivers: what is known to fail, why, and until when. A file of lines
 *
 *   PATTERN  LINK  YYYY-MM-DD
 *
 * PATTERN is a glob over case ids; # begins a comment. A waiver whose day has passed excuses nothing, and a waived case
 * that passes is a failure, so that the list can only shrink. */
#ifndef GRAFT_CF_WAIVERS_H
#define GRAFT_CF_WAIVERS_H

#include "conformance/run/result.h"

typedef struct cf_waivers cf_waivers;
graft_status cf_waivers_read(const char *path, cf_waivers **waivers);
/* Applies a waiver to a result; today as "YYYY-MM-DD". */
void cf_waivers_apply(cf_waivers *waivers, const char *today, const char *id, cf_result *r);
/* Names the waivers that no case was held against so far, each in a line on stdout; returns how many. */
uint32_t cf_waivers_say_idle(const cf_waivers *waivers, const char *path);
const char *cf_waivers_link(const cf_waivers *waivers, uint32_t line);
void cf_waivers_free(cf_waivers *waivers);

#endif
