"""`carnet model`: a model to try the engine with, on this machine."""

from pathlib import Path

import click

from carnet.cli.invocation import Command, Group, Invocation, pass_invocation

_MB = 1_000_000


@click.group(cls=Group)
def model() -> None:
    """A model on this machine, for trying the engine offline."""


@model.command(cls=Command)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8080,
    help="The port (8080); 0 lets the system choose.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Another model, a .gguf file, in the place of the one that is installed.",
)
@click.option("--threads", type=click.IntRange(1, 512), help="Processors to use (half of them).")
@pass_invocation
def local(invocation: Invocation, /, port: int, weights: Path | None, threads: int | None) -> int:
    """Run a small model until Ctrl-C, over chat completions, for this machine alone."""
    from carnet.cli.progress import ProgressLine
    from carnet.cli.start.local_model import NAME, find_weights, serve_model

    name, path = (NAME, find_weights()) if weights is None else (weights.stem, weights.absolute())
    progress = ProgressLine()

    def announce(url: str) -> None:
        progress.say("")
        page = {"url": url, "model": name}
        text = f"The model {name} listens at {url}. Ctrl-C stops it."
        invocation.result(page, lambda: text)

    with progress:
        progress.say(f"Loading {name}, {path.stat().st_size // _MB} MB ...")
        return serve_model(path, name=name, port=port, threads=threads, on_listening=announce)
