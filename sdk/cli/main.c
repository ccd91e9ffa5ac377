/* The program `graft`: finds the command and runs it. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "conformance/conformance.h"

static const struct command {
  const char *name;
  cli_fn run;
  const char *arguments, *help;
} commands[] = {
    {"backends", cli_backends, "[--json]", "what was found, where, ABI version, devices, coverage"},
    {"check", cli_check, "PLUGIN", "ABI lint and contract tests of device, memory, stream, event"},
    {"conformance", cf_main_conformance, "[-b NAME|PATH] [--level smoke|mustpass|full] …",
     "op by op: are the numbers and the gradients right?"},
    {"case", cf_main_case, "ID [--dump DIR]", "one case of the suite again, with its inputs, result and oracle"},
    {"report", cf_main_report, "diff A B [--html FILE]", "what changed between two runs of the suite"},
    {"ops", cli_ops, "[--table core|prims|train] [-b NAME]", "each op and who implements it, one a line"},
    {"bench", cli_bench, "[-b NAME] [--op GLOB] [--json]", "how long ops take on a backend"},
    {"warm", cli_warm, "[-b NAME] [--jobs N]", "compile what common calls take, once, for all later processes"},
    {"fuzz", cli_fuzz, "--graphs N [--seed S] [-b NAME]", "random programs as graphs, against their calls"},
    {"graph", cli_graph, "FILE [--passes] [--dot] [--json] [--bisect -b NAME]",
     "what a saved graph holds, what passes make of it, where a backend goes wrong"},
    {"run", cli_run, "FILE [-b NAME] [--input NAME=X.npy]", "a saved graph, without Python"},
    {"tiny", cli_tiny, "FILE -o OUT.c [--name NAME] [--input NAME=X.npy]", "a saved graph as one C source"},
    {"new", cli_new, "NAME [DIR] [--graph] [--capture]",
     "start a plugin: a project that builds, loads and passes `graft check`"},
};

static void usage(FILE *to) {
  fprintf(to,
          "Graft %s: one C plugin gives an accelerator PyTorch, a C runtime with autograd, and a conformance suite.\n\n"
          "Usage: graft COMMAND [ARGUMENTS]; `graft COMMAND --help` says more.\n\n",
          graft_version());
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    fprintf(to, "  %-12s %s\n", commands[i].name, commands[i].help);
  }
  fputs(
      "\nA backend is named as discovery finds it (`graft backends`), or is the path of a plugin's library.\n"
      "To begin:\n"
      "  graft backends                         what is there\n"
      "  graft conformance -b opencl            test it\n"
      "  graft new my_chip                      write your own\n\n"
      "Exit status: 0 all passed; 1 something failed; 2 usage, no such plugin, one that cannot be loaded or has no\n"
      "device; 3 a device opened and no case was run. What a full disk cuts off has failed.\n",
      to);
}

static int run(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "--help";
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
    usage(stdout);
    return argc > 1 ? CLI_OK : CLI_USAGE;
  }
  if (!strcmp(name, "--version")) {
    printf("graft %s (plugin ABI %d.%d)\n", graft_version(), GRAFT_ABI_MAJOR, GRAFT_ABI_MINOR);
    return CLI_OK;
  }
  argp_err_exit_status = CLI_USAGE;
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(commands[i].name, name) != 0) continue;
    char full[32]; /* as argp is to call the program */
    snprintf(full, sizeof full, "graft %s", name);
    argv[1] = full;
    return commands[i].run(argc - 1, argv + 1);
  }
  fprintf(stderr, "graft: no command '%s'; `graft --help` lists them\n", name);
  return CLI_USAGE;
}

static int status;

/* What a full disk cut off is no success; also where argp ends the program, which has shown its help. */
static void close_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  fprintf(stderr, "graft: what was printed is not complete: %s\n", strerror(errno));
  _exit(status ? status : CLI_FAILED);
}

int main(int argc, char **argv) {
  atexit(close_output);
  return status = run(argc, argv);
}
