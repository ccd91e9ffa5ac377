"""nn.TransformerEncoder in inference with a padding mask: what stands at padded positions.

PyTorch's fast path makes a nested tensor of the batch, which leaves the padding out, and pads the result with zeros. There
are no nested tensors on the device, so that the layers run with the mask instead; padded positions then hold what
attention gave them, which the CPU's result does not. Here they get the zeros (and the final norm of zeros).
"""

import functools

import torch

from torch_graft._device import device_name


def install():
    encoder = torch.nn.TransformerEncoder
    original = encoder.forward

    @functools.wraps(original)
    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        output = original(self, src, mask, src_key_padding_mask, is_causal)
        if src.device.type != device_name() or not _would_be_nested(self, src, mask, src_key_padding_mask):
            return output
        padded = _padded(src_key_padding_mask)
        if not _left_aligned(padded):
            return output
        fill = output.new_zeros(output.shape[-1:])
        if self.norm is not None:
            fill = self.norm(fill)
        return torch.where(padded.unsqueeze(-1), fill, output)

    encoder.forward = forward


def _would_be_nested(encoder, src, mask, padding_mask):
    """The conditions of TransformerEncoder.forward that do not need the values of the mask."""
    first = encoder.layers[0]
    return (
        padding_mask is not None
        and mask is None
        and src.dim() == 3
        and not first.training
        and getattr(encoder, "use_nested_tensor", False)
        and torch.backends.mha.get_fastpath_enabled()
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled()
        and not (torch.is_grad_enabled() and any(p.requires_grad for p in (src, *first.parameters())))
    )


def _padded(padding_mask):
    return padding_mask if padding_mask.dtype == torch.bool else padding_mask != 0


def _left_aligned(padded):
    """Whether nothing follows the padding in any row."""
    return not bool((padded[:, :-1] & ~padded[:, 1:]).any())
