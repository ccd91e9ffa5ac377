"""A small GPT learns to write like this project's documents, character by character: char_gpt.py [--steps N] ...

The text is the tree's own documents and licence. After training it writes some lines with a key-value cache.
"""

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

ROOT = Path(__file__).resolve().parents[3]


def text():
    files = [ROOT / "LICENSE", ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "".join(file.read_text() for file in files)


class Block(nn.Module):
    def __init__(self, width, heads, dropout=0.0):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, cache=None):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        # one query sees all keys that there are; several see those before them
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + F.dropout(self.out(y.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)
        return x + F.dropout(self.mlp(self.after(x)), self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, letters, layers, width, heads, context, dropout=0.0):
        super().__init__()
        self.context = context
        self.letter, self.place = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, ids, caches=None, start=0):
        place = torch.arange(start, start + ids.shape[1], device=ids.device)
        x = self.letter(ids) + self.place(place)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i])
        return self.head(self.norm(x))

    @torch.no_grad()
    def write(self, ids, count):
        caches = [[] for _ in self.blocks]
        logits, start = self(ids, caches), ids.shape[1]
        for _ in range(min(count, self.context - start)):
            following = torch.multinomial(F.softmax(logits[:, -1] / 0.8, -1), 1)
            ids = torch.cat([ids, following], 1)
            logits, start = self(following, caches, start), start + 1
        return ids


def corpus():
    whole = text()
    letters = sorted(set(whole))
    number = {letter: i for i, letter in enumerate(letters)}
    return torch.tensor([number[letter] for letter in whole]), letters


def train(device, options, say=print):
    """Returns the loss of each step, the model and the letters."""
    ids, letters = corpus()
    torch.manual_seed(1)
    model = GPT(len(letters), options.layers, options.width, options.heads, options.context).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    draw = torch.Generator().manual_seed(2)
    firsts = torch.randint(len(ids) - options.context - 1, (options.steps, options.batch), generator=draw).to(device)
    ids, places = ids.to(device), torch.arange(options.context + 1, device=device)
    losses, start = [], time.perf_counter()
    for step in range(options.steps):
        window = ids[firsts[step][:, None] + places]
        logits = model(window[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if step % 20 == 19 or step + 1 == options.steps:
            seconds = (time.perf_counter() - start) / (step + 1)
            say(f"{device}: step {step + 1} of {options.steps}, loss {losses[-1].item():.4f}, {seconds:.2f} s a step")
    return torch.stack(losses).tolist(), model, letters


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    for name, default in [("steps", 200), ("layers", 4), ("width", 256), ("heads", 4), ("context", 128), ("batch", 16)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="graft")
    parser.add_argument("--compare", action="store_true", help="train on the CPU, too, and compare the loss curves")
    options = parser.parse_args()
    torch.set_num_threads(2)
    losses, model, letters = train(options.device, options)
    start = torch.tensor([[letters.index(letter) for letter in "The "]], device=options.device)
    print("".join(letters[i] for i in model.write(start, 100)[0].tolist()))
    if options.compare:
        theirs, _, _ = train("cpu", options)
        apart = max(abs(a - b) / b for a, b in zip(losses, theirs))
        print(f"loss curves: largest relative difference {apart:.1e}; at the end {losses[-1]:.4f} and {theirs[-1]:.4f}")


if __name__ == "__main__":
    main()
