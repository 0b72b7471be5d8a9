"""Settings: defaults, then `ptxfence.toml` or `[tool.ptxfence]` nearest to the checked path, then the command line.

All three use the names of the command line's options. An unknown or malformed setting is a ConfigError that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from ptxfence.analysis.report import Severity
from ptxfence.analysis.rules import resolve
from ptxfence.errors import ConfigError

LEVELS = {"note": Severity.NOTE, "warning": Severity.WARNING, "error": Severity.ERROR}
POLICIES = ("writer-side", "cheapest")
FILE_NAMES = ("ptxfence.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True)
class Override:
    """Settings for the files or kernels that match a shell pattern; an empty pattern matches all.

    `path` is matched against the path as it was given and, for a settings file, against the path relative to it.
    """

    path: str = ""
    kernel: str = ""
    ignore: frozenset[str] = frozenset()
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    root: Path | None = None

    def applies(self, path: str, kernel: str) -> bool:
        """Whether the settings are meant for this kernel of this file."""
        if self.kernel and not fnmatchcase(kernel, self.kernel):
            return False
        return not self.path or any(fnmatchcase(name, self.path) for name in self._names(path))

    def _names(self, path: str) -> Iterable[str]:
        yield path
        if self.root is None:
            return
        absolute = Path(path).resolve()
        if absolute.is_relative_to(self.root):
            yield absolute.relative_to(self.root).as_posix()


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of contract 3. `fail_on` is None for `never`; `timeout` is in seconds per kernel."""

    select: frozenset[str] | None = None
    ignore: frozenset[str] = frozenset()
    severity: Mapping[str, Severity] = field(default_factory=dict[str, Severity])
    fail_on: Severity | None = Severity.ERROR
    strict: bool = False
    allow_empty: bool = False
    baseline: Path | None = None
    timeout: float | None = None
    jobs: int | None = None
    kernel: str | None = None
    fix_level: Severity = Severity.ERROR
    policy: str = "writer-side"
    optimize: bool = False
    overrides: tuple[Override, ...] = ()


def settings_from(table: Mapping[str, object], base: Settings | None = None, root: Path | None = None) -> Settings:
    """The settings of `base` with those of `table` laid over them.

    `root` is the folder that relative paths in the table count from. Raises ConfigError on an unknown name or a value
    of the wrong kind.
    """
    base = base or Settings()
    changes: dict[str, Any] = {}
    overrides = list(base.overrides)
    for written, value in table.items():
        name = written.replace("-", "_")
        if name in ("per_path", "per_kernel"):
            overrides.extend(_overrides(written, name.removeprefix("per_"), value, root))
            continue
        reader = _READERS.get(name)
        if reader is None:
            raise ConfigError(f"unknown setting {written!r}; known: {', '.join(_known())}")
        changes[name] = reader(written, value)
    if "severity" in changes:
        changes["severity"] = {**base.severity, **changes["severity"]}
    if changes.get("baseline") and root is not None:
        changes["baseline"] = root / changes["baseline"]
    return replace(base, **changes, overrides=tuple(overrides))


def find_file(start: Path) -> Path | None:
    """The settings file nearest to `start`: in its folder or the closest one above that has one."""
    folder = start if start.is_dir() else start.parent
    folder = folder.resolve()
    for place in (folder, *folder.parents):
        for name in FILE_NAMES:
            candidate = place / name
            if candidate.is_file() and (name == "ptxfence.toml" or _table_of(candidate) is not None):
                return candidate
    return None


def load(path: Path) -> Settings:
    """The settings of one file. Raises ConfigError if it is not TOML or holds an unknown setting."""
    table = _table_of(path)
    try:
        return settings_from(table or {}, root=path.parent)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


class Resolver:
    """Finds the settings of each checked path; the folders' files are read once."""

    def __init__(self, command_line: Mapping[str, object], *, isolated: bool = False) -> None:
        self._command_line = dict(command_line)
        self._isolated = isolated
        self._folders: dict[Path, Settings] = {}
        self._command_only = settings_from(self._command_line)

    @property
    def command_line(self) -> Settings:
        """The defaults and the command line, for input that lies in no folder."""
        return self._command_only

    def of(self, path: str) -> Settings:
        """The settings for the file at `path`; `-` counts as a file in the working folder."""
        if self._isolated:
            return self._command_only
        place = Path() if path in ("-", "<stdin>") else Path(path)
        folder = place if place.is_dir() else place.parent
        if folder not in self._folders:
            found = find_file(folder)
            base = load(found) if found is not None else Settings()
            self._folders[folder] = settings_from(self._command_line, base)
        return self._folders[folder]


def _table_of(path: Path) -> Mapping[str, object] | None:
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
    if path.name == "ptxfence.toml":
        return document
    tool = document.get("tool")
    table = cast("Mapping[str, object]", tool).get("ptxfence") if isinstance(tool, dict) else None
    if table is None:
        return None
    return _table(f"{path}: tool.ptxfence", table)


def _known() -> list[str]:
    return sorted([*(name.replace("_", "-") for name in _READERS), "per-path", "per-kernel"])


def _overrides(written: str, kind: str, value: object, root: Path | None) -> Iterable[Override]:
    if not isinstance(value, list):
        raise ConfigError(f"{written}: expected an array of tables")
    for entry in cast("list[object]", value):
        table = _table(written, entry)
        unknown = set(table) - {kind, "ignore", "severity"}
        if unknown or kind not in table:
            wanted = f"needs {kind!r} and takes 'ignore' and 'severity'"
            raise ConfigError(f"{written}: {wanted}; found {', '.join(map(repr, table)) or 'nothing'}")
        pattern = _string(f"{written}.{kind}", table[kind])
        yield Override(
            path=pattern if kind == "path" else "",
            kernel=pattern if kind == "kernel" else "",
            ignore=_rules(f"{written}.ignore", table.get("ignore", [])),
            severity=_severities(f"{written}.severity", table.get("severity", {})),
            root=root,
        )


def _table(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{name}: expected a table")
    return cast("Mapping[str, object]", value)


def _string(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name}: expected a text, found {value!r}")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name}: expected true or false, found {value!r}")
    return value


def _rules(name: str, value: object) -> frozenset[str]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple | set | frozenset):
        raise ConfigError(f"{name}: expected a list of rules, found {value!r}")
    return frozenset(resolve(_string(name, word)) for word in cast("Iterable[object]", words))


def _level(name: str, value: object) -> Severity:
    if isinstance(value, Severity):
        return value
    found = LEVELS.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(f"{name}: expected one of {', '.join(LEVELS)}, found {value!r}")
    return found


def _fail_on(name: str, value: object) -> Severity | None:
    return None if value in ("never", None) else _level(name, value)


def _severities(name: str, value: object) -> Mapping[str, Severity]:
    result: dict[str, Severity] = {}
    for rule, level in _table(name, value).items():
        result[resolve(rule)] = Severity.OFF if level == "off" else _level(f"{name}.{rule}", level)
    return result


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ConfigError(f"{name}: expected a positive number of seconds, found {value!r}")
    return float(value)


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name}: expected a positive number, found {value!r}")
    return value


def _policy(name: str, value: object) -> str:
    if value not in POLICIES:
        raise ConfigError(f"{name}: expected one of {', '.join(POLICIES)}, found {value!r}")
    return cast(str, value)


def _path(name: str, value: object) -> Path:
    return value if isinstance(value, Path) else Path(_string(name, value))


_READERS: dict[str, Callable[[str, object], Any]] = {
    "select": _rules,
    "ignore": _rules,
    "severity": _severities,
    "fail_on": _fail_on,
    "strict": _flag,
    "allow_empty": _flag,
    "baseline": _path,
    "timeout": _seconds,
    "jobs": _count,
    "kernel": _string,
    "fix_level": _level,
    "policy": _policy,
    "optimize": _flag,
}
