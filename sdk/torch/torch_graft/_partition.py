"""What the forward of a model keeps for its backward, and what the backward computes again."""

import operator

import torch

from torch_graft import _kept_values, _pooling

aten = torch.ops.aten

# It costs little beside what stands around it, and PyTorch's partitioner, which is made for a compiler that takes norms
# apart, does not know them for such. Not an embedding, cheap as it is: eager mode does not save its weight, which a program
# may change between forward and backward.
_CHEAP = ("native_layer_norm", "native_group_norm", "_fused_rms_norm", "_native_batch_norm_legit")


def partition(joint, inputs, **options):
    """Forward and backward, of which the latter computes again what is cheap, also where its own calls read that as a
    tensor in memory: a graph runs such calls just before they are needed, so that no more than one layer's is there."""
    from torch._functorch import config, partitioners

    _pooling.cut_before_pooling(joint.graph)
    own = _keep_what_is_costly(joint, partitioners.get_default_op_list())
    if own:
        _part_batch_norms(joint.graph)
    with config.patch(ban_recompute_materialized_backward=False, ban_recompute_not_in_allowlist=not own):
        forward, backward = partitioners.min_cut_rematerialization_partition(joint, inputs, **options)
    _join_batch_norms(forward)
    _pooling.keep_indices_small(forward, backward, options["num_fwd_outputs"])
    _keep_what_logarithms_are_of(forward, backward, options["num_fwd_outputs"])
    _keep_copies_of_what_is_written(forward, options["num_fwd_outputs"])
    return forward, backward


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


# --- batch normalization in training ---
# What it gives is cheap to compute again from its input, which its gradient needs anyway; but the call also moves running
# statistics on, which a second one must not do, nor read what a program may have changed since. So what it gives comes
# from a call of its own without them, which has the same bits; in the forward the two become one again.

_WITH, _WITHOUT = aten._native_batch_norm_legit_functional.default, aten._native_batch_norm_legit.no_stats


def _part_batch_norms(graph):
    for node in graph.find_nodes(op="call_function", target=_WITH):
        x, weight, bias, _mean, _variance, training, momentum, epsilon = node.args
        given = [user for user in node.users if user.target is operator.getitem and user.args[1] == 0]
        if node.kwargs or training is not True or not given:
            continue
        with graph.inserting_after(node):
            again = graph.call_function(_WITHOUT, (x, weight, bias, True, momentum, epsilon))
        again.meta = {key: value for key, value in node.meta.items() if key != "recompute"}
        again.meta["val"] = node.meta["val"][:3]
        for user in given:
            user.args = (again, 0)


def _join_batch_norms(module):
    graph = module.graph
    whole = {}
    for node in graph.find_nodes(op="call_function", target=_WITH):
        whole.setdefault(_parted(node), node)  # of several of one input the first, which stands before all that is read
    for again in graph.find_nodes(op="call_function", target=_WITHOUT):
        node = whole.get(again.args)
        if node is None or again.kwargs:
            continue
        again.replace_all_uses_with(node)
        graph.erase_node(again)
    module.recompile()


def _parted(node):
    x, weight, bias, _mean, _variance, training, momentum, epsilon = node.args
    return x, weight, bias, training, momentum, epsilon


# --- cross entropy ---


def _keep_what_logarithms_are_of(forward, backward, first_kept):
    """The logarithm of softmax that a loss takes one number a row of. The loss is then made without it, where a plugin can,
    and so is the gradient; and what it is made of may be there anyway, held by who called a model, or is the caller's no
    more and is where the gradient lies in the end."""
    given = forward.graph.output_node()

    def source(value, user):
        if not _is_for_a_loss(value, given, first_kept) or value.args[0] in given.args[0][first_kept:]:
            return None

        def again():
            made = backward.graph.call_function(value.target, (user, *value.args[1:]), value.kwargs)
            made.meta = {**user.meta, "val": value.meta["val"]}
            return made

        return value.args[0], again

    _kept_values.keep_instead(forward, backward, first_kept, source)


def _is_for_a_loss(value, given, first_kept):
    if value.target is not aten._log_softmax.default or value in given.args[0][:first_kept]:
        return False
    return all(user is given or user.target is aten.nll_loss_forward.default for user in value.users)


# --- inputs that are written ---


def _keep_copies_of_what_is_written(forward, first_kept):
    """A buffer that counts, say, is written at the end of the forward: what is kept of it, or of a view of it, is what it was
    before, from which the backward makes again what the forward did. PyTorch's partitioner keeps the buffer itself."""
    graph = forward.graph
    written = {node.args[0] for node in graph.find_nodes(op="call_function", target=aten.copy_.default)}
    given = graph.output_node()
    results, kept = given.args[0][:first_kept], given.args[0][first_kept:]
    given.args = ([*results, *(_copied(graph, value) if _memory_of(value) in written else value for value in kept)],)
    if written:
        forward.recompile()


def _memory_of(node):
    """Whose memory its value lies in, as far as views tell."""
    while isinstance(node, torch.fx.Node) and isinstance(node.target, torch._ops.OpOverload) and node.target.is_view:
        node = node.args[0]
    return node


def _copied(graph, value):
    with graph.inserting_after(value if value.op != "placeholder" else list(graph.find_nodes(op="placeholder"))[-1]):
        copy = graph.call_function(aten.clone.default, (value,))
    copy.meta = dict(value.meta)
    return copy
