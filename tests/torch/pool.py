"""Worker processes that answer lines of text with lines of JSON, each answer within a limit: one that crashes or hangs
costs its question alone."""

import json
import queue
import subprocess
import threading


class Worker:
    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def ask(self, question, limit):
        """The answer, or a text that says why there is none."""
        timer = threading.Timer(limit, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(question + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            hung = not timer.is_alive()
            timer.cancel()
        if line:
            return json.loads(line)
        status = self.process.wait()
        return f"no answer within {limit} s" if hung else f"the worker ended with status {status}"

    def alive(self):
        return self.process.poll() is None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def answers(tasks, jobs, start, ask):
    """The answers, as they come, by so many workers at a time. start() makes a worker, ask(worker, task) asks it."""
    waiting, done = queue.Queue(), queue.Queue()
    for task in tasks:
        waiting.put(task)

    def serve():
        live = None
        while True:
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                break
            if not live or not live.alive():
                live = start()
            done.put(ask(live, task))
        if live and live.alive():
            live.close()

    count = waiting.qsize()
    for _ in range(jobs):
        threading.Thread(target=serve, daemon=True).start()
    for _ in range(count):
        yield done.get()
