/* Manifests, and where plugins are found: what is searched, what is refused and why. */
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include "null_device.h"
#include "own_folder.h"
#include "plugin/loader.h"
#include "suite.h"

/* --- manifests --- */

typedef struct manifest_case {
  const char *text, *problem; /* NULL: none */
} manifest_case;

#define GOOD "\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": 1"

static const manifest_case manifest_cases[] = {
    {"{" GOOD "}", NULL},
    {"{" GOOD ", \"abi_minor\": 9, \"licence\": \"MIT\", \"more\": [1, {\"a\": 2}]}", NULL},
    {"", "not valid JSON"},
    {"{" GOOD, "not valid JSON"},
    {"{" GOOD "} {", "not valid JSON"},
    {"[1]", "no JSON object"},
    {"{\"library\": \"x.so\", \"abi_major\": 1}", "\"name\" is missing"},
    {"{\"name\": 3, \"library\": \"x.so\", \"abi_major\": 1}", "\"name\" must be a string"},
    {"{\"name\": \"a/b\", \"library\": \"x.so\", \"abi_major\": 1}", "letters, digits"},
    {"{\"name\": \"none\", \"library\": \"x.so\", \"abi_major\": 1}", "letters, digits"},
    {"{\"name\": \"reference\", \"library\": \"x.so\", \"abi_major\": 1}", "built-in"},
    {"{\"name\": \"x\", \"abi_major\": 1}", "\"library\" is missing"},
    {"{\"name\": \"x\", \"library\": \"/x.so\", \"abi_major\": 1}", "relative"},
    {"{\"name\": \"x\", \"library\": \"../x.so\", \"abi_major\": 1}", "climb out"},
    {"{\"name\": \"x\", \"library\": \"a/../../x.so\", \"abi_major\": 1}", "climb out"},
    {"{\"name\": \"x\", \"library\": \"a/..\", \"abi_major\": 1}", "climb out"},
    {"{\"name\": \"x\", \"library\": \"a..b/x..so\", \"abi_major\": 1}", NULL},
    {"{\"name\": \"x\", \"library\": \"x.so\"}", "abi_major"},
    {"{\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": \"1\"}", "abi_major"},
    {"{\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": 2}", "ABI major 2"},
    {"{\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": 1, \"a\": [[[[[[[[[1]]]]]]]]]}", "nest deeper"},
};

START_TEST(manifest_text) {
  const manifest_case *row = &manifest_cases[_i];
  plg_manifest manifest = {0};
  plg_manifest_parse(row->text, strlen(row->text), &manifest);
  if (!row->problem) {
    ck_assert_msg(!manifest.problem, "%s: %s", row->text, manifest.problem);
  } else {
    ck_assert_msg(manifest.problem && strstr(manifest.problem, row->problem), "%s: %s", row->text, manifest.problem);
  }
  plg_manifest_free(&manifest);
}
END_TEST

START_TEST(manifest_size) {
  size_t bytes = 64 * 1024 + 1;
  char *text = malloc(bytes + 1);
  memset(text, ' ', bytes);
  memcpy(text, "{" GOOD "}", strlen("{" GOOD "}"));
  text[bytes] = 0;
  plg_manifest large = {0}, fits = {0}, binary = {0};
  plg_manifest_parse(text, bytes, &large);
  ck_assert_ptr_nonnull(strstr(large.problem, "64 KiB"));
  text[bytes - 1] = 0;
  plg_manifest_parse(text, bytes - 1, &fits);
  ck_assert_ptr_null(fits.problem);
  plg_manifest_parse("{\0}", 3, &binary);
  ck_assert_ptr_nonnull(strstr(binary.problem, "NUL"));
  plg_manifest_free(&large);
  plg_manifest_free(&fits);
  plg_manifest_free(&binary);
  free(text);
}
END_TEST

/* --- discovery: each test is a process of its own, so that the environment is read anew --- */

typedef struct tree {
  char root[64], one[80], two[80];
} tree;

static void put(const char *folder, const char *file, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "w");
  ck_assert_ptr_nonnull(stream);
  fputs(text, stream);
  fclose(stream);
}

static void put_manifest(const char *folder, const char *name, const char *library) {
  char file[80], text[256];
  snprintf(file, sizeof file, "%s.graft.json", name);
  snprintf(text, sizeof text,
           "{\"name\": \"%s\", \"vendor\": \"V\", \"version\": \"3\", \"library\": \"%s\", \"abi_major\": 1}", name,
           library);
  put(folder, file, text);
}

static void copy_library(const char *name, const char *folder, const char *as) {
  char command[3 * PATH_MAX];
  snprintf(command, sizeof command, "cp '%s' '%s/%s' && chmod 755 '%s/%s'", test_plugin(name), folder, as, folder, as);
  ck_assert_int_eq(system(command), 0);
}

/* Two folders with the null plugin in each, and only they are searched. */
static tree plant(void) {
  umask(022);
  tree t = {.root = OWN_FOLDER};
  folder_make(t.root);
  chmod(t.root, 0755);
  snprintf(t.one, sizeof t.one, "%s/one", t.root);
  snprintf(t.two, sizeof t.two, "%s/two", t.root);
  mkdir(t.one, 0755);
  mkdir(t.two, 0755);
  copy_library("null", t.one, "null.so");
  copy_library("null", t.two, "null.so");
  char list[400];
  snprintf(list, sizeof list, ":relative/path::%s:%s:", t.one, t.two);
  setenv("GRAFT_PLUGIN_PATH", list, 1);
  setenv("XDG_DATA_HOME", t.root, 1);
  unsetenv("GRAFT_PLUGINS");
  setenv("GRAFT_LOG", "error", 1);
  return t;
}

static void uproot(const tree *t) {
  folder_remove(t->root);
}

static const graft_backend_info *row_of(const char *name, bool refused) {
  const graft_backend_info *const *rows;
  size_t count;
  ck_assert_int_eq(graft_backends(&rows, &count), GRAFT_OK);
  for (size_t i = 0; i < count; i++) {
    if (i) ck_assert_int_le(strcmp(rows[i - 1]->name, rows[i]->name), 0);
    if (strcmp(rows[i]->name, name) == 0 && (rows[i]->problem != NULL) == refused) return rows[i];
  }
  return NULL;
}

START_TEST(discovery_finds_and_opens) {
  tree t = plant();
  put_manifest(t.two, "null", "null.so");
  put_manifest(t.one, "broken", "absent.so");
  put(t.one, "bad.graft.json", "{");
  put(t.one, ".hidden.graft.json", "{");
  put(t.one, "other.json", "{");
  const graft_backend_info *row = row_of("null", false);
  ck_assert_ptr_nonnull(row);
  ck_assert_str_eq(row->vendor, "V");
  ck_assert_str_eq(row->version, "3");
  ck_assert(row->library[0] == '/');
  ck_assert_ptr_nonnull(row_of("reference", false));
  ck_assert_ptr_nonnull(strstr(row_of("bad", true)->problem, "not valid JSON"));
  ck_assert_ptr_nonnull(strstr(row_of("broken", true)->problem, "absent.so"));
  ck_assert_ptr_null(row_of(".hidden", true));

  graft_rt_backend *backend, *again;
  ck_assert_int_eq(graft_backend_open("null", NULL, &backend), GRAFT_OK);
  ck_assert_int_eq(graft_backend_open("null", NULL, &again), GRAFT_OK);
  ck_assert_ptr_eq(backend, again);
  graft_rt_device *device;
  ck_assert_int_eq(graft_device_find("null:1", &device), GRAFT_OK);
  ck_assert_str_eq(graft_device_text(device), "null:1");
  ck_assert_int_eq(graft_device_find("null:2", &device), GRAFT_INVALID_ARGUMENT);
  assert_text("the plugin has 2");
  ck_assert_int_eq(graft_backend_open("broken", NULL, &backend), GRAFT_INCOMPATIBLE);
  assert_text("absent.so");
  ck_assert_int_eq(graft_backend_open("nul", NULL, &backend), GRAFT_INVALID_ARGUMENT);
  assert_text("found: null, ");
  assert_text("reference");
  uproot(&t);
}
END_TEST

START_TEST(discovery_reports_duplicates) {
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  put_manifest(t.two, "null", "null.so");
  ck_assert_ptr_nonnull(strstr(row_of("null", false)->manifest, "/one/"));
  const graft_backend_info *second = row_of("null", true);
  ck_assert_ptr_nonnull(strstr(second->manifest, "/two/"));
  ck_assert_ptr_nonnull(strstr(second->problem, "/one/null.graft.json"));
  uproot(&t);
}
END_TEST

START_TEST(discovery_distrusts_what_others_may_write) {
  tree t = plant();
  put_manifest(t.one, "file", "null.so");
  put_manifest(t.one, "library", "open.so");
  copy_library("null", t.one, "open.so");
  put_manifest(t.two, "folder", "null.so");
  char path[128];
  snprintf(path, sizeof path, "%s/file.graft.json", t.one);
  chmod(path, 0666);
  snprintf(path, sizeof path, "%s/open.so", t.one);
  chmod(path, 0757);
  chmod(t.two, 0777);
  ck_assert_ptr_nonnull(strstr(row_of("file", true)->problem, "others may write"));
  ck_assert_ptr_nonnull(strstr(row_of("library", true)->problem, "open.so"));
  ck_assert_ptr_nonnull(strstr(row_of("folder", true)->problem, "/two"));
  /* What the user types is taken as it is. */
  graft_rt_backend *backend;
  copy_library("null", t.two, "null.so");
  put_manifest(t.two, "null", "null.so");
  snprintf(path, sizeof path, "%s/null.graft.json", t.two);
  ck_assert_msg(graft_backend_open(path, NULL, &backend) == GRAFT_OK, "%s", graft_last_error());
  uproot(&t);
}
END_TEST

/* One command mends a plugin: the message names all that is open. */
START_TEST(discovery_names_all_that_is_open) {
  tree t = plant();
  put_manifest(t.two, "all", "null.so");
  char path[128], command[512];
  snprintf(path, sizeof path, "%s/all.graft.json", t.two);
  chmod(path, 0666);
  snprintf(path, sizeof path, "%s/null.so", t.two);
  chmod(path, 0777);
  chmod(t.two, 0777);
  const char *problem = row_of("all", true)->problem, *way = strstr(problem, "chmod");
  ck_assert_msg(way != NULL, "%s", problem);
  snprintf(command, sizeof command, "%s", way);
  ck_assert_int_eq(system(command), 0);
  plg_manifest manifest;
  snprintf(path, sizeof path, "%s/all.graft.json", t.two);
  plg_manifest_read(path, PLG_DISCOVERED, &manifest);
  ck_assert_msg(!manifest.problem, "%s", manifest.problem);
  plg_manifest_free(&manifest);
  uproot(&t);
}
END_TEST

/* As umask 002 leaves things: a group may write to all of it. Only the user's own counts as the user. */
static void open_to_group(const tree *t, gid_t group) {
  char command[256];
  snprintf(command, sizeof command, "chgrp -R %u '%s' && chmod -R g+w '%s'", (unsigned)group, t->one, t->one);
  ck_assert_int_eq(system(command), 0);
}

static bool has_private_group(void) {
  const struct passwd *user = getpwuid(geteuid());
  const struct group *group = getgrgid(getegid());
  return user && group && strcmp(user->pw_name, group->gr_name) == 0 && !group->gr_mem[0];
}

START_TEST(discovery_trusts_the_private_group) {
  if (!has_private_group()) return;
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  open_to_group(&t, getegid());
  ck_assert_ptr_nonnull(row_of("null", false));
  uproot(&t);
}
END_TEST

START_TEST(discovery_distrusts_other_groups) {
  if (geteuid() != 0) return; /* only root can give files to a group that is not his */
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  open_to_group(&t, _i ? 12345 : 1); /* a group without a name, and one of another name */
  const graft_backend_info *row = row_of("null", true);
  ck_assert_ptr_nonnull(row);
  ck_assert_ptr_nonnull(strstr(row->problem, "null.so"));
  uproot(&t);
}
END_TEST

START_TEST(discovery_distrusts_other_owners) {
  if (geteuid() != 0) return; /* only root can give files away */
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  char path[128];
  snprintf(path, sizeof path, "%s/null.so", t.one);
  ck_assert_int_eq(chown(path, 12345, 12345), 0);
  ck_assert_ptr_nonnull(strstr(row_of("null", true)->problem, "belongs to user 12345"));
  uproot(&t);
}
END_TEST

START_TEST(discovery_filter) {
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  put_manifest(t.one, "other", "null.so");
  setenv("GRAFT_PLUGINS", _i ? "none" : "null,absent", 1);
  graft_rt_backend *backend;
  if (_i) {
    ck_assert_int_eq(graft_backend_open("null", NULL, &backend), GRAFT_INCOMPATIBLE);
    assert_text("GRAFT_PLUGINS=none");
  } else {
    ck_assert_int_eq(graft_backend_open("null", NULL, &backend), GRAFT_OK);
  }
  ck_assert_ptr_nonnull(strstr(row_of("other", true)->problem, "GRAFT_PLUGINS"));
  ck_assert_ptr_nonnull(row_of("reference", false));
  uproot(&t);
}
END_TEST

START_TEST(discovery_searches_the_users_folder) {
  tree t = plant();
  char folder[128];
  snprintf(folder, sizeof folder, "%s/graft", t.root);
  mkdir(folder, 0755);
  strcat(folder, "/plugins");
  mkdir(folder, 0755);
  copy_library("null", folder, "null.so");
  put_manifest(folder, "null", "null.so");
  ck_assert_ptr_nonnull(row_of("null", false));
  uproot(&t);
}
END_TEST

START_TEST(manifest_and_plugin_agree_on_the_name) {
  tree t = plant();
  put_manifest(t.one, "nul", "null.so");
  graft_rt_backend *backend;
  ck_assert_int_eq(graft_backend_open("nul", NULL, &backend), GRAFT_INCOMPATIBLE);
  assert_text("calls itself \"null\"");
  uproot(&t);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(manifest_text, ROWS(manifest_cases)),
                              ONCE(manifest_size),
                              ONCE(discovery_finds_and_opens),
                              ONCE(discovery_reports_duplicates),
                              ONCE(discovery_distrusts_what_others_may_write),
                              ONCE(discovery_names_all_that_is_open),
                              ONCE(discovery_trusts_the_private_group),
                              EACH(discovery_distrusts_other_groups, 2),
                              ONCE(discovery_distrusts_other_owners),
                              EACH(discovery_filter, 2),
                              ONCE(discovery_searches_the_users_folder),
                              ONCE(manifest_and_plugin_agree_on_the_name),
                              {0}};
  return run_suite("discovery", tests, (suite_options){0});
}
