/* graft fuzz: random programs, run call by call and as a graph. fuzz_program.c makes them, runs their calls and prints
 * them; fuzz_compare.c holds the two ways against each other; fuzz_command.c is the command, and makes what failed
 * small. */
#ifndef GRAFT_CLI_FUZZ_H
#define GRAFT_CLI_FUZZ_H

#include <stdbool.h>
#include <stdio.h>

#include "graft/graft.h"

enum { FUZZ_INPUTS = 3, FUZZ_STEPS = 24, FUZZ_VALUES = 64, FUZZ_SIZES = 4 };

/* One call: a row of the table in fuzz_program.c, and numbers that it makes its choices with. What it picks is found
 * when it runs, among the values that are there, so that a program stays one when steps are left out. */
typedef struct fuzz_step {
  uint32_t row, picks[3], choices[4];
} fuzz_step;

typedef struct fuzz_program {
  uint64_t seed;
  uint32_t nsteps;
  fuzz_step steps[FUZZ_STEPS];
  uint32_t inputs[FUZZ_INPUTS]; /* what each is made of */
  uint64_t outputs;             /* bit n: value n comes out */
  uint32_t passes;              /* which choice of passes */
  /* How long the inputs' dimensions are, where they are not 0 to 2: rows, and columns, their last one. The first pair
   * is what it is recorded at, the others what it is run at, too, where they are open. */
  int64_t sizes[FUZZ_SIZES][2];
  bool open;
} fuzz_program;

/* The values of one run. Constants are shared by all runs of a program, and not written. */
typedef struct fuzz_world {
  graft_rt_device *device;
  uint32_t count;
  graft_tensor *values[FUZZ_VALUES]; /* owned */
  bool constant[FUZZ_VALUES];
  graft_status statuses[FUZZ_STEPS];
  int64_t rows, columns;    /* numbers, or names of open sizes */
  graft_graph *graph;       /* whose names they are; NULL: they are numbers */
  const graft_status *only; /* steps that failed are left out; NULL: all are tried */
} fuzz_world;

void fuzz_make(uint64_t seed, fuzz_program *program);
/* Inputs of the world's rows and columns, the same for the same program. */
graft_status fuzz_fill(const fuzz_program *program, fuzz_world *world);
/* The same inputs of a graph with open sizes, the world's. */
graft_status fuzz_name_inputs(const fuzz_program *program, fuzz_world *world);
/* Runs all steps on a world that holds its inputs, one behind the other; those that fail leave no value. With `to`, it
 * prints them. */
void fuzz_run(const fuzz_program *program, fuzz_world *world, FILE *to);
void fuzz_empty(fuzz_world *world);

/* Faults, for the tests: called, where not NULL, with a graph that is about to be compiled, with what was compiled and
 * is about to run, and with a graph that was loaded from a file. */
typedef struct fuzz_fault {
  void (*in_graph)(graft_graph *graph);
  void (*in_exec)(graft_graph_exec *exec);
  void (*in_loaded)(graft_graph *graph);
  void (*in_open)(graft_graph *graph); /* with open sizes, which the others are not called with */
} fuzz_fault;

/* What is said of one program. */
typedef struct fuzz_report {
  char why[512];                  /* what differs, where it does not agree */
  uint32_t groups, grouped_nodes; /* as graft_graph_exec_query has them */
} fuzz_report;

/* Whether the graph of the program gives what its calls give, also when it was saved and loaded. */
bool fuzz_agrees(const fuzz_program *program, graft_rt_device *device, const fuzz_fault *fault, fuzz_report *report);

#endif
