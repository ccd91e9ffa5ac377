"""A model over two plugins and the CPU: FX's partitioner asks the plugins which ops they serve, and each part becomes one
graph of its device: partition.py"""

import copy

import numpy
import torch
import torch_graft
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

SERVED = ("plugin", "equal", "decomposition", "host")


@torch.library.custom_op("partition::ranks", mutates_args=())
def ranks(values: torch.Tensor) -> torch.Tensor:
    """In NumPy: no plugin has it."""
    return torch.from_numpy(numpy.argsort(numpy.argsort(values.numpy())).astype("float32"))


@ranks.register_fake
def _(values):
    return torch.empty(values.shape, dtype=torch.float32)


class Spectrum(torch.nn.Module):
    """Eigenvalues of a matrix that a network makes; the OpenCL backend has no kernel for them."""

    def __init__(self, width=12):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(width, 32), torch.nn.GELU(), torch.nn.Linear(32, width))
        self.head = torch.nn.Linear(width, 3)

    def forward(self, x):
        values, _ = torch.linalg.eig(self.body(x).tanh())
        sizes = values.abs().sort().values
        return self.head(sizes * ranks(sizes)).softmax(-1)


class Served(OperatorSupportBase):
    """What the plugin of a device answers."""

    def __init__(self, device):
        self.device = device

    def is_node_supported(self, submodules, node):
        if getattr(node.target, "__name__", "") == "getitem":
            return self.is_node_supported(submodules, node.args[0])
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        return torch_graft.route(node.target, self.device) in SERVED


class On(torch.nn.Module):
    """A part on its device, between copies."""

    def __init__(self, part, device):
        super().__init__()
        self.part, self.device = torch.compile(part, backend="graft"), device

    def forward(self, *values):
        results = self.part(*[value.to(self.device) for value in values])
        return results.cpu() if isinstance(results, torch.Tensor) else [result.cpu() for result in results]


def partition(module, devices):
    """Each device takes what those before it left; the rest stays on the CPU. Gives where each op went."""
    places = {}
    for device in devices:
        partitioner = CapabilityBasedPartitioner(module, Served(device), allows_single_node_partition=True)
        prefix = f"{device.type}_{device.index}_"
        module = partitioner.fuse_partitions(partitioner.propose_partitions(), prefix=prefix)
        for name, part in list(module.named_children()):
            if name.startswith(prefix):
                places.update((node.name, device) for node in part.graph.nodes if node.op == "call_function")
                setattr(module, name, On(part, device))
    return module, places


class NodeByNode(torch.fx.Interpreter):
    """The same ops on the same devices, one by one."""

    def __init__(self, module, places):
        super().__init__(module)
        self.places = places

    def run_node(self, node):
        result = super().run_node(node)
        return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, result)

    def fetch_args_kwargs_from_env(self, node):
        there = self.places.get(node.name, torch.device("cpu"))
        return torch.utils._pytree.tree_map_only(
            torch.Tensor, lambda value: value.to(there), super().fetch_args_kwargs_from_env(node)
        )


def main():
    devices = [torch.device("graft", row.index) for row in torch_graft.devices()[:2]]
    model, x = Spectrum().eval(), torch.randn(12, 12)
    with torch.no_grad():
        traced = torch.export.export(model, (x,)).run_decompositions().module()
        original = torch.fx.GraphModule(traced, copy.deepcopy(traced.graph))
        parts, places = partition(traced, devices)
        result, expected = parts(x), model(x)
        one_by_one = NodeByNode(original, places).run(x)
    for row, device in zip(torch_graft.devices(), devices):
        print(f"{row.name}: {sum(place == device for place in places.values())} ops")
    rest = [node.name for node in parts.graph.nodes if node.op == "call_function" and "getitem" not in node.name]
    print(f"cpu: {', '.join(rest)}")
    assert torch.equal(result, one_by_one), "the parts give other bits than their ops"
    assert torch.allclose(result, expected, rtol=1e-4), "the parts give something else than the model"
    print("parts and ops one by one: equal to the bit; the model on the CPU: equal but for rounding")


if __name__ == "__main__":
    main()
