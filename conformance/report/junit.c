/* JUnit XML, as CI systems read it: a suite a family, a test case a case. */
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/report/report.h"
#include "conformance/run/case.h"

void cf_escape_xml(FILE *f, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    switch (*c) {
      case '&': fputs("&amp;", f); break;
      case '<': fputs("&lt;", f); break;
      case '>': fputs("&gt;", f); break;
      case '"': fputs("&quot;", f); break;
      default: putc(*c < 0x20 ? ' ' : *c, f);
    }
  }
}

static void cf_junit_case(FILE *f, const cf_report *report, const cf_result *r) {
  char id[CF_ID_BYTES] = "", command[512];
  cf_case_id(&r->c, id);
  fputs("    <testcase classname=\"", f);
  cf_escape_xml(f, op_schema_of(r->c.op_id)->name);
  fputs("\" name=\"", f);
  cf_escape_xml(f, id);
  fprintf(f, "\" time=\"%.4f\"", r->milliseconds / 1e3);
  if (r->outcome == CF_PASS) {
    fputs("/>\n", f);
    return;
  }
  bool skipped = r->outcome == CF_UNSUPPORTED || r->outcome == CF_WAIVED;
  fprintf(f, ">\n      <%s message=\"", skipped ? "skipped" : "failure");
  cf_escape_xml(f, r->outcome == CF_WAIVED ? cf_waivers_link(report->waivers, r->waiver_line) : r->text);
  cf_reproduce(report, r, command, sizeof command);
  if (skipped)
    fputs("\"/>", f);
  else
    fputs("\">", f), cf_escape_xml(f, command), fputs("</failure>", f);
  fputs("\n    </testcase>\n", f);
}

static void cf_junit_family(FILE *f, const cf_report *report, const cf_family *family) {
  const cf_tally *t = &family->tally;
  if (t->run + t->unsupported == 0) return;
  fprintf(f, "  <testsuite name=\"%s\" tests=\"%llu\" failures=\"%llu\" skipped=\"%llu\">\n", family->name,
          (unsigned long long)(t->run + t->unsupported), (unsigned long long)t->failed,
          (unsigned long long)(t->unsupported + t->waived));
  for (uint32_t i = 0; i < report->total; i++) {
    const cf_result *r = &report->results[i];
    if (r->c.op_id && strcmp(cf_case_family(&r->c), family->name) == 0) cf_junit_case(f, report, r);
  }
  fputs("  </testsuite>\n", f);
}

void cf_write_junit(FILE *f, const void *context) {
  const cf_report *report = context;
  fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"graft conformance\" time=\"%.3f\">\n",
          report->seconds);
  for (uint32_t k = 0; k < report->family_count; k++) cf_junit_family(f, report, &report->families[k]);
  fputs("</testsuites>\n", f);
}
