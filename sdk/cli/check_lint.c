/* The file and its manifest: what can be said of a plugin before any of its code runs. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "check_manifest.h"

/* --- the file --- */

typedef struct image {
  unsigned char *bytes;
  size_t count;
} image;

static image read_image(ck_session *session) {
  const char *path = session->target->path;
  if (!path) ck_skip("the reference plugin is built in");
  ck_doing("reading %s", path);
  FILE *file = fopen(path, "rb");
  if (!file) ck_fail("%s", strerror(errno));
  image made = {0};
  long end = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
  if (end < 0) ck_fail("it can't be read");
  rewind(file);
  made.bytes = ck_alloc((size_t)end);
  made.count = fread(made.bytes, 1, (size_t)end, file);
  fclose(file);
  ck_doing("the file");
  return made;
}

/* A range of the file, checked: what stands in headers may be rubbish. */
static const void *part(const image *file, uint64_t offset, uint64_t bytes) {
  if (offset > file->count || bytes > file->count - offset) ck_fail("its headers point beyond its end");
  return file->bytes + offset;
}

static Elf64_Ehdr elf_header(const image *file) {
  Elf64_Ehdr head;
  if (file->count < sizeof head || memcmp(file->bytes, ELFMAG, SELFMAG)) ck_fail("it is not an ELF file");
  memcpy(&head, file->bytes, sizeof head);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB) {
    ck_fail("it is not a 64-bit little-endian ELF file");
  }
  return head;
}

static void check_elf(ck_session *session) {
  image file = read_image(session), own;
  Elf64_Ehdr head = elf_header(&file);
  if (head.e_type != ET_DYN) ck_fail("its ELF type is %u, expected a shared library (link with -shared)", head.e_type);
  FILE *self = fopen("/proc/self/exe", "rb");
  Elf64_Ehdr mine;
  own = (image){(unsigned char *)&mine, self ? fread(&mine, 1, sizeof mine, self) : 0};
  if (self) fclose(self);
  if (own.count == sizeof mine && mine.e_machine != head.e_machine) {
    ck_fail("it is built for ELF machine %u and this program for %u", head.e_machine, mine.e_machine);
  }
}

/* Calls visit for each dynamic symbol. */
static void each_symbol(const image *file, void (*visit)(const Elf64_Sym *symbol, const char *name, char *list),
                        char *list) {
  Elf64_Ehdr head = elf_header(file);
  for (unsigned i = 0; i < head.e_shnum; i++) {
    Elf64_Shdr section, names;
    memcpy(&section, part(file, head.e_shoff + i * sizeof section, sizeof section), sizeof section);
    if (section.sh_type != SHT_DYNSYM) continue;
    memcpy(&names, part(file, head.e_shoff + section.sh_link * sizeof names, sizeof names), sizeof names);
    const char *text = part(file, names.sh_offset, names.sh_size);
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      memcpy(&symbol, part(file, section.sh_offset + at, sizeof symbol), sizeof symbol);
      if (symbol.st_name >= names.sh_size || !memchr(text + symbol.st_name, 0, names.sh_size - symbol.st_name)) {
        ck_fail("its symbol table is damaged");
      }
      visit(&symbol, text + symbol.st_name, list);
    }
    return;
  }
  ck_fail("it has no table of dynamic symbols");
}

enum { LIST_BYTES = 512 };

static void add_name(char *list, const char *name) {
  size_t used = strlen(list);
  snprintf(list + used, LIST_BYTES - used, "%s%s", used ? ", " : "", name);
}

static bool starts_with(const char *text, const char *start) {
  return !strncmp(text, start, strlen(start));
}

/* What linkers and sanitizers put there by themselves. */
static bool is_toolchains(const char *name) {
  static const char *const names[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!strcmp(name, names[i])) return true;
  }
  return starts_with(name, "__asan_") || starts_with(name, "__odr_asan") || starts_with(name, "__start_") ||
         starts_with(name, "__stop_") || starts_with(name, "__gcov");
}

static bool has_name(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); at += length) {
    bool begins = at == list || at[-1] == ' ', ends = !at[length] || at[length] == ',';
    if (begins && ends) return true;
  }
  return false;
}

static void visit_export(const Elf64_Sym *symbol, const char *name, char *list) {
  unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
  if (ELF64_ST_BIND(symbol->st_info) == STB_LOCAL || symbol->st_shndx == SHN_UNDEF) return;
  if (visibility == STV_HIDDEN || visibility == STV_INTERNAL || is_toolchains(name)) return;
  if (symbol->st_shndx == SHN_ABS && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT) return; /* a version's name */
  add_name(list, name);
}

static void check_exports(ck_session *session) {
  image file = read_image(session);
  char list[LIST_BYTES] = "";
  each_symbol(&file, visit_export, list);
  if (!strcmp(list, GRAFT_PLUGIN_ENTRY)) return;
  if (!has_name(list, GRAFT_PLUGIN_ENTRY))
    ck_fail("it exports %s; export " GRAFT_PLUGIN_ENTRY ", and it alone", *list ? list : "nothing");
  ck_fail("it exports %s; hide the rest with a version script or -fvisibility=hidden", list);
}

static void visit_import(const Elf64_Sym *symbol, const char *name, char *list) {
  if (symbol->st_shndx == SHN_UNDEF && starts_with(name, "graft_")) add_name(list, name);
}

static void check_imports(ck_session *session) {
  image file = read_image(session);
  char list[LIST_BYTES] = "";
  each_symbol(&file, visit_import, list);
  if (*list) ck_fail("it needs %s from outside; the host hands its functions in", list);
}

/* --- the manifest --- */

static bool leads_here(const plg_manifest *manifest, const char *path) {
  return manifest->library && !strcmp(manifest->library, path);
}

/* The manifest of this library among those beside it, or the one that bears its name. */
static bool find_manifest(const char *path, plg_manifest *manifest) {
  char copy[PATH_MAX], file[2 * PATH_MAX], stem[NAME_MAX];
  snprintf(copy, sizeof copy, "%s", path);
  const char *base = strrchr(path, '/') + 1;
  if (starts_with(base, "lib")) base += 3;
  snprintf(stem, sizeof stem, "%.*s.graft.json", (int)strcspn(base, "."), base);
  const char *folder = dirname(copy);
  DIR *listing = opendir(folder);
  for (const struct dirent *entry; listing && (entry = readdir(listing));) {
    const char *dot = strstr(entry->d_name, ".graft.json");
    if (!dot || strcmp(dot, ".graft.json")) continue;
    snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
    plg_manifest_read(file, plg_origin_of(file), manifest);
    if (leads_here(manifest, path) || !strcmp(entry->d_name, stem)) {
      closedir(listing);
      return true;
    }
    plg_manifest_free(manifest);
  }
  if (listing) closedir(listing);
  return false;
}

bool ck_manifest(const ck_target *target, plg_manifest *manifest) {
  if (!target->path) return false;
  if (!target->manifest) return find_manifest(target->path, manifest);
  plg_manifest_read(target->manifest, plg_origin_of(target->manifest), manifest);
  return true;
}

static void check_manifest(ck_session *session) {
  plg_manifest manifest = {0};
  if (!session->target->path) ck_skip("the reference plugin is built in");
  if (!ck_manifest(session->target, &manifest)) {
    ck_skip("no *.graft.json beside the library leads to it; discovery needs one");
  }
  ck_doing("%s", manifest.path);
  if (manifest.problem) ck_fail("%s", manifest.problem);
  if (!leads_here(&manifest, session->target->path)) ck_fail("it leads to %s", manifest.library);
}

/* What a template leaves to the vendor. A plugin works without, so it is no fault. */
static void check_filled_in(ck_session *session) {
  static const char untouched[] = "you"; /* as `graft new` writes it */
  plg_manifest manifest = {0};
  if (!session->target->path) ck_skip("the reference plugin is built in");
  if (!ck_manifest(session->target, &manifest)) ck_skip("it has no manifest");
  bool vendor = manifest.vendor && *manifest.vendor && strcmp(manifest.vendor, untouched) != 0;
  bool licence = manifest.licence && *manifest.licence;
  if (vendor && licence) return;
  ck_skip("%s: fill in %s%s%s before you pass the plugin on", manifest.path, vendor ? "" : "\"vendor\"",
          vendor || licence ? "" : " and ", licence ? "" : "\"licence\"");
}

static const ck_check checks[] = {
    {"lint.elf", "A plugin is a 64-bit shared library for this machine.", CK_FILE, .run = check_elf},
    {"lint.exports", "A plugin exports graft_plugin_open_v1 and nothing else.", CK_FILE, .run = check_exports},
    {"lint.imports", "A plugin imports no symbol of the host, which hands its functions in.", CK_FILE,
     .run = check_imports},
    {"lint.manifest", "NAME.graft.json beside the library is valid, leads to it, and is one that discovery takes.",
     CK_FILE, .run = check_manifest},
    {"lint.filled_in", "The manifest says whose plugin it is and under what licence.", CK_FILE, .run = check_filled_in},
};

const ck_table ck_lint_checks = {checks, sizeof checks / sizeof *checks};
