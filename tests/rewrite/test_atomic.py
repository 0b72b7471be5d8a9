"""Writing is all or nothing: faults are injected at every step and the original must be intact."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ptxfence.errors import InputError
from ptxfence.rewrite import atomic

OLD = b".version 8.0\r\nold\n"
NEW = b".version 8.0\r\nnew, longer\n" * 5000


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "k.ptx"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_replaces_and_keeps_mode(target: Path) -> None:
    target.chmod(0o640)
    atomic.replace(atomic.read(target), NEW)
    assert target.read_bytes() == NEW
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert names(target.parent) == ["k.ptx"]


def test_owner_is_kept(target: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(target, 12, 34)
    atomic.replace(atomic.read(target), NEW)
    assert (target.stat().st_uid, target.stat().st_gid) == (12, 34)


def test_symbolic_link_stays_a_link(target: Path) -> None:
    link = target.parent / "link.ptx"
    link.symlink_to(target.name)
    atomic.replace(atomic.read(link), NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW


def test_same_content_is_not_written(target: Path) -> None:
    target.chmod(0o444)  # would be refused if it had to be written
    before = target.stat()
    atomic.replace(atomic.read(target), OLD)
    assert target.stat().st_ino == before.st_ino
    assert target.stat().st_mtime_ns == before.st_mtime_ns


def test_read_only_file_is_refused(target: Path) -> None:
    target.chmod(0o444)
    with pytest.raises(InputError, match="read-only"):
        atomic.replace(atomic.read(target), NEW)
    assert target.read_bytes() == OLD


def test_changed_since_read_is_refused(target: Path) -> None:
    snapshot = atomic.read(target)
    target.write_bytes(OLD.replace(b"old", b"OLD"))  # same size
    with pytest.raises(InputError, match="changed since"):
        atomic.replace(snapshot, NEW)
    assert target.read_bytes() == OLD.replace(b"old", b"OLD")


def test_changed_while_the_new_content_is_written(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = atomic.read(target)
    real = os.fsync

    def fsync(handle: int) -> None:
        target.write_bytes(b"somebody else")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputError, match="changed since"):
        atomic.replace(snapshot, NEW)
    assert target.read_bytes() == b"somebody else"
    assert names(target.parent) == ["k.ptx"]


def test_removed_since_read(target: Path) -> None:
    snapshot = atomic.read(target)
    target.unlink()
    with pytest.raises(InputError, match="No such file"):
        atomic.replace(snapshot, NEW)
    assert names(target.parent) == []


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "fchmod"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_failing_step_leaves_the_original(
    target: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    snapshot = atomic.read(target)

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(InputError, match=os.strerror(code)):
        atomic.replace(snapshot, NEW)
    monkeypatch.undo()
    assert target.read_bytes() == OLD
    assert names(target.parent) == ["k.ptx"]


def test_short_writes_are_continued(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:1000]))
    atomic.replace(atomic.read(target), NEW)
    monkeypatch.undo()
    assert target.read_bytes() == NEW


def test_disk_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no right to mount a small file system here")
    try:
        target = disk / "k.ptx"
        target.write_bytes(OLD)
        with pytest.raises(InputError, match="No space left"):
            atomic.replace(atomic.read(target), NEW)
        assert target.read_bytes() == OLD
        assert names(disk) == ["k.ptx"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


KILLED = """
import os, signal, sys
from ptxfence.rewrite import atomic
snapshot = atomic.read(sys.argv[1])
real = getattr(os, sys.argv[2])
def die(*arguments):
    if sys.argv[2] == "write":
        real(arguments[0], arguments[1][:100])
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], die)
atomic.replace(snapshot, b"new" * 10000)
"""


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_killed_midway(target: Path, step: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), step], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.read_bytes() == OLD
    atomic.replace(atomic.read(target), NEW)  # what was left behind does not stand in the way
    assert target.read_bytes() == NEW
    left = [n for n in names(target.parent) if n != "k.ptx"]
    assert all(n.startswith(".k.ptx.") and n.endswith(atomic.SUFFIX) for n in left)


def test_file_size_limit(target: Path) -> None:
    """A limit of the system (EFBIG) in the middle of the write."""
    script = (
        "import resource, signal, sys\n"
        "from ptxfence.rewrite import atomic\nfrom ptxfence.errors import InputError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try:\n    atomic.replace(atomic.read(sys.argv[1]), b'x' * 100000)\n"
        "except InputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(target)], capture_output=True, text=True, check=True)
    assert "File too large" in done.stdout
    assert target.read_bytes() == OLD
    assert names(target.parent) == ["k.ptx"]


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_read_errors(tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "absent.ptx"
    with pytest.raises(InputError):
        atomic.read(path)


def test_create(tmp_path: Path) -> None:
    path = tmp_path / "out.ptx"
    mask = os.umask(0o027)
    try:
        atomic.create(path, NEW)
    finally:
        os.umask(mask)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    atomic.create(path, OLD)
    assert path.read_bytes() == OLD
    with pytest.raises(InputError, match="No such file"):
        atomic.create(tmp_path / "absent" / "out.ptx", NEW)
    atomic.create("/dev/null", NEW)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
