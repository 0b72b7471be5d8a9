"""What the farm builders share: compilers from the registry, and a record of every PTX file made."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

NVCC_PACKAGES = {
    "13.0": (
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-nvvm==13.0.88",
        "nvidia-cuda-runtime==13.0.88",
        "nvidia-cuda-cccl==13.0.85",
    ),
    "13.4": (
        "nvidia-cuda-nvcc==13.4.92",
        "nvidia-cuda-crt==13.4.92",
        "nvidia-nvvm==13.4.92",
        "nvidia-cuda-runtime==13.4.92",
        "nvidia-cuda-cccl==13.3.4.3.1",
    ),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of OUT/manifest.jsonl. file: below OUT. how: what made it, without machine paths. size: bytes."""

    file: str
    sha256: str
    size: int
    how: str


class Farm:
    """Output folder of one source; collects files and keeps its manifest, one JSON object a line, sorted by file."""

    def __init__(self, out: Path, source: str) -> None:
        self.folder = out / source
        self.folder.mkdir(parents=True, exist_ok=True)
        self.manifest = self.folder / "manifest.jsonl"
        old = self.manifest.read_text(encoding="utf-8").splitlines() if self.manifest.is_file() else []
        self.entries = {entry["file"]: Entry(**entry) for entry in map(json.loads, old)}
        self.failures = 0

    def has(self, name: str) -> bool:
        """Whether an earlier run made this file (name without ``.ptx``)."""
        return f"{name}.ptx" in self.entries and (self.folder / f"{name}.ptx").is_file()

    def add(self, name: str, text: str, how: str) -> None:
        """Writes one PTX file (name without ``.ptx``) and the manifest."""
        path = self.folder / f"{name}.ptx"
        data = text.encode("utf-8")
        path.write_bytes(data)
        self.entries[path.name] = Entry(path.name, hashlib.sha256(data).hexdigest(), len(data), how)
        lines = [json.dumps(asdict(self.entries[file])) + "\n" for file in sorted(self.entries)]
        self.manifest.write_text("".join(lines), encoding="utf-8")
        print(f"ok {path.name} {len(data)}", flush=True)

    def fail(self, name: str, error: object) -> None:
        """Notes a kernel that could not be built."""
        self.failures += 1
        print(f"failed {name}: {' '.join(str(error).split())[-400:]}", flush=True)

    def close(self) -> int:
        """Prints the count; returns 0 if anything was built."""
        print(f"{self.folder.name}: {len(self.entries)} files, {self.failures} failed in this run")
        return 0 if self.entries else 1


def install(packages: Iterable[str], target: Path) -> Path:
    """Installs packages, without their dependencies, into a folder of their own unless it exists; returns it.

    Raises subprocess.CalledProcessError if pip fails.
    """
    if not target.is_dir():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), *packages]
        subprocess.run(command, check=True)
    return target


def environment(packages: Iterable[str], target: Path) -> Path:
    """Makes a virtual environment with packages and their dependencies unless it exists; returns its interpreter.

    Raises subprocess.CalledProcessError if pip fails.
    """
    python = target / "bin" / "python"
    if not python.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def nvcc(tools: Path, release: str = "13.0") -> Path:
    """Path of nvcc, installed on first use. release: a key of NVCC_PACKAGES."""
    path = install(NVCC_PACKAGES[release], tools / f"nvcc-{release}") / "nvidia" / "cu13" / "bin" / "nvcc"
    path.chmod(0o755)
    return path


def compile_cuda(compiler: Path, source: Path, arch: str, flags: Sequence[str], limit: float = 900.0) -> str:
    """Device code of one CUDA file as PTX, at low priority.

    arch: ``90a`` and the like. limit: seconds. Raises RuntimeError with the end of nvcc's output if it fails.
    """
    target = source.with_name(f"{source.stem}.{arch}.out.ptx")
    command = ["nice", "-n", "10", str(compiler), f"-arch=compute_{arch}", "-ptx", "-O3", *flags]
    command += ["-o", str(target), str(source)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"took over {limit:.0f} s") from error
    if result.returncode:
        errors = [line for line in result.stderr.splitlines() if "error" in line]
        raise RuntimeError(" | ".join(errors[:2]) or result.stderr[-400:])
    text = target.read_text(encoding="utf-8")
    target.unlink()
    return text
