/* graft new: a plugin project that builds, loads and passes its checks at once. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "ops/core/schema.h"
#include "template.h"

enum { PARTS = 2 };
/* What a project may have beside the rest: an option and, in the template, a mark. */
static const char *const parts[PARTS] = {"graph", "capture"};

typedef struct options {
  const char *name, *folder;
  bool wanted[PARTS]; /* as they stand in `parts` */
} options;

enum { KEY_PART = 256 };
static const struct argp_option rows[] = {
    {"graph", KEY_PART, NULL, 0, "With extension graft.graph: chains of its ops become one program", 0},
    {"capture", KEY_PART + 1, NULL, 0, "With extension graft.capture: work is recorded and launched again", 0},
    {0}};

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  if (key >= KEY_PART && key < KEY_PART + PARTS) {
    o->wanted[key - KEY_PART] = true;
    return 0;
  }
  if (key == ARGP_KEY_END && !o->name) argp_usage(state);
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if (state->arg_num == 0)
    o->name = argument;
  else if (state->arg_num == 1)
    o->folder = argument;
  else
    argp_usage(state);
  return 0;
}

/* A name that may stand in C, in file names and in a manifest. */
static bool good_name(const char *name) {
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
  return *name >= 'a' && *name <= 'z' && !name[length] && length < 40;
}

/* The library is a target of this name, and CMake keeps these for its own. */
static bool is_cmakes(const char *name) {
  static const char *const targets[] = {"all",     "clean",          "codegen",    "edit_cache",    "help", "install",
                                        "package", "package_source", "preinstall", "rebuild_cache", "test"};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    if (!strcmp(name, targets[i])) return true;
  }
  return false;
}

/* Two backends of one name: discovery takes the first and refuses the other. NULL: it is free; else where it is. */
static const char *taken_by(const char *name) {
  const graft_backend_info *const *infos;
  size_t count;
  if (graft_backends(&infos, &count)) return NULL;
  for (size_t i = 0; i < count; i++) {
    if (!strcmp(infos[i]->name, name)) return infos[i]->manifest ? infos[i]->manifest : "libgraft itself";
  }
  return NULL;
}

/* --- the template ---
 * @NAME@ is the project's name. A line that ends in "// @PART" is left out where that part is not wanted; in the place
 * of a line "// @PART: FILE" that file comes where it is. */

static void write_named(FILE *file, const char *text, size_t length, const char *name) {
  static const char mark[] = "@NAME@";
  const char *end = text + length;
  for (const char *at; (at = memmem(text, (size_t)(end - text), mark, sizeof mark - 1)); text = at + sizeof mark - 1) {
    fwrite(text, 1, (size_t)(at - text), file);
    fputs(name, file);
  }
  fwrite(text, 1, (size_t)(end - text), file);
}

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && !memcmp(text, word, length);
}

/* Whether the part that is called so is wanted. What is no part's name is a mistake in the template. */
static bool is_wanted(const options *o, const char *text, size_t length) {
  for (size_t i = 0; i < PARTS; i++) {
    if (is_word(text, length, parts[i])) return o->wanted[i];
  }
  fprintf(stderr, "graft new: the template has a part '%.*s', which no option asks for\n", (int)length, text);
  abort();
}

static const char *text_of(const char *name, size_t length) {
  for (const cli_template_file *file = cli_template; file->name; file++) {
    if (is_word(name, length, file->name)) return file->text;
  }
  fprintf(stderr, "graft new: the template has no file '%.*s'\n", (int)length, name);
  abort();
}

static bool is_part(const char *name) {
  return !strncmp(name, "part_", strlen("part_"));
}

static void write_text(FILE *file, const char *text, const options *o);

/* One line, without its end. */
static void write_line(FILE *file, const char *line, size_t length, const options *o) {
  static const char mark[] = "// @", insert[] = ": ";
  const char *at = memmem(line, length, mark, strlen(mark)), *end = line + length;
  if (at) {
    const char *part = at + strlen(mark), *name = memmem(part, (size_t)(end - part), insert, strlen(insert));
    if (!is_wanted(o, part, (size_t)((name ? name : end) - part))) return;
    if (name) {
      name += strlen(insert);
      write_text(file, text_of(name, (size_t)(end - name)), o);
      return;
    }
    while (at > line && at[-1] == ' ') at--;
    end = at;
  }
  write_named(file, line, (size_t)(end - line), o->name);
  fputc('\n', file);
}

static void write_text(FILE *file, const char *text, const options *o) {
  while (*text) {
    const size_t length = strcspn(text, "\n");
    write_line(file, text, length, o);
    text += length + (text[length] == '\n');
  }
}

/* Where a file of the template goes: two have names of their own. */
static void place(const char *file, const options *o, char *path, size_t room) {
  if (!strcmp(file, "manifest.graft.json")) {
    snprintf(path, room, "%s/%s.graft.json", o->folder, o->name);
  } else if (!strcmp(file, "ci.yml")) {
    snprintf(path, room, "%s/.github/workflows/ci.yml", o->folder);
  } else {
    snprintf(path, room, "%s/%s", o->folder, file);
  }
}

static const char *const folders[] = {"", "/.github", "/.github/workflows"};
enum { FOLDERS = sizeof folders / sizeof *folders };

/* Returns how many were made: all of them, unless it says why not. */
static size_t make_folders(const char *folder) {
  for (size_t i = 0; i < FOLDERS; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", folder, folders[i]);
    if (mkdir(path, 0777)) {
      fprintf(stderr, "graft new: can't make the folder %s: %s\n", path, strerror(errno));
      return i;
    }
  }
  return FOLDERS;
}

/* Half a project is none, and would stand in the way of the next try: what was made goes. */
static void remove_project(const options *o, size_t made) {
  char path[4200];
  for (const cli_template_file *file = cli_template; made && file->name; file++) {
    if (is_part(file->name)) continue;
    place(file->name, o, path, sizeof path);
    remove(path);
  }
  while (made--) {
    snprintf(path, sizeof path, "%s%s", o->folder, folders[made]);
    rmdir(path);
  }
}

static bool write_file(const cli_template_file *file, const options *o) {
  if (is_part(file->name)) return true;
  char path[4200];
  place(file->name, o, path, sizeof path);
  FILE *out = fopen(path, "w");
  if (out) write_text(out, file->text, o);
  bool good = out && !ferror(out);
  if (out && fclose(out)) good = false;
  if (!good) fprintf(stderr, "graft new: can't write %s: %s\n", path, strerror(errno));
  return good;
}

int cli_new(int argc, char **argv) {
  static const struct argp argp = {
      rows,
      parse,
      "NAME [DIR]",
      "Writes a plugin project into DIR (default: ./NAME), a folder that must not exist yet: a "
      "plugin with three ops that builds, loads and passes `graft check` at once.",
      NULL,
      NULL,
      NULL};
  options o = {.name = NULL};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  if (!good_name(o.name)) {
    fprintf(stderr,
            "graft new: the name '%s' can't be used; expected up to 39 lower-case letters, digits "
            "and _, such as my_chip\n",
            o.name);
    return CLI_USAGE;
  }
  if (is_cmakes(o.name)) {
    fprintf(stderr, "graft new: CMake has a target called '%s'; take another name\n", o.name);
    return CLI_USAGE;
  }
  if (op_is_own_namespace(o.name)) {
    fprintf(stderr, "graft new: ops of PyTorch's or Graft's own stand in the namespace '%s'; take another name\n",
            o.name);
    return CLI_USAGE;
  }
  const char *taken = taken_by(o.name);
  if (taken) {
    fprintf(stderr, "graft new: a backend is called '%s' already, from %s; take another name\n", o.name, taken);
    return CLI_USAGE;
  }
  if (!o.folder) o.folder = o.name;
  struct stat there;
  if (!stat(o.folder, &there)) {
    fprintf(stderr, "graft new: %s is there already; name another folder\n", o.folder);
    return CLI_USAGE;
  }
  size_t made = make_folders(o.folder);
  bool whole = made == FOLDERS;
  for (const cli_template_file *file = cli_template; whole && file->name; file++) whole = write_file(file, &o);
  if (!whole) {
    remove_project(&o, made);
    return CLI_FAILED;
  }
  printf(
      "%s is a plugin project now, in the folder %s. Next:\n"
      "  cmake -S %s -B %s/build && cmake --build %s/build\n"
      "  graft check %s/build/%s.so\n"
      "README.md there says how to go on.\n",
      o.name, o.folder, o.folder, o.folder, o.folder, o.folder, o.name);
  return CLI_OK;
}
