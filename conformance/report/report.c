#include "conformance/report/report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/case.h"
#include "dispatch/dispatch.h"

/* ---- counts ---- */

/* Whether a plugin had a part in what came out, and it stayed on the device. */
static bool cf_is_own(const cf_result *r) {
  bool route = r->route == DSP_ROUTE_PLUGIN || r->route == DSP_ROUTE_EQUAL || r->route == DSP_ROUTE_DECOMPOSITION;
  return route && !r->fallback;
}

static void cf_tally_add(cf_tally *t, const cf_result *r) {
  bool own = cf_is_own(r), left = strcmp(cf_result_word(r), "fallback") == 0;
  t->unsupported += r->outcome == CF_UNSUPPORTED;
  t->run += r->outcome != CF_UNSUPPORTED;
  t->failed += cf_is_red(r);
  t->waived += r->outcome == CF_WAIVED;
  if (r->outcome != CF_PASS) return;
  t->passed += own;
  t->decomposed += own && r->route == DSP_ROUTE_DECOMPOSITION;
  t->fallback += left;
  t->host += !own && !left;
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
  cf_expect_close(report->expect);
  free(report->results);
  free(report->families);
  free(report->fusions);
}

uint32_t cf_report_fused(const cf_report *report) {
  size_t count;
  uint32_t fused = 0;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) fused += cf_fusion_among(report->fusions, &all[i]) != CF_FUSES_NOTHING;
  return fused;
}

void cf_report_add(cf_report *report, uint32_t index, const char *today, cf_result *r) {
  char id[CF_ID_BYTES] = "";
  report->done++;
  if (r->outcome == CF_ABSENT) return; /* stays as if it was not there */
  cf_case_id(&r->c, id);
  if (report->expect) cf_expect_note(report->expect, index, r);
  cf_waivers_apply(report->waivers, today, id, r);
  report->results[index] = *r;
  report->executed += r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT || cf_is_own(r);
  cf_tally_add(&report->all, r);
  cf_tally_add(&cf_report_family(report, cf_case_family(&r->c))->tally, r);
}

uint32_t cf_ops_served(const cf_report *report) {
  bool *seen = calloc(op_schema_places(), sizeof *seen);
  uint32_t served = 0;
  for (uint32_t i = 0; seen && i < report->total; i++) {
    const cf_result *r = &report->results[i];
    if (!r->c.op_id || r->outcome != CF_PASS || !cf_is_own(r)) continue;
    bool *first = &seen[op_schema_place(op_schema_of(r->c.op_id))];
    served += !*first;
    *first = true;
  }
  free(seen);
  return served;
}

void cf_report_verdict(const cf_report *report, char *text, size_t capacity) {
  const cf_tally *t = &report->all;
  uint32_t ops = cf_ops_served(report);
  int n =
      snprintf(text, capacity, "%u op%s served: %llu passed", ops, ops == 1 ? "" : "s", (unsigned long long)t->passed);
  if (t->failed) n += snprintf(text + n, capacity - (size_t)n, ", %llu failed", (unsigned long long)t->failed);
  if (t->fallback)
    snprintf(text + n, capacity - (size_t)n, "; %llu case%s by fallback, not counted", (unsigned long long)t->fallback,
             t->fallback == 1 ? "" : "s");
}

int cf_report_status(const cf_report *report) {
  if (report->all.failed || report->vanished) return 1;
  if (report->done < report->total || report->hello.bad_endings) return 1;
  bool nothing = report->slots_selected ? report->executed == 0 : report->all.run == 0;
  return nothing ? 3 : 0;
}

/* A text that grows; what does not fit is cut. */
typedef struct cf_words {
  char *text;
  size_t capacity, used;
} cf_words;

__attribute__((format(printf, 2, 3))) static void cf_say(cf_words *w, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int n = vsnprintf(w->text + w->used, w->capacity - w->used, format, list);
  va_end(list);
  if (n > 0) w->used += (size_t)n;
  if (w->used >= w->capacity) w->used = w->capacity - 1;
}

static void cf_say_device(cf_words *w, const cf_options *o) {
  cf_say(w, " -b %s", o->backend);
  if (o->device) cf_say(w, " -d %d", o->device);
  for (uint32_t i = 0; i < o->plugin_option_count; i++) cf_say(w, " -o %s", o->plugin_options[i]);
}

void cf_command(const cf_report *report, char *text, size_t capacity) {
  const cf_options *o = report->options;
  const cf_selection *s = &o->selection;
  cf_words w = {text, capacity, 0};
  cf_say(&w, "graft conformance");
  cf_say_device(&w, o);
  cf_say(&w, " --level %s", cf_level_name((int)s->level));
  if (s->ops) cf_say(&w, " --op '%s'", s->ops);
  if (s->families) cf_say(&w, " --family %s", s->families);
  for (uint32_t i = 0, n = 0; s->dtypes >> i; i++)
    if (s->dtypes >> i & 1) cf_say(&w, "%s%s", n++ ? "," : " --dtype ", graft_dtype_name(dt_of_number(i)));
  if (s->grad) cf_say(&w, " --grad %s", s->grad > 0 ? "only" : "no");
  if (s->shards) cf_say(&w, " --shard %u/%u", s->shard, s->shards);
  if (o->seed) cf_say(&w, " --seed %llu", (unsigned long long)o->seed);
}

void cf_reproduce(const cf_report *report, const cf_result *r, char *text, size_t capacity) {
  char id[CF_ID_BYTES] = "";
  const cf_options *o = report->options;
  cf_words w = {text, capacity, 0};
  cf_case_id(&r->c, id);
  cf_say(&w, "graft case %s", id);
  cf_say_device(&w, o);
  if (o->seed) cf_say(&w, " --seed %llu", (unsigned long long)o->seed);
}
