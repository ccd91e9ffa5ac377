/* Texts of their own. */
#ifndef GRAFT_SDK_STR_H
#define GRAFT_SDK_STR_H

/* A malloc'ed text, or NULL; asprintf that can't half fail. */
__attribute__((format(printf, 1, 2))) char *str_new(const char *format, ...);

#endif
