/* Which places of the source a process runs. A compiler with -fsanitize-coverage=trace-pc calls the function here at
 * the begin of each basic block; the places are written to a file a process in the folder $GRAFT_REACHED, a line for
 * each name and module: the name, the module's path, offsets of return addresses in it. mutate/reached.py makes lines
 * of source of them. Without that variable nothing is kept. */
#define _GNU_SOURCE
#include "reached.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_MODULES = 64, PATH_BYTES = 512, NAME_BYTES = 128 };

/* The code of the program or of a library, and which bytes of it were returned to since the last name. */
typedef struct module {
  uintptr_t base, from, to;
  _Atomic uint8_t *seen;
  _Atomic uint32_t count;
  uint32_t *offsets; /* room for as many as there are bytes; pages that nobody writes are none */
  char path[PATH_BYTES];
} module;

static module modules[MOST_MODULES];
static atomic_int known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char now[NAME_BYTES];
static const char *folder;

static bool has(const module *m, uintptr_t place) {
  return place >= m->from && place < m->to;
}

static int take_segment(const struct dl_phdr_info *info, const ElfW(Phdr) * part) {
  int at = atomic_load(&known);
  module *m = &modules[at];
  m->base = info->dlpi_addr;
  m->from = m->base + part->p_vaddr;
  m->to = m->from + part->p_memsz;
  for (int i = 0; i < at; i++)
    if (modules[i].from == m->from && modules[i].to == m->to) return 0;
  if (at + 1 == MOST_MODULES) return 1;
  m->seen = calloc(part->p_memsz, 1);
  m->offsets = calloc(part->p_memsz, sizeof *m->offsets);
  if (!m->seen || !m->offsets) return 1;
  ssize_t length = *info->dlpi_name ? (ssize_t)strlen(strncpy(m->path, info->dlpi_name, PATH_BYTES - 1))
                                    : readlink("/proc/self/exe", m->path, PATH_BYTES - 1);
  m->path[length < 0 ? 0 : length] = 0;
  atomic_store(&known, at + 1);
  return 0;
}

static int take_module(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size, (void)context;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && part->p_flags & PF_X && take_segment(info, part)) return 1;
  }
  return 0;
}

static module *module_of(uintptr_t place) {
  static _Thread_local module *last;
  if (last && has(last, place)) return last;
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < atomic_load(&known); i++)
      if (has(&modules[i], place)) return last = &modules[i];
    if (turn) break;
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(take_module, NULL);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

__attribute__((visibility("default"))) void __sanitizer_cov_trace_pc(void) {
  if (!folder) return;
  const uintptr_t place = (uintptr_t)__builtin_return_address(0);
  module *m = module_of(place);
  if (!m) return;
  const uintptr_t at = place - m->from;
  if (atomic_load_explicit(&m->seen[at], memory_order_relaxed) || atomic_exchange(&m->seen[at], 1)) return;
  m->offsets[atomic_fetch_add(&m->count, 1)] = (uint32_t)at;
}

/* Other threads may go on meanwhile: what they run falls to this name or to the next. */
static void write_down(void) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
  FILE *file = fopen(path, "a");
  if (!file) return;
  for (int i = 0; i < atomic_load(&known); i++) {
    module *m = &modules[i];
    const uint32_t count = atomic_exchange(&m->count, 0);
    if (count) fprintf(file, "%s\t%s\t", now, m->path);
    for (uint32_t k = 0; k < count; k++) {
      fprintf(file, "%s%lx", k ? " " : "", (unsigned long)(m->from - m->base + m->offsets[k]));
      atomic_store(&m->seen[m->offsets[k]], 0);
    }
    if (count) fputc('\n', file);
  }
  fclose(file);
}

void reached_begin(const char *name) {
  if (!folder || strcmp(now, name) == 0) return;
  pthread_mutex_lock(&lock);
  write_down();
  snprintf(now, sizeof now, "%s", name);
  pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void) {
  folder = getenv("GRAFT_REACHED");
}

__attribute__((destructor)) static void end(void) {
  if (folder) write_down();
}
