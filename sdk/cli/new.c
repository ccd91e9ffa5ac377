#include "cli.h"
int cli_new(int argc, char **argv) { (void)argc; (void)argv; return CLI_USAGE; }
