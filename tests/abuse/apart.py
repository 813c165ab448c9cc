"""A probe in a process of its own: an attack of hundreds of threads keeps the interpreter so busy that answers would be measured
too late in the same process."""

import multiprocessing
import time

import common


class Probe:
    """Calls something again and again while an attack runs: `with Probe(lambda: client.get("/healthz")) as probe`."""

    def __init__(self, call, every_seconds: float = 0.01) -> None:
        context = multiprocessing.get_context("fork")
        self.replies: list[tuple[int, float]] = []
        self.ours, theirs = context.Pipe()
        self.process = context.Process(target=self.loop, args=(theirs, call, every_seconds), daemon=True)

    @staticmethod
    def loop(pipe, call, every_seconds: float) -> None:
        # Connections of the process it comes from are not its own.
        common.Client.connections.__dict__.clear()
        call()
        pipe.send("ready")
        found = []
        while not pipe.poll():
            reply = call()
            found.append((reply.status, reply.seconds))
            time.sleep(every_seconds)
        pipe.send(found)

    def __enter__(self) -> "Probe":
        self.process.start()
        self.ours.recv()
        return self

    def __exit__(self, *_) -> None:
        self.ours.send("done")
        self.replies = self.ours.recv()
        self.process.join()

    def percentile(self, percent: float) -> float:
        """Seconds that so many percent of the answers needed at most."""
        return common.percentile([seconds for _, seconds in self.replies], percent)

    def statuses(self) -> dict[int, int]:
        found = [status for status, _ in self.replies]
        return {status: found.count(status) for status in sorted(set(found))}
