/* The files of a new plugin project, embedded in the program. */
#ifndef GRAFT_CLI_TEMPLATE_H
#define GRAFT_CLI_TEMPLATE_H

typedef struct cli_template_file {
  const char *name, *text;
} cli_template_file;

/* Ends with a row of NULLs. */
extern const cli_template_file cli_template[];

#endif
