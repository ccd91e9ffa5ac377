/* What is run from now on is of `name`. */
#ifndef GRAFT_TESTS_REACHED_H
#define GRAFT_TESTS_REACHED_H

__attribute__((visibility("default"))) void reached_begin(const char *name);

#endif
