"""nn.TransformerEncoder in inference with a padding mask: what stands at padded positions.

PyTorch's fast path makes a nested tensor of the batch, which leaves the padding out, and pads the result with zeros. There
are no nested tensors on the device, so that the layers run with the mask instead; padded positions then hold what
attention gave them, which the CPU's result does not. Here they get the zeros (and the final norm of zeros).
"""

import torch

from torch_graft._device import is_ours


def install():
    """What is wrapped is the call, not forward: TorchScript compiles forward's own text."""
    encoder = torch.nn.TransformerEncoder
    forward = encoder.forward

    def call(self, *args, **kwargs):
        output = super(encoder, self).__call__(*args, **kwargs)
        if not (isinstance(output, torch.Tensor) and is_ours(output)) or type(self).forward is not forward:
            return output
        return _zeros_at_padding(self, output, *_arguments(*args, **kwargs))

    encoder.__call__ = call


def _arguments(src, mask=None, src_key_padding_mask=None, is_causal=None):
    """Those of TransformerEncoder.forward that decide what becomes of the padding."""
    return src, mask, src_key_padding_mask


def _zeros_at_padding(encoder, output, src, mask, padding_mask):
    if not _would_be_nested(encoder, src, mask, padding_mask):
        return output
    padded = _padded(padding_mask)
    if not _left_aligned(padded):
        return output
    fill = output.new_zeros(output.shape[-1:])
    if encoder.norm is not None:
        fill = encoder.norm(fill)
    return torch.where(padded.unsqueeze(-1), fill, output)


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
