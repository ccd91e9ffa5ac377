#include <string.h>

#include "conformance/conformance.h"

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "case")) return cf_main_case(argc - 1, argv + 1);
  return cf_main_conformance(argc - 1, argv + 1);
}
