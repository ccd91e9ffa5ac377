"""What the forward of a model keeps for its backward, and what the backward computes again."""

import torch

# It costs little beside what stands around it, and PyTorch's partitioner, which is made for a compiler that takes norms
# apart, does not know them for such. Not an embedding, cheap as it is: eager mode does not save its weight, which a program
# may change between forward and backward.
_CHEAP = ("native_layer_norm", "native_group_norm", "_fused_rms_norm")


def partition(joint, inputs, **options):
    """Forward and backward, of which the latter computes again what is cheap, also where its own calls read that as a
    tensor in memory: a graph runs such calls just before they are needed, so that no more than one layer's is there."""
    from torch._functorch import config, partitioners

    own = _keep_what_is_costly(joint, partitioners.get_default_op_list())
    with config.patch(ban_recompute_materialized_backward=False, ban_recompute_not_in_allowlist=not own):
        return partitioners.min_cut_rematerialization_partition(joint, inputs, **options)


def _keep_what_is_costly(joint, types):
    """Marks it, unless the model says itself what to compute again (torch.utils.checkpoint); whether it did."""
    from torch.utils.checkpoint import CheckpointPolicy

    if any("recompute" in node.meta for node in joint.graph.nodes):
        return False
    for node in joint.graph.nodes:
        if node.op != "call_function" or types.is_recomputable(node):
            continue
        if not (isinstance(node.target, torch._ops.OpOverload) and node.target._schema.name.split("::")[1] in _CHEAP):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    return True
