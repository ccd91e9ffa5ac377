/* Whether an op stands, in every room, in the folder that the column `family` of its description names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "ops/families.h"
#include "suite.h"

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
  for (const op_table *const *table = ops_families; *table; table++) {
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

START_TEST(cases_stand_in_their_familys_file_or_folder) {
  for (uint32_t t = 0; t < cf_topic_count; t++) {
    const cf_topic *topic = cf_topics[t];
    char file[128], folder[128];
    snprintf(file, sizeof file, "conformance/cases/%s.c", topic->family);
    snprintf(folder, sizeof folder, "conformance/cases/%s/", topic->family);
    ck_assert_msg(strstr(topic->file, file) || strstr(topic->file, folder), "%s has rows of %s", topic->file,
                  topic->family);
    for (uint32_t i = 0; i < topic->count; i++) {
      const op_schema *schema = op_schema_find(topic->ops[i].name);
      ck_assert_msg(schema && strcmp(schema->family, topic->family) == 0, "%s: %s is of the family %s", topic->file,
                    topic->ops[i].name, schema ? schema->family : "none");
    }
  }
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
  const suite_test tests[] = {ONCE(rules_stand_in_their_familys_folder),
                              ONCE(cases_stand_in_their_familys_file_or_folder),
                              ONCE(families_are_described),
                              {0}};
  return run_suite("families", tests, (suite_options){0});
}
