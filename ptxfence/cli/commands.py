"""The list of commands. A command's module has `add_arguments(parser)` and `run(arguments) -> exit status`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    module: str
    summary: str


COMMANDS = {
    "check": Command("ptxfence.cli.check", "find missing, misplaced and superfluous proxy fences"),
    "fix": Command("ptxfence.cli.fix", "insert the missing fences"),
    "fences": Command("ptxfence.cli.fences", "say of every fence what it orders, or why it is not needed"),
    "explain": Command("ptxfence.cli.explain", "print a rule's page"),
    "rules": Command("ptxfence.cli.rules", "list the rules"),
    "show": Command("ptxfence.cli.show", "draw the kernel: blocks, accesses, barriers, the path of each hazard"),
    "run": Command("ptxfence.cli.run", "run a program with every kernel it compiles checked or patched"),
    "race": Command("ptxfence.cli.race", "run original and patched kernel on a GPU and compare"),
    "fleet": Command("ptxfence.cli.fleet", "check a compile cache of any size on a Dask cluster"),
}
