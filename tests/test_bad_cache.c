/* Bad surroundings: a cache of compiled programs that is corrupt, full, not writable, shared or cut off by a kill; a
 * program called with what is not there or not right. Work goes on with the right numbers, or one line says why not. */
#include "bad_input.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "own_folder.h"
#include "suite.h"

/* --- the cache of compiled programs --- */

static char scratch[] = OWN_FOLDER;
static char cache[80];

static void make_scratch(void) {
  folder_make(scratch);
  snprintf(cache, sizeof cache, "%s/cache", scratch);
  setenv("GRAFT_CACHE_DIR", cache, 1);
  setenv("GRAFT_LOG", "error", 1);
  setenv("POCL_KERNEL_CACHE", "0", 1); /* where PoCL keeps nothing, the backend does */
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
}

static void remove_scratch(void) {
  folder_remove(scratch);
}

/* Several programs: reaches further into compiling and writing than job. */
static int many_programs(graft_rt_device *device) {
  static const char *const lines[] = {"aten::mul.Tensor i64[17] i64[17]", "aten::sum.dim_IntList f32[3,17] [1]",
                                      "aten::mm f32[5,6] f32[6,7]", "aten::relu f64[17]"};
  for (int i = 0; i < ROWS(lines); i++) {
    if (call_of(lines[i], device, NULL)) return __LINE__;
  }
  return job(device);
}

static pid_t start(int (*work)(graft_rt_device *device)) {
  pid_t child = fork();
  if (child) return child;
  graft_rt_device *device = device_of(2);
  _exit(device ? work(device) & 0xff : 255);
}

static void expect_success(pid_t child) {
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with %d (exit status %d)", status,
                WEXITSTATUS(status));
}

/* Calls visit for each compiled program and returns how many there are. */
static int each_entry(void (*visit)(const char *path, int turn)) {
  char folder[96], path[400];
  int count = 0;
  snprintf(folder, sizeof folder, "%s/opencl", cache);
  DIR *listing = opendir(folder);
  for (const struct dirent *entry; listing && (entry = readdir(listing));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (visit) visit(path, count);
    count++;
  }
  if (listing) closedir(listing);
  return count;
}

static void spoil(const char *path, int turn) {
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  FILE *file = fopen(path, "r+b");
  ck_assert_ptr_nonnull(file);
  if (turn % 4 == 0) ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
  if (turn % 4 == 1) ck_assert_int_eq(ftruncate(fileno(file), info.st_size / 2), 0);
  if (turn % 4 == 2) { /* one bit, in the middle */
    fseek(file, info.st_size / 2, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, info.st_size / 2, SEEK_SET);
    fputc(byte ^ 1, file);
  }
  if (turn % 4 == 3) { /* a length that is not so */
    fseek(file, 8, SEEK_SET);
    for (int i = 0; i < 8; i++) fputc(0xff, file);
  }
  fclose(file);
}

START_TEST(a_driver_that_keeps_programs_is_left_to_it) {
  if (!has_opencl()) return;
  unsetenv("POCL_KERNEL_CACHE");
  expect_success(start(many_programs));
  int beside = each_entry(NULL);
  setenv("POCL_KERNEL_CACHE", "0", 1);
  expect_success(start(many_programs));
  int alone = each_entry(NULL);
  ck_assert_int_gt(alone, 4);
  ck_assert_msg(beside == 0 || beside == alone, "%d and %d", beside, alone); /* another driver keeps none, ever */
}
END_TEST

START_TEST(corrupt_cache) {
  if (!has_opencl()) return;
  expect_success(start(many_programs));
  ck_assert_int_gt(each_entry(NULL), 4);
  each_entry(spoil);
  expect_success(start(many_programs));
  expect_success(start(many_programs)); /* from what the last one mended */
}
END_TEST

static void replace_by_folder(const char *path, int turn) {
  (void)turn;
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkdir(path, 0700), 0);
}

START_TEST(cache_that_takes_nothing) {
  if (!has_opencl()) return;
  expect_success(start(many_programs));
  each_entry(replace_by_folder); /* nothing can be read there, and nothing renamed to it */
  expect_success(start(many_programs));
}
END_TEST

START_TEST(unwritable_cache) {
  static const char *const places[] = {"/dev/null/cache", "/proc/cache", "relative/cache", "/"};
  if (!has_opencl()) return;
  setenv("GRAFT_CACHE_DIR", places[_i], 1);
  expect_success(start(job));
}
END_TEST

static bool disk_is_full;

/* Stands before libc's, for the plugin too: half of it is written, and then the disk is full. */
GRAFT_EXPORT size_t fwrite(const void *restrict items, size_t size, size_t count, FILE *restrict file) {
  static size_t (*real)(const void *, size_t, size_t, FILE *);
  char link[64], path[PATH_MAX] = "";
  if (!real) {
    void *found = dlsym(RTLD_NEXT, "fwrite");
    memcpy(&real, &found, sizeof real);
  }
  snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file));
  if (!disk_is_full || readlink(link, path, sizeof path - 1) < 0 || strncmp(path, cache, strlen(cache)) != 0) {
    return real(items, size, count, file);
  }
  real(items, 1, size * count / 2, file);
  errno = ENOSPC;
  return 0;
}

static int job_on_full_disk(graft_rt_device *device) {
  disk_is_full = true;
  return many_programs(device);
}

START_TEST(full_cache) {
  if (!has_opencl()) return;
  expect_success(start(job_on_full_disk));
  ck_assert_int_eq(each_entry(NULL), 0); /* no half of a file is left */
  expect_success(start(many_programs));
  ck_assert_int_gt(each_entry(NULL), 0);
}
END_TEST

START_TEST(killed_while_writing) {
  if (!has_opencl()) return;
  char own[96];
  snprintf(own, sizeof own, "%s/pocl", scratch);
  setenv("POCL_CACHE_DIR", own, 1);
  for (int round = 0; round < 8; round++) {
    pid_t child = start(many_programs);
    nanosleep(&(struct timespec){0, 40000000L * (1 + 2 * round)}, NULL);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
  }
  expect_success(start(many_programs));
}
END_TEST

START_TEST(two_processes_with_one_cache) {
  if (!has_opencl()) return;
  for (int round = 0; round < 2; round++) { /* cold, then warm */
    pid_t children[3];
    for (int i = 0; i < 3; i++) children[i] = start(many_programs);
    for (int i = 0; i < 3; i++) expect_success(children[i]);
  }
}
END_TEST

/* --- the program --- */

static char output[16 * 1024];

static int run(const char *environment, const char *arguments) {
  char command[4 * PATH_MAX];
  snprintf(command, sizeof command, "env %s '%s' %s 2>&1", environment, PROGRAM, arguments);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t bytes = fread(output, 1, sizeof output - 1, pipe);
  output[bytes] = 0;
  while (fgetc(pipe) != EOF) continue;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

typedef struct usage {
  const char *environment, *backend, *says;
  const char *needs; /* a file, or NULL */
} usage;

#define POCL          "/etc/OpenCL/vendors/pocl.icd"
#define WITHOUT_CACHE "OCL_ICD_VENDORS=" POCL " POCL_CACHE_DIR=/proc/none"

static const usage usages[] = {
    {"OCL_ICD_VENDORS=/nonexistent", OPENCL, "no OpenCL device found", OPENCL},
    {WITHOUT_CACHE, OPENCL, "no OpenCL device found (of Portable Computing Language): PoCL offers none", POCL},
    {WITHOUT_CACHE, OPENCL, "set POCL_CACHE_DIR to a folder", POCL},
    {"GRAFT_OPENCL_DEVICE=nonesuch", OPENCL, "no OpenCL device matches \"nonesuch\"", OPENCL},
    {"GRAFT_OPENCL_DEVICE=4711", OPENCL, "no OpenCL device matches \"4711\"", OPENCL},
    {"GRAFT_OPENCL_KERNELS=tpu", OPENCL, "kernels for \"tpu\"", OPENCL},
    {"", "nonesuch", "nonesuch", NULL},
    {"", "/tmp/there/is/none.so", "/tmp/there/is/none.so", NULL},
    {"", PROGRAM, "can't be loaded", NULL},
    {"", "/etc/passwd", "/etc/passwd", NULL},
    {"", "broken_no_entry", "does not export", NULL},
    {"", "broken_major", "ABI major 2", NULL},
    {"", "broken_function", "device_open is NULL", NULL},
    {"", "broken_no_device", "no device", NULL},
    {"", "broken_device_open", "the fan is not turning", NULL},
};

START_TEST(the_program_says_it_in_one_line) {
  static const char *const commands[] = {"conformance --op aten.neg -b", "ops --table core -b", "check"};
  const usage *row = &usages[_i];
  if (row->needs && access(row->needs, R_OK) != 0) return;
  for (int i = 0; i < ROWS(commands); i++) {
    char arguments[2 * PATH_MAX];
    bool is_test_plugin = !strncmp(row->backend, "broken", 6);
    snprintf(arguments, sizeof arguments, "%s '%s'", commands[i],
             is_test_plugin ? test_plugin(row->backend) : row->backend);
    int status = run(row->environment, arguments);
    ck_assert_msg(status == 2, "graft %s: exit status %d:\n%s", arguments, status, output);
    if (i == 2) continue; /* check has a report of its own: see test_check.c */
    ck_assert_msg(strstr(output, row->says) != NULL, "graft %s does not say \"%s\":\n%s", arguments, row->says, output);
    const char *line_end = strchr(output, '\n');
    ck_assert_msg(line_end && !line_end[1], "graft %s: more than one line:\n%s", arguments, output);
  }
}
END_TEST

/* PoCL's own cache takes files of so many blocks of 512 bytes, as where a disk is full: not what the compiler reads,
 * then not what it makes of that, where LLVM ends the process. */
typedef struct room {
  int blocks;
  const char *says;
} room;

static const room rooms[] = {{0, "set POCL_CACHE_DIR to a folder that can be written, on a disk with room"},
                             {120, "LLVM ERROR"}};

START_TEST(a_compiler_without_room_ends) {
  if (access(POCL, R_OK) != 0) return;
  char environment[PATH_MAX];
  snprintf(environment, sizeof environment,
           "OCL_ICD_VENDORS=" POCL
           " POCL_CACHE_DIR='%s' timeout -s KILL 60 sh -c 'trap \"\" XFSZ; ulimit -f %d; "
           "exec \"$0\" \"$@\"'",
           scratch, rooms[_i].blocks);
  const int status = run(environment, "case aten.neg.default/f32/33x17/contiguous/uniform/0 -b opencl");
  ck_assert_msg(status == 1, "exit status %d:\n%s", status, output);
  ck_assert_msg(strstr(output, rooms[_i].says) != NULL, "it does not say \"%s\":\n%s", rooms[_i].says, output);
}
END_TEST

/* A plugin that fails in a slot is a red case, or none of its own, and the run goes on to its end. */
static const char *const slot_lies[] = {"slot_crash", "slot_hang",    "slot_garbage",
                                        "slot_fails", "slot_overrun", "slot_input"};

START_TEST(a_bad_slot_is_a_red_case) {
  char environment[64], arguments[2 * PATH_MAX];
  snprintf(environment, sizeof environment, "GRAFT_LIE=%s", slot_lies[_i]);
  snprintf(arguments, sizeof arguments, "conformance -b '%s' --op aten.neg --dtype f32 --jobs 1 --time-limit 2",
           test_plugin("liar"));
  int status = run(environment, arguments);
  ck_assert_msg(status == 1, "%s: exit status %d:\n%s", slot_lies[_i], status, output);
  ck_assert_msg(strstr(output, "aten.neg.default/f32/") != NULL, "%s:\n%s", slot_lies[_i], output);
  status = run("", arguments);
  ck_assert_msg(status == 0, "honest: exit status %d:\n%s", status, output);
}
END_TEST

/* All is right until the process ends: the run says so. */
START_TEST(a_crash_at_exit_is_red) {
  char arguments[2 * PATH_MAX];
  snprintf(arguments, sizeof arguments, "conformance -b '%s' --op aten.neg --dtype f32 --jobs 1", test_plugin("liar"));
  int status = run("GRAFT_LIE=exit_crash", arguments);
  ck_assert_msg(status == 1 && strstr(output, "1 worker process ended badly, after its last case: "),
                "exit status %d:\n%s", status, output);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(a_driver_that_keeps_programs_is_left_to_it),
                              ONCE(corrupt_cache),
                              ONCE(cache_that_takes_nothing),
                              EACH(unwritable_cache, 4),
                              ONCE(full_cache),
                              ONCE(killed_while_writing),
                              ONCE(two_processes_with_one_cache),
                              EACH(the_program_says_it_in_one_line, ROWS(usages)),
                              EACH(a_compiler_without_room_ends, ROWS(rooms)),
                              EACH(a_bad_slot_is_a_red_case, ROWS(slot_lies)),
                              ONCE(a_crash_at_exit_is_red),
                              {0}};
  return run_suite("bad cache", tests,
                   (suite_options){.setup = make_scratch, .teardown = remove_scratch, .timeout_s = 240});
}
