"""Supervisor: one thread with one loop reads its children, restarts them, and stops them in order."""

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import NoReturn

from climate.embedded.spawn import Program
from climate.runner.console import Console, Lines
from climate.runner.managed_process import Child, RestartPolicy
from climate.runner.reaper_pipe import Lifeline


class StackFailed(Exception):
    """Raised if the stack cannot continue; the message says why."""


class Stopped(Exception):
    """Raised after a signal to stop."""


class Supervisor:
    """Supervisor of child processes.  Everything happens in `turn`, in the main thread, which also forks."""

    def __init__(self, console: Console, lifeline: Lifeline, patience: RestartPolicy | None = None) -> None:
        self.ready = False
        self._console = console
        self._lifeline = lifeline
        self._patience = patience or RestartPolicy()
        self._children: list[Child] = []
        self._selector = selectors.DefaultSelector()
        self._asked_at: float | None = None
        self._hurry = False
        self._stopping = False

    def add(self, program: Program, *, before: Callable[[], None] | None = None, once: bool = False) -> Child:
        """Start a program and keep it running; `before` is called before each start."""
        child = Child(program, len(self._children), before, once)
        self._children.append(child)
        self._begin(child)
        return child

    def wait_for(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition.  StackFailed after `seconds`; Stopped after a signal to stop."""
        deadline = time.monotonic() + seconds
        pause = 0.02
        while not done():
            if time.monotonic() > deadline:
                raise StackFailed(f"{what} took longer than {seconds:g} s")
            self.turn(pause)
            pause = min(pause * 1.5, 0.25)

    def run(self, program: Program, seconds: float) -> None:
        """Run a program to its end; StackFailed if it fails."""
        child = self.add(program, once=True)
        self.wait_for(lambda: not child.alive, seconds, program.name)
        self._children.remove(child)
        if child.result:
            raise StackFailed(f"{child.name} {child.ended}")

    def serve(self) -> NoReturn:
        """Supervise the children until Stopped or StackFailed."""
        while True:
            self.turn(60.0)

    def turn(self, longest: float) -> None:
        """Wait at most `longest` seconds for an event, and handle it."""
        for key, _ in self._selector.select(self._pause(longest)):
            key.data(key.fd)
        self._reap()
        now = time.monotonic()
        for child in self._children:
            if child.kill_at is not None and child.kill_at <= now:
                child.kill()
                child.kill_at = now + 1
            if child.next_at is not None and child.next_at <= now and not self._stopping:
                self._begin(child)
        if self._asked_at is not None and not self._stopping:
            raise Stopped

    def stop(self, keeping: Collection[Child] = ()) -> None:
        """Stop all other children, the last started first; a second Ctrl-C kills them."""
        self._stopping = True
        ending = [child for child in reversed(self._children) if child not in keeping]
        for child in ending:
            child.next_at = None
            child.request_stop(time.monotonic())
        while any(child.alive for child in ending):
            for child in ending if self._hurry else []:
                child.kill()
            self.turn(1.0)
        self._hurry = False

    @contextlib.contextmanager
    def signals(self) -> Iterator[None]:
        """Handle the stop signals and SIGCHLD while the block lasts."""
        hears, wakes = socket.socketpair()
        for one in (hears, wakes):
            one.setblocking(False)
        self._selector.register(hears, selectors.EVENT_READ, lambda _: hears.recv(4096))
        wanted = {signal.SIGINT: self._on_stop_signal, signal.SIGTERM: self._on_stop_signal, signal.SIGCHLD: _nothing}
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            wanted[signal.SIGHUP] = self._on_stop_signal
        former = {number: signal.signal(number, handler) for number, handler in wanted.items()}
        waker = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(waker)
            for number, handler in former.items():
                signal.signal(number, handler)
            hears.close()
            wakes.close()

    def _on_stop_signal(self, number: int, frame: object) -> None:
        now = time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
        elif number == signal.SIGINT and now > self._asked_at + 0.5:
            # A terminal may send the first signal twice; a later one is a repeated Ctrl-C.
            self._hurry = True

    def _pause(self, longest: float) -> float:
        times = [at for child in self._children for at in (child.next_at, child.kill_at) if at is not None]
        return max(0.0, min([longest, *(at - time.monotonic() for at in times)]))

    def _begin(self, child: Child) -> None:
        try:
            file = child.begin(time.monotonic())
        except (OSError, subprocess.SubprocessError) as error:
            raise StackFailed(f"{child.name} cannot be started: {error}") from None
        self._selector.register(file, selectors.EVENT_READ, partial(self._read, child, Lines(file)))
        if child.process:
            self._lifeline.began(child.process.pid, child.program)

    def _read(self, child: Child, lines: Lines, file: int) -> None:
        for line in lines.read():
            if not self._is_chatter(child, line):
                self._console.line(child.name, child.number, line)
        if lines.ended:
            self._selector.unregister(file)

    def _is_chatter(self, child: Child, line: str) -> bool:
        """Return whether a line belongs to an ordinary start or stop; a restart in between is shown whole."""
        chatter = child.program.chatter
        return chatter is not None and (self._stopping or not self.ready) and bool(chatter.search(line))

    def _reap(self) -> None:
        for child in [child for child in self._children if child.alive and child.reap()]:
            self._settle(child)
        _reap_orphans({self._lifeline.pid, *(c.process.pid for c in self._children if c.process and c.alive)})
        living = [(child.process.pid, child.program) for child in self._children if child.process and child.alive]
        if self._lifeline.renew(living):
            self._console.say("the reaper was killed and has been restarted")

    def _settle(self, child: Child) -> None:
        """Record the end of a child, and restart it unless it was to end."""
        if child.process:
            self._lifeline.ended(child.process.pid)
        wanted = child.once or child.kill_at is not None or self._stopping
        child.kill_at = None
        if not wanted:
            self._mourn(child)

    def _mourn(self, child: Child) -> None:
        lives_on = child.died(time.monotonic(), self._patience, ready=self.ready)
        if not lives_on:
            raise StackFailed(f"{child.name} {child.ended} too often")
        why = f"; the disk of {child.program.data} is full, free some space" if child.is_out_of_space else ""
        self._console.say(f"{child.name} {child.ended}{why}; restarting it")


def _nothing(number: int, frame: object) -> None:
    """Do nothing: the signal only has to interrupt the wait."""


def _reap_orphans(own: set[int]) -> None:
    """Reap orphaned descendants, which became children of this process, so that no zombie stays."""
    if not hasattr(os, "waitid"):
        return
    with contextlib.suppress(ChildProcessError):
        while True:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if dead is None or dead.si_pid in own:
                return
            os.waitpid(dead.si_pid, os.WNOHANG)
