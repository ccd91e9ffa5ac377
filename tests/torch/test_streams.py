"""Streams and events: order, waiting, timing, memory that another stream uses, many threads."""

import threading
import time

import pytest
import torch


def test_classes_and_current_stream(device):
    default = torch.graft.default_stream()
    assert isinstance(default, torch.graft.Stream) and isinstance(default, torch.Stream)
    assert torch.graft.current_stream() == default == torch.accelerator.current_stream()
    stream = torch.graft.Stream()
    assert stream != default and stream.device == device
    with torch.graft.stream(stream):
        assert torch.graft.current_stream() == stream
        with torch.graft.stream(None):
            assert torch.graft.current_stream() == stream
    assert torch.graft.current_stream() == default
    with stream:
        assert torch.accelerator.current_stream() == stream
    assert torch.graft.current_stream() == default
    torch.graft.set_stream(stream)
    try:
        assert torch.graft.current_stream(device) == stream
    finally:
        torch.graft.set_stream(default)


def test_stream_of_another_device_makes_it_current(other):
    stream = torch.graft.Stream(other)
    assert stream.device == other
    with torch.graft.stream(stream):
        assert torch.graft.current_device() == other.index
        assert torch.graft.current_stream() == stream
    assert torch.graft.current_device() == 0


def test_the_current_stream_is_of_a_thread():
    stream, seen = torch.graft.Stream(), []
    with torch.graft.stream(stream):
        thread = threading.Thread(target=lambda: seen.append(torch.graft.current_stream()))
        thread.start()
        thread.join()
    assert seen == [torch.graft.default_stream()]


def test_waiting_for_another_stream(device):
    x = torch.randn(512, 512)
    expected = x @ x @ x
    side = torch.graft.Stream()
    y = x.to(device)
    side.wait_stream(torch.graft.current_stream())
    with torch.graft.stream(side):
        z = y @ y @ y
    y.record_stream(side)
    event = side.record_event()
    torch.graft.current_stream().wait_event(event)
    assert torch.allclose((z + 0).cpu(), expected, rtol=1e-4, atol=1e-2)
    z.record_stream(torch.graft.current_stream())
    side.synchronize()
    assert side.query() and event.query()


def test_events_measure_time(device):
    start, end = torch.graft.Event(enable_timing=True), torch.graft.Event(enable_timing=True)
    plainly = torch.Event("graft", enable_timing=True)
    x = torch.randn(256, 256, device=device)
    start.record()
    for _ in range(5):
        x = (x @ x).clamp(-1, 1)
    end.record()
    plainly.record()
    plainly.synchronize()
    assert start.query() and 0 < start.elapsed_time(end) <= start.elapsed_time(plainly) < 60_000
    assert end.elapsed_time(plainly) >= 0
    with pytest.raises((RuntimeError, ValueError), match="(?i)timing"):
        plain = torch.graft.Event()
        plain.record()
        plain.synchronize()
        plain.elapsed_time(end)


def test_what_an_event_of_the_device_is():
    class Marked(torch.graft.Event):
        pass

    assert issubclass(torch.graft.Event, torch.Event)
    assert isinstance(torch.graft.Event(), torch.graft.Event) and isinstance(torch.Event("graft"), torch.graft.Event)
    assert isinstance(Marked(), Marked) and isinstance(Marked(), torch.graft.Event)
    assert not isinstance(torch.graft.Event(), Marked) and not isinstance(torch.graft.Stream(), torch.graft.Event)


def test_an_event_that_was_not_recorded():
    event = torch.graft.Event()
    assert event.query()
    event.synchronize()
    torch.graft.current_stream().wait_event(event)


def test_memory_freed_while_another_stream_uses_it(device):
    """Without record_stream the block would go to the next tensor of the first stream while the second still reads."""
    side = torch.graft.Stream()
    for i in range(20):
        x = torch.full((256, 256), 1.0, device=device)
        side.wait_stream(torch.graft.current_stream())
        with torch.graft.stream(side):
            y = x
            for _ in range(4):
                y = y @ x / 256
        x.record_stream(side)
        del x
        other = torch.full((256, 256), float(i), device=device)
        side.synchronize()
        assert y.min().item() == pytest.approx(1.0, rel=1e-5) and other[0, 0].item() == i


def test_priorities():
    assert torch.graft.Stream(priority=0).device.type == "graft"
    assert torch.graft.Stream(priority=-1) != torch.graft.Stream(priority=-1)


def test_threads_on_streams_of_their_own(device):
    """A bounded stress: each thread computes on its own stream, and each result is right."""
    x = torch.randn(64, 64) / 8
    expected = torch.linalg.matrix_power(x, 8)
    failures = []

    def work(seed):
        try:
            with torch.graft.stream(torch.graft.Stream()):
                y = x.to(device)
                for _ in range(10):
                    z = y
                    for _ in range(7):
                        z = z @ y
                    parts = [z[i : i + 8].clone() for i in range(0, 64, 8)]
                    if not torch.allclose(torch.cat(parts).cpu(), expected, rtol=1e-3, atol=1e-5):
                        failures.append(seed)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads) and failures == []


def run_in_threads(work, count):
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads) and failures == []


def test_threads_on_one_stream(device):
    """Its calls are put in order, and what one thread frees another gets."""
    stream, queue = torch.graft.Stream(), []

    def work(number):
        with torch.graft.stream(stream):
            for i in range(60):
                x = torch.full((1000 + number * 64,), float(number), device=device)
                queue.append(x * 2)
                y = queue.pop(0)
                event = stream.record_event()
                assert y.min().item() == y.max().item() and y[0].item() % 2 == 0
                event.synchronize()
                assert event.query() and (x.sum() / len(x)).item() == number

    run_in_threads(work, 6)


def test_threads_that_watch_and_threads_that_work(device):
    """query, synchronize and events of a stream from threads that do not use it."""
    streams, done = [torch.graft.Stream() for _ in range(3)], threading.Event()
    events = [stream.record_event() for stream in streams]

    def work(number):
        if number >= 3:
            while not done.is_set():
                for stream, event in zip(streams, events):
                    stream.query(), event.query(), stream.wait_event(event)
                    event.synchronize()
            return
        try:
            with torch.graft.stream(streams[number]):
                index = torch.tensor([0, 2], device=device)
                for i in range(50):
                    x = torch.full((3, 64), float(i), device=device)
                    events[number].record()
                    assert x[index].sum().item() == i * 128
        finally:
            if number == 0:
                done.set()

    run_in_threads(work, 5)


def test_a_fault_is_told_to_whoever_waits(device):
    """Threads that watch a stream all the while take no fault away: somebody is told of each."""
    stream, told, stop = torch.graft.Stream(), [], threading.Event()
    x, wrong = torch.ones(2, 3, device=device), torch.tensor([7], device=device)
    torch.graft.synchronize()

    def wait(call):
        try:
            call()
        except RuntimeError as error:
            assert "out of range" in str(error), error
            told.append(error)

    def work(number):
        if number:
            while not stop.is_set():
                wait(stream.synchronize)
            return
        try:
            with torch.graft.stream(stream):
                for i in range(30):
                    before = len(told)
                    wait(lambda: x[wrong])
                    wait(stream.synchronize)
                    for _ in range(500):  # another thread may have it and not have noted it yet
                        if len(told) > before:
                            break
                        time.sleep(0.01)
                    assert len(told) > before, f"fault {i} was lost"
        finally:
            stop.set()

    run_in_threads(work, 3)
    wait(stream.synchronize)
    with torch.graft.stream(stream):
        assert (x + 1).sum().item() == 12


def test_polling_costs_nothing_that_stays(device):
    stream = torch.graft.Stream()
    x = torch.randn(512, 512, device=device)
    torch.graft.synchronize()

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    with torch.graft.stream(stream):
        for _ in range(10):
            x = (x @ x).clamp(-1, 1)
    stream.query()
    before, polls = resident(), 0
    while not stream.query() or polls < 1000:
        polls += 1
    assert resident() - before < 8 * 2**20
