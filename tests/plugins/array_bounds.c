/* Stands between PoCL and clang (LD_PRELOAD), and has kernels trap where an index lies outside of an array of their
 * own, in private or local memory: what is read or written there changes no result on a processor, where other
 * variables lie. The worker dies of it, and the suite says of which case. For kernels for CPUs: around barriers PoCL
 * makes wrong code of it. What PoCL has kept (POCL_CACHE_DIR) stays as it was compiled, and a driver that has another
 * compiler, or has clang in itself, is left as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
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

/* Of that clang which PoCL has been linked to: another driver in this process may have one of another version. */
static create_fn *clangs(void *caller) {
  Dl_info pocl;
  create_fn *found = NULL;
  void *library = dladdr(caller, &pocl) ? dlopen(pocl.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
  if (library) *(void **)&found = dlsym(library, CREATE);
  if (found && found != create) return found;
  fprintf(stderr, "array_bounds: clang is not found behind what compiles kernels\n");
  abort();
}

bool create(void *invocation, words arguments, void *diagnostics, const char *program) {
  static const char *const added[] = {"-fsanitize=array-bounds", "-fsanitize-trap=array-bounds"};
  enum { ADDED = sizeof added / sizeof *added };
  create_fn *next = clangs(__builtin_return_address(0));
  const char **all = malloc((arguments.count + ADDED) * sizeof *all);
  if (!all) abort();
  memcpy(all, arguments.items, arguments.count * sizeof *all);
  memcpy(all + arguments.count, added, sizeof added);
  const bool good = next(invocation, (words){all, arguments.count + ADDED}, diagnostics, program);
  free(all);
  return good;
}
