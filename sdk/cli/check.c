#include "cli.h"
int cli_check(int argc, char **argv) { (void)argc; (void)argv; return CLI_USAGE; }
