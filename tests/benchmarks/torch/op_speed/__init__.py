"""What ../ops.py consists of:

text          the text form of calls, read
cases         what is timed: the lines of sdk/cli/bench_calls.txt, and compositions.py
adapters      what PyTorch calls where a line's op is for one kind of device
compositions  what is not one call of an op
side          a process that runs the cases on one device
both          the two processes in turn: results compared, medians taken
report        what was measured: files that are gone on with, tables, a comparison with earlier figures
page          docs/benchmarks_ops.md
"""
