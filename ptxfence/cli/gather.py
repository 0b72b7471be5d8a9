"""From the paths of a command line to tasks, in a stable order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ptxfence.batch.examine import Options, Task, digest
from ptxfence.config import Resolver, Settings
from ptxfence.errors import InputError
from ptxfence.triage.result import FileResult, failure


@dataclass(slots=True)
class Gathered:
    """What was met while gathering. `skipped` counts files of folders that are no PTX; texts are kept on request."""

    resolver: Resolver
    keep_texts: bool = False
    settings: dict[str, Settings] = field(default_factory=dict[str, Settings])
    failures: list[FileResult] = field(default_factory=list[FileResult])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    skipped: int = 0

    def tasks(self, paths: Iterable[str]) -> Iterator[Task]:
        """The texts behind the paths. Unreadable ones go to `failures`; a path given twice counts once."""
        from ptxfence.grammar.source import read_sources

        for path in dict.fromkeys(paths):
            sources = read_sources(path)
            for source in sources:
                if source.error is not None:
                    self._fail(source.path, source.error)
                elif source.path not in self.settings:
                    yield self._task(source.path, source.text, source.metadata, source.notes)
            self.skipped += sources.skipped

    @property
    def empty_allowed(self) -> bool:
        """Whether finding no kernel is no failure: every file's settings say so, or the command line does."""
        known = self.settings.values()
        return self.resolver.command_line.allow_empty or (bool(known) and all(item.allow_empty for item in known))

    def complaint(self) -> str:
        """What to say where no kernel was found."""
        skipped = f" ({self.skipped} files that are no PTX were passed over)" if self.skipped else ""
        return f"no kernel found{skipped}; --allow-empty accepts that"

    def _task(self, path: str, text: str, metadata: Mapping[str, object], notes: tuple[str, ...]) -> Task:
        settings = self.resolver.of(path)
        self.settings[path] = settings
        if self.keep_texts:
            self.texts[path] = text
        version = metadata.get("triton_version")
        options = Options(settings.kernel, settings.timeout, settings.strict)
        return Task(path, text, digest(text), options, version if isinstance(version, str) else None, notes)

    def _fail(self, path: str, error: InputError) -> None:
        self.settings.setdefault(path, self.resolver.command_line)
        self.failures.append(failure(path, "", error.kind, str(error)))
