/* One page, nothing loaded from elsewhere: what failed and how to see it again, then the support matrix, op by dtype,
 * layout and gradient, with how much of the allowed error was used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "conformance/cases/cases.h"
#include "conformance/report/report.h"
#include "conformance/run/case.h"
#include "graft/runtime.h"

/* ---- the matrix ---- */

/* Columns: dtypes, then layouts, then gradients. */
static const struct {
  const char *name;
  graft_dtype dtype;
} cf_dtype_columns[] = {
    {"f32", GRAFT_F32}, {"f16", GRAFT_F16},   {"bf16", GRAFT_BF16}, {"f64", GRAFT_F64},
    {"i64", GRAFT_I64}, {"i32", GRAFT_I32},   {"i16", GRAFT_I16},   {"i8", GRAFT_I8},
    {"u8", GRAFT_U8},   {"bool", GRAFT_BOOL}, {"c64", GRAFT_C64},   {"c128", GRAFT_C128},
};
enum {
  CF_DTYPE_COLUMNS = sizeof cf_dtype_columns / sizeof *cf_dtype_columns,
  CF_GRADIENT_COLUMN = CF_DTYPE_COLUMNS + CF_LAYOUTS - 1,
  CF_COLUMNS
};
static const char *const cf_words[] = {"pass", "decomposed", "host", "fallback", "unsupported", "waived", "fail"};
enum { CF_WORDS = sizeof cf_words / sizeof *cf_words };

typedef struct cf_cell {
  uint32_t count[CF_WORDS];
  double ratio;
} cf_cell;

typedef struct cf_matrix_row {
  uint32_t op_id;
  const char *family;
  cf_cell cells[CF_COLUMNS], all;
  uint32_t failures;
  double milliseconds; /* of all its cases */
} cf_matrix_row;

static int cf_word_index(const cf_result *r) {
  const char *word = cf_result_word(r);
  for (int i = 0; i < CF_WORDS; i++)
    if (strcmp(word, cf_words[i]) == 0) return i;
  return CF_WORDS - 1;
}

/* Waived ones are shown, too. */
static bool cf_is_failure(const cf_result *r) {
  return r->outcome != CF_PASS && r->outcome != CF_UNSUPPORTED;
}

static void cf_cell_add(cf_cell *cell, const cf_result *r) {
  cell->count[cf_word_index(r)]++;
  if (r->outcome == CF_PASS && isfinite(r->ratio) && r->ratio > cell->ratio) cell->ratio = r->ratio;
}

static void cf_matrix_add(cf_matrix_row *row, const cf_result *r) {
  cf_cell_add(&row->all, r);
  row->milliseconds += r->milliseconds;
  row->failures += cf_is_failure(r);
  if (r->c.mode != CF_FORWARD) {
    cf_cell_add(&row->cells[CF_GRADIENT_COLUMN], r);
    return;
  }
  for (int i = 0; i < CF_DTYPE_COLUMNS; i++)
    if (cf_dtype_columns[i].dtype == r->c.dtype) cf_cell_add(&row->cells[i], r);
  if (r->c.layout > CF_CONTIGUOUS) cf_cell_add(&row->cells[CF_DTYPE_COLUMNS + r->c.layout - 1], r);
}

static cf_matrix_row *cf_matrix(const cf_report *report, uint32_t *count) {
  cf_matrix_row *rows = calloc((size_t)report->total + 1, sizeof *rows);
  uint32_t n = 0;
  for (uint32_t i = 0; rows && i < report->total; i++) {
    const cf_result *r = &report->results[i];
    if (!r->c.op_id) continue;
    uint32_t k = n;
    while (k > 0 && rows[k - 1].op_id != r->c.op_id) k--;
    if (k == 0) rows[n].op_id = r->c.op_id, rows[n].family = cf_case_family(&r->c), k = ++n;
    cf_matrix_add(&rows[k - 1], r);
  }
  *count = n;
  return rows;
}

/* ---- the page ---- */

static const char cf_style[] =
    ":root{--bg:#fbfbfa;--fg:#1c2024;--dim:#6b7280;--line:#e5e7eb;--card:#fff;--pass:#2f9e66;--decomposed:#8cc63f;"
    "--host:#5aa9c9;--fallback:#e8a317;--unsupported:#c7ccd4;--waived:#8b6fd6;--fail:#d6293e}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e8ea;--dim:#949ba5;--line:#2a2f36;--card:#1b1f24;"
    "--unsupported:#454c55}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:14px/1.5 system-ui,sans-serif}"
    "main{max-width:1320px;margin:0 auto;padding:32px 24px 64px}h1{font-size:26px;margin:0 0 2px;letter-spacing:-.02em}"
    "h2{font-size:16px;margin:36px 0 10px}.dim{color:var(--dim)}code,pre{font:12px/1.5 ui-monospace,monospace}"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:22px 0}.tile{background:var(--card);border:1px solid "
    "var(--line);"
    "border-radius:10px;padding:10px 18px;min-width:118px}.tile b{display:block;font-size:24px;font-weight:600}"
    ".verdict{display:inline-block;border-radius:6px;padding:1px 10px;color:#fff;font-size:14px;vertical-align:4px;"
    "margin-left:10px}.legend span{display:inline-flex;align-items:center;margin-right:16px}"
    "i.k{width:12px;height:12px;border-radius:3px;display:inline-block;margin-right:6px}"
    ".host{background:var(--host)}.pass{background:var(--pass)}.decomposed{background:var(--decomposed)}.fallback{"
    "background:var(--fallback)}"
    ".unsupported{background:var(--unsupported)}.waived{background:var(--waived)}.fail{background:var(--fail)}"
    "table{border-collapse:separate;border-spacing:2px}th{font-weight:500;color:var(--dim);font-size:11px}"
    ".matrix th.v{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left;padding:4px 0;height:84px}"
    ".matrix thead th{position:sticky;top:0;background:var(--bg);z-index:1}.matrix td{padding:0;height:17px}"
    ".matrix td.op{padding-right:14px;white-space:nowrap;font:12px ui-monospace,monospace}"
    ".matrix td.ms{color:var(--dim);font-size:11px;padding-left:12px;text-align:right}"
    ".matrix td i{display:block;width:22px;height:15px;border-radius:3px}.gap{width:10px}"
    ".fam td{padding-top:12px;font-weight:600}.bar{width:110px;height:7px;background:var(--line);border-radius:4px;"
    "overflow:hidden;display:inline-block}.bar u{display:block;height:100%;background:var(--pass)}"
    ".sum td,.sum th{padding:3px 14px 3px 0;text-align:right}.sum td:first-child,.sum th:first-child{text-align:left}"
    ".stack{display:flex;width:260px;height:9px;border-radius:5px;overflow:hidden;background:var(--line)}"
    ".failure{background:var(--card);border:1px solid var(--line);border-left:4px solid var(--fail);border-radius:8px;"
    "padding:8px 14px;margin:8px 0}.failure summary{font-weight:600;cursor:pointer}.failure div{margin-top:8px}"
    ".failure pre{margin:4px 0 "
    "0;white-space:pre-wrap;word-break:break-all;color:var(--dim)}"
    "input{font:13px system-ui;padding:6px 10px;border:1px solid var(--line);border-radius:7px;background:var(--card);"
    "color:var(--fg);width:260px;margin-bottom:8px}";

static const char cf_script[] =
    "const q=document.getElementById('q'),w=document.getElementById('w');q.oninput=w.oninput=()=>"
    "document.querySelectorAll('tr[data-op]').forEach(r=>r.hidden=!r.dataset.op.includes(q.value.toLowerCase())||"
    "!r.dataset.status.split(' ').includes(w.value))";

static void cf_html_text(FILE *f, const char *before, const char *text, const char *after) {
  fputs(before, f);
  cf_escape_xml(f, text);
  fputs(after, f);
}

static void cf_html_tile(FILE *f, const char *name, uint64_t n, const char *word) {
  fprintf(f, "<div class=tile><b>%llu</b><span class=dim>", (unsigned long long)n);
  if (word) fprintf(f, "<i class=\"k %s\"></i>", word);
  fprintf(f, "%s</span></div>", name);
}

static void cf_html_head(FILE *f, const cf_report *report) {
  int status = cf_report_status(report);
  static const char *const verdicts[] = {"passed", "failed", "not run", "nothing was run"};
  const cf_tally *t = &report->all;
  fprintf(f,
          "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
          "<title>Graft conformance</title><style>%s</style><main>",
          cf_style);
  char verdict[160];
  cf_report_verdict(report, verdict, sizeof verdict);
  fprintf(f, "<h1>Graft conformance<span class=\"verdict %s\">%s</span></h1><p>%s</p><div class=dim>",
          status == 0 ? "pass" : "fail", verdicts[status & 3], verdict);
  cf_html_text(f, "", report->hello.device, " · ");
  cf_html_text(f, "", report->hello.name, "");
  if (report->hello.driver[0]) cf_html_text(f, " · driver ", report->hello.driver, "");
  char command[512], host[160] = "";
  struct utsname machine;
  cf_command(report, command, sizeof command);
  if (uname(&machine) == 0) snprintf(host, sizeof host, "%s %s", machine.sysname, machine.machine);
  cf_html_text(f, " · plugin ", report->hello.plugin, "");
  fprintf(f, " · level %s · %u cases in %.1f s · %s · libgraft %s · %s",
          cf_level_name(report->options->selection.level), report->total, report->seconds, report->began,
          graft_version(), host);
  const cf_statistics *s = &report->hello.statistics;
  if (s->known)
    fprintf(f, " · %llu programs built (%.1f s), %llu loaded", (unsigned long long)s->programs_built,
            (double)s->build_nanoseconds * 1e-9, (unsigned long long)s->programs_loaded);
  cf_html_text(f, "<br><code>", command,
               "</code> · <a href=results.jsonl>results.jsonl</a> · <a href=junit.xml>junit.xml</a>");
  fputs("</div><div class=tiles>", f);
  cf_html_tile(f, "run", t->run, NULL);
  cf_html_tile(f, "passed", t->passed, "pass");
  cf_html_tile(f, "failed", t->failed, "fail");
  cf_html_tile(f, "decomposed", t->decomposed, "decomposed");
  cf_html_tile(f, "fallback", t->fallback, "fallback");
  cf_html_tile(f, "host", t->host, "host");
  cf_html_tile(f, "unsupported", t->unsupported, "unsupported");
  cf_html_tile(f, "waived", t->waived, "waived");
  if (report->fusions) cf_html_tile(f, "ops fused with others", cf_report_fused(report), NULL);
  fputs("</div>", f);
}

static void cf_html_family(FILE *f, const char *name, const cf_tally *t) {
  uint64_t plain = t->passed - t->decomposed;
  uint64_t parts[CF_WORDS] = {plain, t->decomposed, t->host, t->fallback, t->unsupported, t->waived, t->failed};
  double total = (double)(t->run + t->unsupported);
  fprintf(f, "<tr><td>%s<td><div class=stack>", name);
  for (int i = 0; i < CF_WORDS; i++)
    if (parts[i]) fprintf(f, "<i class=%s style=\"width:%.2f%%\"></i>", cf_words[i], 100 * (double)parts[i] / total);
  fprintf(f, "</div><td>%llu<td>%llu<td>%llu<td>%llu<td>%llu<td>%llu", (unsigned long long)t->run,
          (unsigned long long)t->passed, (unsigned long long)t->failed, (unsigned long long)t->decomposed,
          (unsigned long long)t->fallback, (unsigned long long)t->unsupported);
}

static void cf_html_families(FILE *f, const cf_report *report) {
  fputs(
      "<h2>Families</h2><table class=sum><tr><th>family<th><th>run<th>passed<th>failed<th>decomposed<th>fallback<th>"
      "unsupported",
      f);
  for (uint32_t i = 0; i < report->family_count; i++) {
    const cf_family *family = &report->families[i];
    if (family->tally.run + family->tally.unsupported) cf_html_family(f, family->name, &family->tally);
  }
  fputs("</table>", f);
}

static void cf_html_failure(FILE *f, const cf_report *report, const cf_result *r) {
  char id[CF_ID_BYTES] = "", command[512];
  cf_case_id(&r->c, id);
  cf_reproduce(report, r, command, sizeof command);
  cf_html_text(f, "<div><b>", id, "</b><br>");
  if (r->outcome == CF_WAIVED) cf_html_text(f, "waived: ", cf_waivers_link(report->waivers, r->waiver_line), " · ");
  cf_html_text(f, "", r->text, "");
  if (isfinite(r->ratio) && r->ratio > 0) fprintf(f, " <span class=dim>(error / limit %.3g)</span>", r->ratio);
  cf_html_text(f, "<pre>", command, "</pre></div>");
}

/* The first of an op's at length, and how many there are. */
static void cf_html_failures_of(FILE *f, const cf_report *report, uint32_t op_id, uint32_t count) {
  enum { SHOWN = 10 };
  cf_html_text(f, "<details class=failure open><summary>", op_schema_of(op_id)->name, "");
  fprintf(f, " <span class=dim>%u case%s</span></summary>", count, count == 1 ? "" : "s");
  for (uint32_t i = 0, shown = 0; i < report->total && shown < SHOWN; i++) {
    const cf_result *r = &report->results[i];
    if (r->c.op_id != op_id || !cf_is_failure(r)) continue;
    cf_html_failure(f, report, r);
    shown++;
  }
  if (count > SHOWN) fprintf(f, "<div class=dim>and %u more, in results.jsonl</div>", count - SHOWN);
  fputs("</details>", f);
}

static void cf_html_failures(FILE *f, const cf_report *report, const cf_matrix_row *rows, uint32_t count) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    if (!rows[i].failures) continue;
    if (!any) fputs("<h2>Failures</h2>", f);
    any = true;
    cf_html_failures_of(f, report, rows[i].op_id, rows[i].failures);
  }
}

static void cf_html_cell(FILE *f, const cf_cell *cell) {
  int worst = -1;
  for (int i = 0; i < CF_WORDS; i++)
    if (cell->count[i]) worst = i;
  if (worst < 0) {
    fputs("<td>", f);
    return;
  }
  fprintf(f, "<td><i class=%s title=\"", cf_words[worst]);
  for (int i = 0; i < CF_WORDS; i++)
    if (cell->count[i]) fprintf(f, "%u %s ", cell->count[i], cf_words[i]);
  if (cell->ratio > 0) fprintf(f, "· error/limit %.2f", cell->ratio);
  fputs("\"></i>", f);
}

static void cf_html_columns(FILE *f) {
  fputs("<thead><tr><th>", f);
  for (int i = 0; i < CF_DTYPE_COLUMNS; i++) fprintf(f, "<th class=v>%s", cf_dtype_columns[i].name);
  fputs("<th class=gap>", f);
  for (int i = 1; i < CF_LAYOUTS; i++) fprintf(f, "<th class=v>%s", cf_layout_name(i));
  fputs("<th class=gap><th class=v>gradient<th class=gap><th>error / limit<th>ms<th>fused with the call</thead>", f);
}

static const char *cf_html_fusion(cf_fusion fusion) {
  return fusion == CF_FUSES_NOTHING ? "" : fusion == CF_FUSES_BOTH ? "before, after" : cf_fusion_name(fusion);
}

static void cf_html_matrix(FILE *f, const cf_report *report, const cf_matrix_row *rows, uint32_t count) {
  fputs("<h2>Support</h2><div class=legend>", f);
  for (int i = 0; i < CF_WORDS; i++) fprintf(f, "<span><i class=\"k %s\"></i>%s</span>", cf_words[i], cf_words[i]);
  fputs("</div><p><input id=q placeholder=\"filter ops\"> <select id=w><option value=\"\">any status", f);
  for (int i = 0; i < CF_WORDS; i++) fprintf(f, "<option>%s", cf_words[i]);
  fputs("</select></p><table class=matrix>", f);
  cf_html_columns(f);
  for (uint32_t i = 0; i < count; i++) {
    const cf_matrix_row *row = &rows[i];
    if (i == 0 || strcmp(rows[i - 1].family, row->family) != 0)
      fprintf(f, "<tr class=fam><td colspan=%d>%s", CF_COLUMNS + 6, row->family);
    const op_schema *schema = op_schema_of(row->op_id);
    const char *name = schema->name;
    cf_html_text(f, "<tr data-op=\"", name, "\" data-status=\"");
    for (int k = 0; k < CF_WORDS; k++)
      if (row->all.count[k]) fprintf(f, "%s ", cf_words[k]);
    fputs("\">", f);
    cf_html_text(f, "<td class=op>", name, "");
    for (int c = 0; c < CF_COLUMNS; c++) {
      if (c == CF_DTYPE_COLUMNS || c == CF_GRADIENT_COLUMN) fputs("<td class=gap>", f);
      cf_html_cell(f, &row->cells[c]);
    }
    double part = row->all.ratio > 1 ? 1 : row->all.ratio;
    fprintf(f,
            "<td class=gap><td><span class=bar><u style=\"width:%.0f%%\"></u></span> <span class=dim>%.2f</span><td "
            "class=ms>%.0f<td class=ms>%s",
            100 * part, row->all.ratio, row->milliseconds, cf_html_fusion(cf_fusion_among(report->fusions, schema)));
  }
  fputs("</table>", f);
}

void cf_write_html(FILE *f, const void *context) {
  const cf_report *report = context;
  uint32_t count = 0;
  cf_matrix_row *rows = cf_matrix(report, &count);
  cf_html_head(f, report);
  if (rows) cf_html_failures(f, report, rows, count);
  cf_html_families(f, report);
  if (rows) cf_html_matrix(f, report, rows, count);
  fprintf(f, "</main><script>%s</script></html>\n", cf_script);
  free(rows);
}
