#include "conformance/run/custom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/run/custom_rows.h"
#include "conformance/run/teller.h"
#include "dispatch/custom.h"

enum { TEXT_MOST = 1 << 20 };

/* One op on its way; the texts follow, each with its NUL. */
typedef struct cf_custom_wire {
  uint32_t op_id, roundings, has_reference, has_cases, gradient_has_reference;
  uint32_t plugin_bytes, schema_bytes, cases_bytes;
} cf_custom_wire;

/* ---- the child ---- */

static bool cf_tell_one(FILE *to, const dsp_custom *custom) {
  const char *cases = custom->cases ? custom->cases : "";
  const cf_custom_wire wire = {.op_id = custom->op_id,
                               .roundings = custom->roundings,
                               .has_reference = custom->has_reference,
                               .has_cases = custom->cases != NULL,
                               .gradient_has_reference = custom->gradient_has_reference,
                               .plugin_bytes = (uint32_t)strlen(custom->plugin) + 1,
                               .schema_bytes = (uint32_t)strlen(custom->schema.schema) + 1,
                               .cases_bytes = (uint32_t)strlen(cases) + 1};
  return fwrite(&wire, sizeof wire, 1, to) && fwrite(custom->plugin, wire.plugin_bytes, 1, to) &&
         fwrite(custom->schema.schema, wire.schema_bytes, 1, to) && fwrite(cases, wire.cases_bytes, 1, to);
}

int cf_custom_tell(const cf_options *options) {
  const char *const *plugin_options = options->plugin_option_count ? options->plugin_options : NULL;
  graft_rt_backend *backend = NULL;
  const op_schema *schema;
  FILE *to = cf_teller_open();
  bool ok = to && !graft_backend_open(options->backend, plugin_options, &backend);
  for (uint32_t i = 0; ok && (schema = op_schema_custom(i)); i++) ok = cf_tell_one(to, dsp_custom_of(schema));
  if (to && fclose(to)) ok = false;
  return ok ? 0 : 2;
}

/* ---- the parent ---- */

/* NULL: it does not come, or is none. */
static char *cf_read_text(FILE *from, uint32_t bytes) {
  char *text = bytes && bytes <= TEXT_MOST ? malloc(bytes) : NULL;
  if (text && fread(text, bytes, 1, from) == 1 && !text[bytes - 1]) return text;
  free(text);
  return NULL;
}

static bool cf_take_wire(FILE *from) {
  cf_custom_wire wire;
  if (fread(&wire, sizeof wire, 1, from) != 1) return false;
  char *plugin = cf_read_text(from, wire.plugin_bytes), *schema = cf_read_text(from, wire.schema_bytes);
  char *cases = cf_read_text(from, wire.cases_bytes);
  const dsp_custom_facts facts = {.plugin = plugin,
                                  .schema = schema,
                                  .cases = wire.has_cases ? cases : NULL,
                                  .op_id = wire.op_id,
                                  .roundings = wire.roundings,
                                  .has_reference = wire.has_reference,
                                  .gradient_has_reference = wire.gradient_has_reference};
  bool ok = plugin && schema && cases && dsp_custom_declare(&facts);
  if (ok && !wire.has_reference)
    fprintf(stderr, "graft conformance: %.*s is not tested: the plugin %s gives no reference function for it\n",
            (int)strcspn(schema, "("), schema, plugin);
  free(plugin);
  free(schema);
  free(cases);
  return ok;
}

graft_status cf_custom_fetch(const cf_options *options) {
  pid_t pid = 0;
  bool builtin = strcmp(options->backend, "reference") == 0; /* it has none */
  FILE *from = builtin ? NULL : cf_teller_start(options, "--custom-ops", &pid);
  while (from && cf_take_wire(from)) {
  }
  cf_teller_end(from, pid);
  return cf_custom_take();
}
