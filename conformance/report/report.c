#include "conformance/report/report.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/case.h"
#include "dispatch/dispatch.h"

/* ---- counts ---- */

static void cf_tally_add(cf_tally *t, const cf_result *r) {
  if (r->outcome == CF_UNSUPPORTED) {
    t->unsupported++;
    return;
  }
  t->run++;
  if (cf_is_red(r))
    t->failed++;
  else if (r->outcome == CF_WAIVED)
    t->waived++;
  else
    t->passed++;
  if (r->outcome != CF_PASS) return;
  const char *word = cf_result_word(r);
  if (strcmp(word, "fallback") == 0) t->fallback++;
  if (strcmp(word, "decomposed") == 0) t->decomposed++;
}

/* The place of a family, which is made where it is new; there is room for one a topic. */
static cf_family *cf_report_family(cf_report *report, const char *name) {
  for (uint32_t i = 0; i < report->family_count; i++)
    if (strcmp(report->families[i].name, name) == 0) return &report->families[i];
  report->families[report->family_count] = (cf_family){.name = name};
  return &report->families[report->family_count++];
}

bool cf_report_open(cf_report *report, const cf_cases *cases) {
  report->total = cases->count;
  report->results = calloc((size_t)cases->count + 1, sizeof *report->results);
  report->families = calloc(cf_topic_count, sizeof *report->families);
  if (!report->results || !report->families) return false;
  for (uint32_t i = 0; i < cf_topic_count; i++) cf_report_family(report, cf_topics[i]->family);
  for (uint32_t i = 0; i < cases->count; i++) {
    const cf_case *c = &cases->items[i];
    report->slots_selected += op_schema_of(c->op_id)->route == OPROUTE_SLOT && c->mode != CF_ADJOINT;
  }
  return true;
}

void cf_report_close(cf_report *report) {
  cf_waivers_free(report->waivers);
  free(report->results);
  free(report->families);
}

static bool cf_computed(const cf_result *r) {
  bool route = r->route == DSP_ROUTE_PLUGIN || r->route == DSP_ROUTE_EQUAL || r->route == DSP_ROUTE_DECOMPOSITION;
  return r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT || (route && !r->fallback);
}

void cf_report_add(cf_report *report, uint32_t index, const cf_result *r) {
  report->results[index] = *r;
  report->done++;
  report->executed += cf_computed(r);
  cf_tally_add(&report->all, r);
  cf_tally_add(&cf_report_family(report, cf_case_family(&r->c))->tally, r);
}

int cf_report_status(const cf_report *report) {
  if (report->all.failed || report->done < report->total || report->hello.bad_endings) return 1;
  bool nothing = report->slots_selected ? report->executed == 0 : report->all.run == 0;
  return nothing ? 3 : 0;
}

void cf_reproduce(const cf_report *report, const cf_result *r, char *text, size_t capacity) {
  char id[CF_ID_BYTES] = "";
  const cf_options *o = report->options;
  cf_case_id(&r->c, id);
  int n = snprintf(text, capacity, "graft case %s -b %s", id, o->backend);
  if (o->device && n > 0 && (size_t)n < capacity) n += snprintf(text + n, capacity - (size_t)n, " -d %d", o->device);
  for (uint32_t i = 0; i < o->plugin_option_count && (size_t)n < capacity; i++)
    n += snprintf(text + n, capacity - (size_t)n, " -o %s", o->plugin_options[i]);
  if (o->seed && (size_t)n < capacity)
    snprintf(text + n, capacity - (size_t)n, " --seed %llu", (unsigned long long)o->seed);
}
