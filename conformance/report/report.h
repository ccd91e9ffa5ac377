/* What is told of a run: on the terminal, as JSON lines, as JUnit's XML, and as a page. */
#ifndef GRAFT_CF_REPORT_H
#define GRAFT_CF_REPORT_H

#include <stdio.h>

#include "conformance/report/expect.h"
#include "conformance/report/waivers.h"
#include "conformance/run/fused.h"
#include "conformance/run/worker.h"

/* run = passed + failed + fallback + host + waived. */
typedef struct cf_tally {
  uint64_t run;
  uint64_t passed;     /* the backend's own work: its slots, or its other ops */
  uint64_t decomposed; /* a part of `passed`: the other ops */
  uint64_t fallback;   /* right, but computed in host memory, in part at least */
  uint64_t host;       /* right, and no plugin has a part in it: views, the oracle's own gradients */
  uint64_t failed, unsupported, waived;
} cf_tally;

typedef struct cf_family {
  const char *name;
  cf_tally tally;
} cf_family;

typedef struct cf_report {
  char began[24]; /* UTC, as "2026-01-31 12:00:00Z" */
  const cf_options *options;
  cf_hello hello;
  double seconds;
  cf_result *results; /* one a case, in the menu's order; op_id 0: it was not run */
  uint32_t total, done;
  uint64_t slots_selected, executed; /* cases of ops with a slot; cases that the plugin itself computed */
  cf_tally all;
  cf_family *families; /* in the table's order */
  uint32_t family_count;
  cf_waivers *waivers;
  cf_expect *expect; /* NULL: nothing is */
  uint8_t *fusions; /* of a report that is written: a cf_fusion for each op, as op_schema_all has them; NULL: unknown */
  uint32_t vanished; /* cases that the file of --expect has and the suite has no more */
} cf_report;

/* Makes room for the results of the cases. False: no memory. */
bool cf_report_open(cf_report *report, const cf_cases *cases);
void cf_report_close(cf_report *report);
/* Notes a result: holds it against what is expected, lets waivers excuse it, counts it. */
void cf_report_add(cf_report *report, uint32_t index, const char *today, cf_result *r);
/* How many ops have a case that passed by the backend's own work. */
uint32_t cf_ops_served(const cf_report *report);
/* "12 ops served: 88 passed; 800 cases by fallback, not counted". */
void cf_report_verdict(const cf_report *report, char *text, size_t capacity);
/* The exit status of a run: 0, 1 or 3. */
int cf_report_status(const cf_report *report);

/* On the terminal: what is red, and how far the run has come; then the sums. */
void cf_report_line(const cf_report *report, const cf_result *r);
void cf_report_summary(const cf_report *report);

/* results.jsonl, junit.xml and report.html in the folder of --report, if one was asked for. The folder is made before
 * the cases are run, so that what is wrong with it is said at once, and goes again where none could be. Each file
 * appears when it is whole. */
graft_status cf_report_begin(const cf_report *report);
void cf_report_abandon(const cf_report *report);
graft_status cf_report_write(cf_report *report);

/* ---- for the writers ---- */

/* The command that a run was asked for by, as far as it chose cases and a device. */
void cf_command(const cf_report *report, char *text, size_t capacity);
/* The command that runs a case again. */
void cf_reproduce(const cf_report *report, const cf_result *r, char *text, size_t capacity);
/* Ops of which the plugin makes one program with others. */
uint32_t cf_report_fused(const cf_report *report);
/* Each takes a cf_report. */
void cf_write_json(FILE *f, const void *report);
void cf_write_junit(FILE *f, const void *report);
void cf_write_html(FILE *f, const void *report);
void cf_escape_xml(FILE *f, const char *text);

#endif
