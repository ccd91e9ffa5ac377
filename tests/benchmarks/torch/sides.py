"""On which side of zero the arguments of ReLUs are. The derivative jumps there: an argument that is nearer to zero than
rounding errors reach may have either sign in f32, and gradients of the two differ by far more than rounding. Both are
right. So a run is held against f64 results in which such an argument, and no other, is on the side on which the run has
it. How near that is follows from what PyTorch's CPU is off at the same ReLU, by the measure for results."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from training import FLOOR, SLACK, error

RELUS = {"aten.relu.default", "aten.relu_.default"}


class Seen(TorchDispatchMode):
    """Keeps the arguments of all ReLUs."""

    def __init__(self):
        super().__init__()
        self.arguments = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if str(function) in RELUS:
            self.arguments.append(args[0].detach().cpu().to(torch.float64, copy=True))
        return function(*args, **(kwargs or {}))


class Imposed(TorchDispatchMode):
    """Puts results of ReLUs on the side of these arguments, where their own are within the limits. A gradient passes where
    a result is above zero."""

    def __init__(self, arguments, limits):
        super().__init__()
        self.left = list(zip(arguments, limits))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if str(function) not in RELUS or not self.left:
            return function(*args, **(kwargs or {}))
        argument = args[0].detach().clone()
        result = function(*args, **(kwargs or {}))
        theirs, limit = self.left.pop(0)
        if theirs.shape == argument.shape:
            other = ((theirs > 0) != (argument > 0)) & (argument.abs() <= limit)
            side = (theirs > 0).to(result.dtype) * torch.finfo(result.dtype).tiny
            result.copy_(torch.where(other, side, result))
        return result


def seen(run):
    with Seen() as mode:
        results = run()
    return results, mode.arguments


def limits_of(theirs, exact):
    """For each ReLU how far from zero f32 may miss a side."""
    off = error(dict(enumerate(theirs)), dict(enumerate(exact)))
    return [SLACK * max(off.get(i, 0.0), FLOOR) * x.abs().max().item() if x.numel() else 0.0 for i, x in enumerate(exact)]


def errors(ours, cpu, exact):
    """(our results' errors, those of each run of the CPU), each against the exact results on the run's own sides, or None
    where the runs have other ReLUs, or none. All are functions that give results."""
    (mine, my_sides), runs, (_, true_sides) = seen(ours), [seen(run) for run in cpu], seen(exact)
    shapes = [side.shape for side in true_sides]
    if not shapes or any([side.shape for side in sides] != shapes for sides in (my_sides, *(sides for _, sides in runs))):
        return None
    limits = limits_of(runs[0][1], true_sides)

    def off(results, sides):
        with Imposed(sides, limits):
            return error(results, exact())

    return off(mine, my_sides), [off(*run) for run in runs]
