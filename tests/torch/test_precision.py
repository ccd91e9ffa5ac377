"""Whether products of f32 may be rounded to TF32 reaches the plugin as PyTorch's settings have it."""

import textwrap

import pytest

# A plugin that refuses each call, and says with which flags it came.
ASKING = """
import torch, torch_graft
x = torch.ones(3, device=torch.device("graft", torch_graft.load({plugin!r})))

def allowed():
    try:
        -x
    except RuntimeError as error:
        return "flags 0x10000" in str(error)
"""


@pytest.fixture
def asked(python, plugin_of):
    """Runs a script in which allowed() says whether a call came with the flag."""
    asking = ASKING.format(plugin=str(plugin_of("flags.c")))
    return lambda script: python(asking + textwrap.dedent(script)).ok()


def test_what_allows_tf32(asked):
    asked(
        """
        assert not allowed()
        for precision, expected in [("high", True), ("highest", False), ("medium", True), ("highest", False)]:
            torch.set_float32_matmul_precision(precision)
            assert allowed() == expected, precision
        """
    )


def test_the_newer_settings(asked):
    asked(
        """
        for of in (torch.backends, torch.backends.cuda.matmul):
            for precision, expected in [("tf32", True), ("ieee", False)]:
                of.fp32_precision = precision
                assert allowed() == expected, (of, precision)
        """
    )


def test_a_graph_is_of_the_precision_it_was_recorded_in(python):
    python(
        """
        import torch, torch_graft
        model = torch.compile(lambda a, b: a @ b + 1, backend="graft")
        a = torch.randn(4, 4, device="graft")
        for precision, graphs in [("highest", 1), ("high", 2)]:
            torch.set_float32_matmul_precision(precision)
            torch.testing.assert_close(model(a, a), a @ a + 1)
            assert torch._dynamo.utils.counters["graft"]["graphs"] == graphs
        """
    ).ok()
