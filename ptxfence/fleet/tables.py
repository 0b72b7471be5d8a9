"""The Parquet tables of a fleet run: `files`, `kernels` and `findings`, one part of each for every batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxfence.fleet.libraries import library
from ptxfence.triage.result import FileResult
from ptxfence.triage.serial import finding_json

TABLES = ("findings", "kernels", "files")  # `files` is written last: its part says that the batch is done

pa = library("pyarrow")
_TEXT, _COUNT = pa.string(), pa.int64()
SCHEMAS: dict[str, Any] = {
    "files": pa.schema(
        [
            ("path", _TEXT),
            ("sha256", _TEXT),
            ("ptx_version", _TEXT),
            ("target", _TEXT),
            ("producer", _TEXT),
            ("error_kind", _TEXT),
            ("error", _TEXT),
            ("kernels", _COUNT),
            ("findings", _COUNT),
        ]
    ),
    "kernels": pa.schema(
        [
            ("path", _TEXT),
            ("kernel", _TEXT),
            ("line", _COUNT),
            ("verdict", _TEXT),
            ("reasons", pa.list_(_TEXT)),
            ("assumptions", pa.list_(_TEXT)),
            ("instructions", _COUNT),
            ("fences", _COUNT),
            ("seconds", pa.float64()),
        ]
    ),
    "findings": pa.schema(
        [
            *((name, _TEXT) for name in ("path", "id", "rule", "name", "severity", "confidence", "kernel", "cause")),
            ("message", _TEXT),
            ("first_line", _COUNT),
            ("first_text", _TEXT),
            ("first_bytes", _TEXT),
            ("second_line", _COUNT),
            ("second_text", _TEXT),
            ("second_bytes", _TEXT),
            ("source_file", _TEXT),
            ("source_line", _COUNT),
            ("suppressed", _TEXT),
        ]
    ),
}


def rows_of(results: Iterable[FileResult]) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for result in results:
        rows["files"].append(_file(result))
        for kernel in result.kernels:
            rows["kernels"].append(
                {
                    "path": result.path,
                    "kernel": kernel.name,
                    "line": kernel.line,
                    "verdict": kernel.verdict.value,
                    "reasons": list(kernel.reasons),
                    "assumptions": list(kernel.assumptions),
                    "instructions": kernel.counts.instructions,
                    "fences": kernel.counts.fences,
                    "seconds": kernel.seconds,
                }
            )
        rows["findings"].extend(_finding(finding_json(finding, result), result.path) for finding in result.findings)
    return rows


def write(store: Any, path: str, name: str, rows: list[dict[str, Any]]) -> None:
    """Write one part. On a local file system it appears complete or not at all, as it does in an object store."""
    table = pa.Table.from_pylist(rows, schema=SCHEMAS[name])
    target = f"{path}.tmp" if _is_local(store) else path
    with store.open(target, "wb") as stream:
        library("pyarrow.parquet").write_table(table, stream, compression="zstd")
    if target != path:
        store.mv(target, path)


def _is_local(store: Any) -> bool:
    protocol: str | tuple[str, ...] = store.protocol
    return protocol == "file" or "file" in protocol


def _file(result: FileResult) -> dict[str, Any]:
    error = result.errors[0] if result.errors else None
    return {
        "path": result.path,
        "sha256": result.sha256,
        "ptx_version": result.ptx_version,
        "target": result.target,
        "producer": result.producer,
        "error_kind": error.kind if error else None,
        "error": error.message if error else None,
        "kernels": len(result.kernels),
        "findings": len(result.active),
    }


def _finding(data: dict[str, Any], path: str) -> dict[str, Any]:
    first, second = data["first"], data["second"]
    at = (second or first)["source"] or first["source"]
    same = ("id", "rule", "name", "severity", "confidence", "kernel", "cause", "message", "suppressed")
    return {
        "path": path,
        **{name: data[name] for name in same},
        **{f"first_{name}": first[name] for name in ("line", "text", "bytes")},
        **{f"second_{name}": second[name] if second else None for name in ("line", "text", "bytes")},
        "source_file": at["file"] if at else None,
        "source_line": at["line"] if at else None,
    }
