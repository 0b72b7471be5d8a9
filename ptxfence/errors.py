"""Every exception of ptxfence, split by audience.

`PtxFenceError` is the root of all that a caller may see. Anything else that escapes is a bug of ours.
"""

from __future__ import annotations


class PtxFenceError(Exception):
    """Root of the errors that ptxfence raises on purpose."""

    kind = "internal"


class InputError(PtxFenceError):
    """The input cannot be read: missing, not a file, not text."""

    kind = "io"


class ConfigError(PtxFenceError):
    """A setting or a command line option makes no sense."""

    kind = "usage"


class PtxSyntaxError(PtxFenceError):
    """PTX text that ptxas would refuse while parsing.

    `line` and `column` count from 1. `source_line` is the text of that line without its line end.
    """

    kind = "syntax"

    def __init__(
        self, message: str, *, filename: str = "<string>", line: int = 1, column: int = 1, source_line: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.filename = filename
        self.line = line
        self.column = column
        self.source_line = source_line

    def picture(self) -> str:
        """The source line with a caret under the column, cut to a window of 100 characters around it."""
        first = max(0, self.column - 61)
        window = self.source_line[first : first + 100].expandtabs(1)
        return f"{window}\n{' ' * (self.column - 1 - first)}^"

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}: {self.message}\n{self.picture()}"


class UnsupportedPtxError(PtxFenceError):
    """Valid input of a kind that ptxfence does not handle."""

    kind = "unsupported"


class AssemblyError(PtxFenceError):
    """ptxas refused the text, failed, or was not found; `diagnostics` are its own lines."""

    kind = "assembly"

    def __init__(self, message: str, diagnostics: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join((message, *diagnostics)))
        self.diagnostics = diagnostics


class DeviceError(PtxFenceError):
    """A GPU is missing, or a launch on it failed or hung."""

    kind = "device"


class RecheckError(PtxFenceError):
    """A patch of ours did not pass the independent check: a bug of ptxfence, nothing was written."""

    kind = "internal"


class HazardError(PtxFenceError):
    """Raised in `error` mode instead of letting a kernel with a hazard be compiled or loaded."""

    kind = "hazard"
