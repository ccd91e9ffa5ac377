/* JSON lines: one object a case, after one that says what was run. */
#include <math.h>

#include "conformance/cases/cases.h"
#include "conformance/report/report.h"
#include "conformance/run/case.h"
#include "dispatch/dispatch.h"

static void cf_json_string(FILE *f, const char *text) {
  putc('"', f);
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(f, "\\%c", *c);
    else if (*c < 0x20)
      fprintf(f, "\\u%04x", *c);
    else
      putc(*c, f);
  }
  putc('"', f);
}

static void cf_json_number(FILE *f, const char *key, double value) {
  if (isfinite(value))
    fprintf(f, ",\"%s\":%.6g", key, value);
  else
    fprintf(f, ",\"%s\":null", key);
}

static void cf_json_text(FILE *f, const char *key, const char *text) {
  fprintf(f, ",\"%s\":", key);
  cf_json_string(f, text);
}

static void cf_json_case(FILE *f, const cf_report *report, const cf_result *r) {
  char id[CF_ID_BYTES] = "", command[512];
  cf_case_id(&r->c, id);
  fputs("{\"id\":", f);
  cf_json_string(f, id);
  cf_json_text(f, "op", op_schema_of(r->c.op_id)->name);
  cf_json_text(f, "family", cf_case_family(&r->c));
  cf_json_text(f, "dtype", graft_dtype_name(r->c.dtype));
  cf_json_text(f, "layout", cf_layout_name(r->c.layout));
  cf_json_text(f, "fill", cf_fill_name(r->c.fill));
  cf_json_text(f, "mode", cf_mode_name(r->c.mode));
  cf_json_text(f, "outcome", cf_outcome_name(r->outcome));
  cf_json_text(f, "status", cf_result_word(r));
  cf_json_text(f, "route", dsp_route_name((dsp_route)r->route));
  fprintf(f, ",\"fallback\":%s", r->fallback ? "true" : "false");
  cf_json_number(f, "ratio", r->ratio);
  cf_json_number(f, "error", r->error);
  cf_json_number(f, "ms", r->milliseconds);
  if (r->waiver_line) cf_json_text(f, "waiver", cf_waivers_link(report->waivers, r->waiver_line));
  if (r->text[0]) cf_json_text(f, "text", r->text);
  if (r->outcome != CF_PASS) {
    cf_reproduce(report, r, command, sizeof command);
    cf_json_text(f, "reproduce", command);
  }
  fputs("}\n", f);
}

/* "fused":{"aten::add.Tensor":"both",...}: what `graft ops --fused` says of the ops that are in a group at all. */
static void cf_json_fused(FILE *f, const cf_report *report) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  const char *before = "";
  fputs(",\"fused\":{", f);
  for (size_t i = 0; i < count; i++) {
    const cf_fusion fusion = cf_fusion_among(report->fusions, &all[i]);
    if (fusion == CF_FUSES_NOTHING) continue;
    fprintf(f, "%s\"%s\":\"%s\"", before, all[i].name, cf_fusion_name(fusion));
    before = ",";
  }
  putc('}', f);
}

void cf_write_json(FILE *f, const void *context) {
  const cf_report *report = context;
  const cf_tally *t = &report->all;
  fprintf(f,
          "{\"graft\":\"conformance\",\"cases\":%u,\"run\":%llu,\"passed\":%llu,\"failed\":%llu,\"fallback\":%llu,"
          "\"host\":%llu,\"unsupported\":%llu",
          report->total, (unsigned long long)t->run, (unsigned long long)t->passed, (unsigned long long)t->failed,
          (unsigned long long)t->fallback, (unsigned long long)t->host, (unsigned long long)t->unsupported);
  cf_json_text(f, "backend", report->options->backend);
  char command[512];
  cf_command(report, command, sizeof command);
  cf_json_text(f, "command", command);
  cf_json_text(f, "level", cf_level_name((int)report->options->selection.level));
  cf_json_text(f, "began", report->began);
  cf_json_text(f, "plugin", report->hello.plugin);
  cf_json_text(f, "libgraft", graft_version());
  cf_json_text(f, "device", report->hello.name);
  cf_json_text(f, "driver", report->hello.driver);
  cf_json_number(f, "seconds", report->seconds);
  if (report->fusions) cf_json_fused(f, report);
  fprintf(f, ",\"seed\":%llu}\n", (unsigned long long)report->options->seed);
  for (uint32_t i = 0; i < report->total; i++)
    if (report->results[i].c.op_id) cf_json_case(f, report, &report->results[i]);
}
