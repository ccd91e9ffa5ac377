/* What was meant, where a glob over the names of ops matches none. */
#include <stdio.h>
#include <string.h>

#include "conformance/run/menu.h"
#include "ops/core/op.h"

enum { NAME_BYTES = 96, NEAR_MOST = 3, NEAR_DISTANCE = 3 };

/* "aten::relu" and "aten.relu.default", without the stars of a glob, to "aten.relu". */
static void plain_name(const char *name, char plain[NAME_BYTES]) {
  static const char suffix[] = ".default";
  size_t used = 0;
  for (; *name && used + 1 < NAME_BYTES; name++) {
    if (strchr("*?[]", *name)) continue;
    if (name[0] == ':' && name[1] == ':') name++;
    plain[used++] = *name == ':' ? '.' : *name;
  }
  plain[used] = 0;
  if (used > sizeof suffix - 1 && strcmp(plain + used - (sizeof suffix - 1), suffix) == 0)
    plain[used - (sizeof suffix - 1)] = 0;
}

/* How many letters must be changed, put in or left out to make one name of the other. */
static size_t distance(const char *a, const char *b) {
  size_t row[NAME_BYTES], length = strlen(b);
  for (size_t j = 0; j <= length; j++) row[j] = j;
  for (size_t i = 1; *a; a++, i++) {
    size_t before = row[0]; /* of the row above, one to the left */
    row[0] = i;
    for (size_t j = 1; j <= length; j++) {
      size_t change = before + (*a != b[j - 1]), least = row[j] < row[j - 1] ? row[j] : row[j - 1];
      before = row[j];
      row[j] = change < least + 1 ? change : least + 1;
    }
  }
  return row[length];
}

static size_t lesser(size_t a, size_t b) {
  return a < b ? a : b;
}

/* How far a name is from what was asked, which may leave out the table ("aten.") or the overload (".Tensor");
 * NEAR_DISTANCE + 1: too far. A name that what was asked is a part of is near, too. */
static size_t far_from(const char *asked, const char *name) {
  char base[NAME_BYTES];
  const char *local = strchr(name, '.') + 1;
  snprintf(base, sizeof base, "%.*s", (int)((size_t)(local - name) + strcspn(local, ".")), name);
  size_t whole = lesser(distance(asked, name), distance(asked, local));
  size_t apart = lesser(whole, lesser(distance(asked, base), distance(asked, base + (local - name))));
  if (apart <= NEAR_DISTANCE && apart * 3 <= strlen(asked)) return apart;
  return strlen(asked) > 2 && strstr(name, asked) ? NEAR_DISTANCE : NEAR_DISTANCE + 1;
}

size_t cf_near_ops(const char *glob, char *text, size_t room) {
  const char *names[NEAR_MOST];
  size_t apart[NEAR_MOST], count = 0, all_count;
  char asked[NAME_BYTES], name[NAME_BYTES];
  const op_schema *all = op_schema_all(&all_count);
  plain_name(glob, asked);
  for (size_t i = 0; i < all_count; i++) {
    if (!op_def_of(all[i].id)) continue;
    plain_name(all[i].name, name);
    size_t d = far_from(asked, name), at = count < NEAR_MOST ? count++ : NEAR_MOST;
    for (; at > 0 && apart[at - 1] > d; at--) {
      if (at < NEAR_MOST) apart[at] = apart[at - 1], names[at] = names[at - 1];
    }
    if (at < NEAR_MOST) apart[at] = d, names[at] = all[i].name;
  }
  size_t near = 0, used = 0;
  text[0] = 0;
  for (; near < count && apart[near] <= NEAR_DISTANCE; near++) {
    plain_name(names[near], name);
    int more = snprintf(text + used, room - used, "%s%s", near ? ", " : "", name);
    if (more < 0 || used + (size_t)more >= room) break;
    used += (size_t)more;
  }
  return near;
}
