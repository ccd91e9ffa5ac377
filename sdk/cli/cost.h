/* What an op costs a device, for `graft ops --cost`. */
#ifndef GRAFT_CLI_COST_H
#define GRAFT_CLI_COST_H

#include "dispatch/dispatch.h"

/* By the way that the device's tables give, and as one kernel would. */
typedef struct cli_cost {
  dsp_cost way, one_kernel;
} cli_cost;

/* False: the suite has no call of the op whose parts could be told without its values. */
bool cli_cost_of(const op_schema *schema, graft_rt_device *device, cli_cost *cost);

#endif
