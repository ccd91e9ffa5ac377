#include "conformance/run/case.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "dispatch/dispatch.h"

/* ---- names ---- */

/* A word of an id. */
typedef struct cf_named {
  const char *word, *meaning;
} cf_named;

static const cf_named cf_layouts[CF_LAYOUTS] = {
    [CF_CONTIGUOUS] = {"contiguous", "as a fresh tensor: rows one after the other, without gaps"},
    [CF_TRANSPOSED] = {"transposed", "the last two dims swapped in memory"},
    [CF_SLICED] = {"sliced", "with gaps between elements"},
    [CF_OFFSET] = {"offset", "begins three elements into its memory, off alignment"},
    [CF_EXPANDED] = {"expanded", "stride 0 in the first dim that is larger than 1"},
    [CF_CHANNELS_LAST] = {"channels_last", "rank 4, the channels innermost in memory"},
    [CF_OUT] = {"out", "written into a given output, which has gaps and an offset"},
    [CF_IN_PLACE] = {"inplace", "the first tensor is the output, too"},
    [CF_DETERMINISTIC] = {"deterministic", "determinism is asked for: three runs give the same bits"},
    [CF_TF32] = {"tf32", "matrix products of f32 may round their factors to 11 bits"},
};

static const cf_named cf_fills[CF_FILLS] = {
    [CF_UNIFORM] = {"uniform", "values of ordinary size, within what the op takes"},
    [CF_INTEGERS] = {"integers", "small whole numbers, so that sums are exact"},
    [CF_EXPONENTS] = {"exponents", "values of all sizes that the dtype has"},
    [CF_SPECIALS] = {"special", "NaN, infinities, zeros of both signs and denormals among the values"},
};

static const cf_named cf_modes[CF_MODES] = {
    [CF_FORWARD] = {"forward", "the op itself; an id does not say it"},
    [CF_VJP] = {"vjp", "the gradient, of a random cotangent (what comes in from behind the op)"},
    [CF_VJP_ZERO] = {"vjp_zero", "the gradient of a cotangent of zeros: it is zero"},
    [CF_VJP_EXPANDED] = {"vjp_expanded",
                         "the gradient of a cotangent of one number with strides of 0, as that of a sum is"},
    [CF_ADJOINT] = {"adjoint", "the oracle's own gradient, held against differences of the oracle; runs no plugin"},
    [CF_GROUPED] =
        {"grouped",
         "the op itself, in a graph between negations that cancel out, where the plugin compiles it together "
         "with these (extension `graft.graph`); else the case is passed over"},
    [CF_RANGE_PAST] = {"range_past", "one index lies just past what it addresses and has to be refused"},
    [CF_RANGE_BELOW] = {"range_below", "one index lies just below it"},
    [CF_RANGE_FAR] = {"range_far", "one index lies so far away that its lower 32 bits are a right one"},
};

/* By dsp_route; behind the mode. */
static const cf_named cf_ways[] = {
    {"equal", "made to go by the slot of an equal op"},
    {"decomposition", "made to go by the op's decomposition, whatever slots there are"},
    {"reference", "made to go by the reference kernel, in host memory"},
};

static const char *const cf_level_names[] = {"smoke", "mustpass", "full"};

const char *cf_layout_name(int layout) {
  return cf_layouts[layout].word;
}
const char *cf_fill_name(int fill) {
  return cf_fills[fill].word;
}
const char *cf_mode_name(int mode) {
  return cf_modes[mode].word;
}

const char *cf_level_name(int level) {
  return cf_level_names[level];
}

static void cf_print_part(const char *part, const cf_named *words, int count) {
  for (int i = 0; i < count; i++) printf("%s\t%s\t%s\n", part, words[i].word, words[i].meaning);
}

void cf_print_words(void) {
  cf_print_part("layout", cf_layouts, CF_LAYOUTS);
  cf_print_part("fill", cf_fills, CF_FILLS);
  cf_print_part("mode", cf_modes, CF_MODES);
  cf_print_part("way", cf_ways, sizeof cf_ways / sizeof *cf_ways);
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
    static const char from[] = ",;:@<!?", into[] = "++soduq";
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
  const char *way = c->way == DSP_ROUTE_NONE ? "" : dsp_route_name((dsp_route)c->way);
  snprintf(id, CF_ID_BYTES, "%s%s/%s/%s/%s/%s/%u%s%s%s%s", name, overload, graft_dtype_name(c->dtype),
           args[0] ? args : "none", cf_layout_name(c->layout), cf_fill_name(c->fill), c->variant,
           c->mode == CF_FORWARD ? "" : "/", c->mode == CF_FORWARD ? "" : cf_mode_name(c->mode), *way ? "/" : "", way);
  return true;
}
