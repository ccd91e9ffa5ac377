/* Bugs of kernels that cut a call into parts, tiles or blocks: each shows only where there are several. */
#ifndef GRAFT_MUTANTS_PARTS_H
#define GRAFT_MUTANTS_PARTS_H

#include "conformance/mutants/access.h"

graft_status mut_lost_depth(const mut_call *call);
graft_status mut_stale_strip(const mut_call *call);
graft_status mut_lost_team(const mut_call *call);
graft_status mut_lost_loss(const mut_call *call);
graft_status mut_lost_block(const mut_call *call);
graft_status mut_lost_carry(const mut_call *call);
graft_status mut_first_tile(const mut_call *call);
graft_status mut_unstable_tiles(const mut_call *call);
graft_status mut_early_merge(const mut_call *call);
graft_status mut_stale_row(const mut_call *call);
graft_status mut_same_block(const mut_call *call);
graft_status mut_not_scaled(const mut_call *call);

#endif
