/* Stands between PoCL and clang (LD_PRELOAD), and has kernels trap where an index lies outside of an array of their
 * own, in private or local memory: what is read or written there changes no result on a processor, where other
 * variables lie. The worker dies of it, and the suite says of which case. For kernels for CPUs: around barriers PoCL
 * makes wrong code of it. What PoCL has kept (POCL_CACHE_DIR) stays as it was compiled, and a driver that has another
 * compiler, or has clang in itself, is left as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct words { /* llvm::ArrayRef<const char *> */
  const char **items;
  size_t count;
} words;
typedef bool create_fn(void *invocation, words arguments, void *diagnostics, const char *program);

#define CREATE "_ZN5clang18CompilerInvocation14CreateFromArgsERS0_N4llvm8ArrayRefIPKcEERNS_17DiagnosticsEngineES5_"

/* clang::CompilerInvocation::CreateFromArgs(invocation, arguments, diagnostics, program) */
create_fn create __asm__(CREATE) __attribute__((visibility("default")));

/* The loader of OpenCL loads PoCL for itself: in the order of libraries no clang follows this one. */
static int find_clang(struct dl_phdr_info *info, size_t size, void *path) {
  (void)size;
  if (!strstr(info->dlpi_name, "libclang-cpp.so")) return 0;
  *(const char **)path = info->dlpi_name;
  return 1;
}

static create_fn *clangs(void) {
  const char *path = NULL;
  create_fn *found = NULL;
  if (dl_iterate_phdr(find_clang, &path)) *(void **)&found = dlsym(dlopen(path, RTLD_LAZY | RTLD_NOLOAD), CREATE);
  return found;
}

bool create(void *invocation, words arguments, void *diagnostics, const char *program) {
  static const char *const added[] = {"-fsanitize=array-bounds", "-fsanitize-trap=array-bounds"};
  enum { ADDED = sizeof added / sizeof *added };
  const char **all = malloc((arguments.count + ADDED) * sizeof *all);
  memcpy(all, arguments.items, arguments.count * sizeof *all);
  memcpy(all + arguments.count, added, sizeof added);
  const bool good = clangs()(invocation, (words){all, arguments.count + ADDED}, diagnostics, program);
  free(all);
  return good;
}
