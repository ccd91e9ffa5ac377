/* cli/: the program `graft`. One file a command, one row a command in main.c. */
#ifndef GRAFT_CLI_H
#define GRAFT_CLI_H

#include <stdbool.h>

#include "graft/graft.h"

/* Exit statuses, the same for every command. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_NOTHING = 3 };

/* A command; argv[0] is its name. Returns an exit status. */
typedef int (*cli_fn)(int argc, char **argv);

int cli_backends(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_ops(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_new(int argc, char **argv);
int cli_fuzz(int argc, char **argv);
int cli_warm(int argc, char **argv);
int cli_graph(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_tiny(int argc, char **argv);

struct argp_state;

/* Opens device `index` of a backend named or given by path; says on stderr what is wrong otherwise. */
bool cli_open(const char *backend, int index, graft_rt_device **device);
/* The same with options for the plugin, "KEY=VALUE" each, NULL behind the last; or NULL. */
bool cli_open_with(const char *backend, const char *const *options, int index, graft_rt_device **device);
/* Adds what stands behind -o to those, which have room for `most`; ends the program in argp's way where it is none. */
void cli_add_option(const char **options, uint32_t *count, size_t most, const char *text, struct argp_state *state);

/* What stands behind --op where it takes one pattern; ends the program where one was given `before`. */
const char *cli_only_pattern(const char *before, const char *text, struct argp_state *state);

/* Prints this thread's error to stderr as "graft COMMAND: text" and returns `status`. */
int cli_error(const char *command, int status);

/* A number of an option; ends the program where the text is none. */
uint64_t cli_number(const char *text, const char *option, struct argp_state *state);
/* The number of a device, of the option -d. */
int cli_device_number(const char *text, struct argp_state *state);

#endif
