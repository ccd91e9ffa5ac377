"""Another value in the place of one that a forward keeps for its backward."""


def keep_instead(forward, backward, first_kept, choose):
    """The outputs of the forward from first_kept on are what the backward is given. choose(value, user), of such an output
    and the backward's placeholder of it, says what is kept instead, a node of the forward, and how the backward makes
    the value of that; None: the value is kept."""
    given, taken = forward.graph.output_node(), {node.name: node for node in backward.graph.find_nodes(op="placeholder")}
    for i, value in enumerate(given.args[0][first_kept:], first_kept):
        user = taken.get(getattr(value, "name", None))
        chosen = None if user is None else choose(value, user)
        if chosen is None:
            continue
        kept, make = chosen
        given.args = ([kept if place == i else each for place, each in enumerate(given.args[0])],)
        with backward.graph.inserting_before(next(iter(user.users))):
            again = make()
        user.replace_all_uses_with(again, delete_user_cb=lambda node, again=again: node is not again)
        user.meta["val"] = kept.meta["val"]
    forward.recompile()
    backward.recompile()
