/* What a backend is expected to serve: a file that `--write-expect` writes and `--expect` holds a run against, so that
 * lost support is red. Such a file has, beside # comments,
 *
 *   level smoke
 *   aten::abs f32 contiguous:p transposed:p vjp:p
 *
 * a line an op and dtype, sorted, with its kinds of cases (layout and mode), and a letter for each case of a kind, in
 * the menu's order:
 *   p  its slot, or that of an equal op       f  in host memory, at least in part
 *   h  the host, which moved no byte          u  not at all
 *   d  the plugin's other ops composed it     x  wrong, or - not run: nothing is expected */
#ifndef GRAFT_CF_EXPECT_H
#define GRAFT_CF_EXPECT_H

#include "conformance/run/worker.h"

typedef struct cf_expect cf_expect;

/* Makes room for what becomes of the selected cases, and reads the file of --expect, where there is one. */
graft_status cf_expect_open(const cf_options *options, const cf_cases *selected, cf_expect **expect);
/* Takes a result; a case that was served better turns red. `index` counts the selected cases. */
void cf_expect_note(cf_expect *expect, uint32_t index, cf_result *r);
/* Says on the terminal what the file has and the menu has no more, and what the file lacks. Returns how many cases have
 * vanished. */
uint32_t cf_expect_summary(const cf_expect *expect);
/* Writes the file of --write-expect, which appears when it is whole. */
graft_status cf_expect_write(const cf_expect *expect);
void cf_expect_close(cf_expect *expect);

#endif
