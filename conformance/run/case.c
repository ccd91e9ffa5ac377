#include "conformance/run/case.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"

/* ---- names ---- */

static const char *const cf_layout_names[] = {"contiguous",    "transposed", "sliced",  "offset",       "expanded",
                                              "channels_last", "out",        "inplace", "deterministic"};
static const char *const cf_fill_names[] = {"uniform", "integers", "exponents", "special"};
static const char *const cf_mode_names[] = {"forward", "vjp",        "vjp_zero",    "vjp_expanded",
                                            "adjoint", "range_past", "range_below", "range_far"};
static const char *const cf_level_names[] = {"smoke", "mustpass", "full"};

const char *cf_layout_name(int layout) {
  return cf_layout_names[layout];
}
const char *cf_fill_name(int fill) {
  return cf_fill_names[fill];
}
const char *cf_mode_name(int mode) {
  return cf_mode_names[mode];
}

int cf_level_parse(const char *name) {
  for (int i = 0; i < 3; i++)
    if (strcmp(name, cf_level_names[i]) == 0) return i;
  return -1;
}

/* ---- ids ---- */

static bool cf_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static void cf_put(char **to, char *end, const char *text, size_t n) {
  for (size_t i = 0; i < n && *to < end; i++) *(*to)++ = text[i];
}

/* Row text to something that a shell takes without quotes: T[33,17] 1 alpha=2 [1,2] -> 33x17,=1,alpha=2,=1+2 */
static void cf_id_args(const char *text, char *to, size_t capacity) {
  char *end = to + capacity - 1;
  bool start = true;
  while (*text) {
    size_t word = 0;
    while (cf_word(text[word])) word++;
    if (*text == ' ') {
      cf_put(&to, end, ",", 1), text++, start = true;
      continue;
    }
    if (start && !word) cf_put(&to, end, "=", *text != '{' && *text != '_');
    if (start && word && text[word] != '[' && text[word] != '=' && *text != '_') cf_put(&to, end, "=", 1);
    start = false;
    if (word && text[word] == '[') { /* a tensor */
      if (word != 1 || *text != 'T') cf_put(&to, end, text, word), cf_put(&to, end, ".", 1);
      text += word + 1;
      size_t n = strcspn(text, "]");
      if (n == 0) cf_put(&to, end, "r0", 2);
      for (size_t i = 0; i < n; i++) cf_put(&to, end, text[i] == ',' ? "x" : &text[i], 1);
      text += n + 1;
      continue;
    }
    if (word) {
      cf_put(&to, end, text, word), text += word;
      continue;
    }
    static const char from[] = ",;:@<!", into[] = "++sodu";
    const char *map = strchr(from, *text);
    bool drop = strchr("[]{}'", *text) != NULL;
    if (!drop) cf_put(&to, end, map ? &into[map - from] : text, 1);
    text++;
  }
  *to = 0;
}

bool cf_case_id(const cf_case *c, char id[CF_ID_BYTES]) {
  cf_call call;
  if (!cf_call_open(c, &call)) return false;
  cf_call_close(&call);
  char args[160], name[96];
  cf_id_args(cf_case_text(c), args, sizeof args);
  snprintf(name, sizeof name, "%s", op_schema_of(c->op_id)->name);
  char *colons = strstr(name, "::");
  if (colons) *colons = '.', memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
  const char *overload = colons && !strchr(colons + 1, '.') ? ".default" : "";
  snprintf(id, CF_ID_BYTES, "%s%s/%s/%s/%s/%s/%u%s%s", name, overload, graft_dtype_name(c->dtype),
           args[0] ? args : "none", cf_layout_name(c->layout), cf_fill_name(c->fill), c->variant,
           c->mode == CF_FORWARD ? "" : "/", c->mode == CF_FORWARD ? "" : cf_mode_name(c->mode));
  return true;
}
