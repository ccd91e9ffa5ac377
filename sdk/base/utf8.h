/* Text that comes from outside. */
#ifndef GRAFT_SDK_UTF8_H
#define GRAFT_SDK_UTF8_H

#include <stddef.h>

/* Copies text as valid UTF-8, cut between characters to fit `capacity` with its NUL. Bytes that are not UTF-8 and
 * control characters but tab and newline become '?': the text ends on terminals and in reports. */
void utf8_copy(char *to, size_t capacity, const char *from);

#endif
