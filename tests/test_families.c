/* Whether an op stands, in every room, in the folder that the column `family` of its description names. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/core/families.h"

static int misplaced;

static void stands_in(const char *room, const char *file, const op_schema *schema) {
  char folder[256];
  snprintf(folder, sizeof folder, "%s/%s/", room, schema->family);
  if (strstr(file, folder)) return;
  fprintf(stderr, "%s: its row is in %s, its family column says %s\n", schema->name, file, folder);
  misplaced++;
}

START_TEST(rules_stand_in_their_familys_folder) {
  int rows = 0;
  for (const op_table *const *table = op_tables; *table; table++) {
    for (uint32_t i = 0; i < (*table)->count; i++, rows++) {
      const op_schema *schema = op_schema_of((*table)->defs[i].op_id);
      ck_assert_msg(schema, "%s: op id %u is in no description", (*table)->file, (*table)->defs[i].op_id);
      stands_in("sdk/ops", (*table)->file, schema);
    }
  }
  ck_assert_int_eq(misplaced, 0);
  ck_assert_int_gt(rows, 0);
}
END_TEST

START_TEST(families_are_described) {
  static char page[1 << 16];
  char row[64];
  FILE *file = fopen(GRAFT_SOURCE_DIR "/docs/architecture.md", "r");
  ck_assert(file && fread(page, 1, sizeof page - 1, file) > 0 && feof(file));
  fclose(file);
  size_t count;
  const op_schema *schemas = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    snprintf(row, sizeof row, "\n| `%s` |", schemas[i].family);
    ck_assert_msg(strstr(page, row), "docs/architecture.md does not say what the family %s is", schemas[i].family);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("families");
  TCase *tests = tcase_create("families");
  tcase_add_test(tests, rules_stand_in_their_familys_folder);
  tcase_add_test(tests, families_are_described);
  suite_add_tcase(suite, tests);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
