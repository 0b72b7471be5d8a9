"""The command line: finds the command's module and lets it work. Nothing else is imported."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from ptxfence.cli.commands import COMMANDS
from ptxfence.errors import ConfigError, PtxFenceError

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name. Returns the exit status of contract 3."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] not in COMMANDS:
        return _no_command(words)
    module = import_module(COMMANDS[words[0]].module)
    parser = argparse.ArgumentParser(
        prog=f"ptxfence {words[0]}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return _guarded(module, parser, words)


def _guarded(module: ModuleType, parser: argparse.ArgumentParser, words: list[str]) -> int:
    try:
        return module.run(parser.parse_args(words[1:]))
    except SystemExit as stop:  # argparse has printed the reason
        return stop.code if isinstance(stop.code, int) else USAGE_ERROR
    except ConfigError as error:
        print(f"ptxfence {words[0]}: {error}", file=sys.stderr)
    except PtxFenceError as error:
        print(f"ptxfence {words[0]}: {error}", file=sys.stderr)
    except BrokenPipeError:  # the reader of a pipe went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return USAGE_ERROR


def _no_command(words: list[str]) -> int:
    if words and words[0] in ("--version", "-V"):
        from ptxfence import __version__

        print(f"ptxfence {__version__}")
        return 0
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:<{width}}  {command.summary}" for name, command in COMMANDS.items())
    text = (
        "usage: ptxfence COMMAND ...\n\n"
        "Proves, refutes and repairs the proxy fences of PTX kernels.\n\n"
        f"{listing}\n\n"
        "`ptxfence COMMAND --help` explains the command.\n\n"
        "Exit status: 0 nothing at or above --fail-on; 1 findings; 2 usage error, unreadable or unparsable input,\n"
        "or no kernel; 3 undecided under --strict."
    )
    if words and words[0] in ("--help", "-h"):
        print(text)
        return 0
    complaint = f"ptxfence: there is no command {words[0]!r}\n\n" if words else ""
    print(complaint + text, file=sys.stderr)
    return USAGE_ERROR


if __name__ == "__main__":
    raise SystemExit(main())
