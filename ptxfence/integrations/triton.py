"""Triton 3.6 and newer: every kernel that Triton compiles, or finds in its cache, is checked or patched.

    ptxfence.integrations.triton.install("fix")          # until uninstall()
    with ptxfence.integrations.triton.install("check"):  # or for a while
        ...

`check` and `error` look on through `knobs.compilation.listener`: cache keys and what is compiled stay as they are.
`fix` adds a step behind Triton's `ptx` stage (`knobs.runtime.add_stages_inspection_hook`) and our version, code and
settings to Triton's cache key, so that patched and unpatched kernels never meet in one cache entry.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

from ptxfence.errors import HazardError, PtxFenceError, UnsupportedPtxError
from ptxfence.integrations.outcome import MODE_VARIABLE, Examine, Mode, cache_key, mode_of
from ptxfence.integrations.watch import Watch

METADATA = "ptxfence"
"""Name of our entry in a kernel's metadata: what was found and done, as JSON text (`Watch.note`)."""

RECORD_VARIABLE = "PTXFENCE_RECORD"
"""A folder that launches are recorded to (`ptxfence run --record`)."""
TAG_VARIABLE = "TORCH_COMPILE_CACHE_KEY_TAG"
"""Part of the keys of all caches of torch.compile (torch/compiler/config.py)."""
Stage = Callable[[Any, dict[str, Any]], Any]

_installed: list[Installation] = []


def install(mode: str | Mode = Mode.CHECK, *, examiner: Examine | None = None, children: bool = True) -> Installation:
    """Starts watching Triton in this process; over an earlier installation, which comes back afterwards.

    With `children`, `PTXFENCE` is set for processes started from here (compile workers). `examiner` replaces the
    analysis. Raises UnsupportedPtxError for a Triton without the hook (before 3.6), ConfigError for an unknown mode.
    """
    installation = Installation(mode_of(mode), examiner, children)
    if _installed:
        _installed[-1].detach()
    try:
        installation.attach()
    except BaseException:
        if _installed:
            _installed[-1].attach()
        raise
    _installed.append(installation)
    return installation


def uninstall() -> None:
    """Ends the newest installation; does nothing if there is none."""
    if _installed:
        _installed.pop().detach()
    if _installed:
        _installed[-1].attach()


class Installation:
    """What `install` returns: a context manager that ends the installation."""

    def __init__(self, mode: Mode, examiner: Examine | None, children: bool) -> None:
        self.mode = mode
        self._children = children
        self._watch = Watch(mode, "triton", examiner=examiner)
        self._undo: list[Callable[[], None]] = []
        self._active = False

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self in _installed:
            while _installed[-1] is not self:
                uninstall()
            uninstall()

    def attach(self) -> None:
        """Puts the hooks in place. Raises UnsupportedPtxError."""
        knobs: Any = import_module("triton.knobs")
        if not hasattr(knobs.runtime, "add_stages_inspection_hook"):
            raise UnsupportedPtxError("this Triton has no stages inspection hook; ptxfence-ptxas works with it")
        try:
            if self.mode is Mode.FIX:
                self._add_stage(knobs, cache_key(Mode.FIX))
            self._listen(knobs)
            if self._children:
                self._undo.append(_set_variable(MODE_VARIABLE, self.mode))
            if self.mode is Mode.FIX:
                self._undo += _tag_graphs(cache_key(Mode.FIX))
        except BaseException:
            self.detach()
            raise
        self._active = True

    def detach(self) -> None:
        """Takes the hooks out. One that somebody else has wrapped meanwhile stays there and passes everything on."""
        self._active = False
        while self._undo:
            self._undo.pop()()

    def _listen(self, knobs: Any) -> None:
        previous = knobs.compilation.listener

        def listener(**event: Any) -> None:
            if previous is not None:
                previous(**event)
            if self._active:
                self._compiled(event)

        knobs.compilation.listener = listener
        self._undo.append(lambda: _restore(knobs.compilation, "listener", listener, previous))

    def _compiled(self, event: Mapping[str, Any]) -> None:
        try:
            self._look(event["metadata"], event["metadata_group"], bool(event["cache_hit"]))
        except HazardError:
            raise
        except Exception as error:  # an event of a shape that we do not know
            _complain(error)
            if self.mode is Mode.ERROR:
                raise HazardError(f"a compiled kernel was not examined: {error}") from error

    def _look(self, metadata: Mapping[str, Any], group: Mapping[str, str], hit: bool) -> None:
        name = str(metadata.get("name", "kernel"))
        path = next((path for file, path in group.items() if file.endswith(".ptx")), None)
        if path is None:
            if any(file.endswith(".cubin") for file in group):
                self._watch.miss(name, "no PTX in the cache entry (TRITON_STORE_BINARY_ONLY)")
            return
        if self.mode is Mode.FIX and METADATA in metadata:
            if hit:
                self._watch.cached(name, metadata[METADATA])
            if "failure" in json.loads(metadata[METADATA]):
                _forget(group)
            return
        self._watch.text(Path(path).read_text(), name, cached=hit)
        if self.mode is Mode.FIX:
            self._watch.miss(name, "another stages inspection hook took the place of ours")

    def _add_stage(self, knobs: Any, key: str) -> None:
        previous = knobs.runtime.add_stages_inspection_hook
        fixed = (key, sha256(key.encode()).hexdigest())

        def hook(*arguments: Any, **named: Any) -> tuple[str, str] | None:
            # Without arguments: Triton asks for our part of the cache key, before every launch.
            if not arguments and not named:
                if previous is None:
                    return fixed if self._active else ("", "")
                theirs = previous()
                return (theirs[0] + key, theirs[1] + fixed[1]) if self._active else theirs
            if previous is not None:
                previous(*arguments, **named)
            if self._active:
                stages = named["stages"] if "stages" in named else arguments[1]
                self._wrap(stages)
            return None

        knobs.runtime.add_stages_inspection_hook = hook
        self._undo.append(lambda: _restore(knobs.runtime, "add_stages_inspection_hook", hook, previous))
        self._extend_keys(key)

    def _wrap(self, stages: dict[str, Stage]) -> None:
        make_ptx, make_cubin = stages.get("ptx"), stages.get("cubin")
        if make_ptx is None or make_cubin is None:  # a back end that makes no PTX
            return
        original: dict[str, str] = {}  # patched text -> the one it was made of

        def ptx(source: Any, metadata: dict[str, Any]) -> Any:
            text = make_ptx(source, metadata)
            if not isinstance(text, str):
                return text
            result = self._watch.text(text, str(metadata.get("name", "kernel")))
            metadata[METADATA] = self._watch.note(text)
            if result != text:
                original[result] = text
            return result

        def cubin(source: Any, metadata: dict[str, Any]) -> Any:
            try:
                return make_cubin(source, metadata)
            except Exception as error:
                plain = original.get(source)
                if plain is None:
                    raise
                made = make_cubin(plain, metadata)  # fails as it would without us
                reason = f"ptxas refused the patched text: {type(error).__name__}"
                metadata[METADATA] = self._watch.failed(plain, str(metadata.get("name", "kernel")), reason)
                return made

        stages["ptx"] = ptx
        stages["cubin"] = cubin

    def _extend_keys(self, key: str) -> None:
        """Triton 3.6 asks no hook for its cache keys (on disk and in memory): we add our part ourselves."""
        compiler: Any = import_module("triton.compiler.compiler")
        jit: Any = import_module("triton.runtime.jit")
        if "add_stages_inspection_hook" not in compiler.compile.__code__.co_names:
            self._append_to_key(compiler, "get_cache_key", key)
        if "add_stages_inspection_hook" not in jit.JITFunction.run.__code__.co_names:
            self._append_to_key(jit, "compute_cache_key", key)

    def _append_to_key(self, module: Any, name: str, key: str) -> None:
        plain: Callable[..., str] = getattr(module, name)

        def with_key(*arguments: Any, **named: Any) -> str:
            made = plain(*arguments, **named)
            return made + key if self._active else made

        setattr(module, name, with_key)
        self._undo.append(lambda: _restore(module, name, with_key, plain))


def install_from_environment() -> None:
    """Called after `import triton` where `PTXFENCE` is set: never raises, says on standard error what went wrong."""
    word = os.environ.get(MODE_VARIABLE, "")
    try:
        if folder := os.environ.get(RECORD_VARIABLE):
            from ptxfence.integrations.record import install as record

            record(Path(folder))
        if word and not _installed:
            install(word)
    except Exception as error:
        _complain(error)
        if word == Mode.ERROR:
            raise


def _forget(group: Mapping[str, str]) -> None:
    """Takes an unpatched kernel out of Triton's file cache, so that the next run tries again."""
    for file, path in group.items():
        if file.endswith(".json"):
            with contextlib.suppress(OSError):
                Path(path).with_name(f"__grp__{file}").unlink()


def _set_variable(name: str, value: str) -> Callable[[], None]:
    before = os.environ.get(name)
    os.environ[name] = value

    def undo() -> None:
        if before is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = before

    return undo


def _tag_graphs(key: str) -> list[Callable[[], None]]:
    """torch.compile keeps whole graphs with their machine code: ours must not meet those of other runs."""
    undo: list[Callable[[], None]] = []
    tag = os.environ.get(TAG_VARIABLE, "")
    if key not in tag:
        undo.append(_set_variable(TAG_VARIABLE, tag + key))
    config: Any = sys.modules.get("torch.compiler.config")  # has read the variable already, if it is there
    if config is not None and key not in (before := config.cache_key_tag):
        config.cache_key_tag = before + key
        undo.append(lambda: setattr(config, "cache_key_tag", before))
    return undo


def _restore(place: Any, name: str, ours: object, previous: object) -> None:
    if getattr(place, name) is ours:
        setattr(place, name, previous)


def _complain(error: Exception) -> None:
    what = str(error) if isinstance(error, PtxFenceError) else f"{type(error).__name__}: {error}"
    print(f"ptxfence: Triton is not watched: {what}", file=sys.stderr)
