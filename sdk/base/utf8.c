#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* The bytes of the well-formed character at `text`, 0 if there is none. */
static size_t character_bytes(const unsigned char *text) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (text[0] < 0x80) return text[0] >= 0x20 && text[0] != 0x7f ? 1 : text[0] == '\n' || text[0] == '\t';
  size_t bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : text[0] >= 0xc0 ? 2 : 0;
  if (!bytes || text[0] >= 0xf8) return 0;
  uint32_t code = text[0] & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0; /* also stops at the NUL */
    code = code << 6 | (text[i] & 0x3fu);
  }
  if (code < least[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  return bytes;
}

void utf8_copy(char *to, size_t capacity, const char *from) {
  size_t used = 0;
  while (*from) {
    size_t bytes = character_bytes((const unsigned char *)from);
    size_t step = bytes ? bytes : 1;
    if (used + step >= capacity) break;
    if (bytes) {
      memcpy(to + used, from, bytes);
    } else {
      to[used] = '?';
    }
    used += step;
    from += step;
  }
  if (capacity) to[used] = 0;
}
