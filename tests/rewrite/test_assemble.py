"""ptxas: found in the stated order, chosen by what it accepts, and harmless when it fails or hangs."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import pytest

from ptxfence.errors import AssemblyError
from ptxfence.rewrite import assemble, sass, tools

KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
\t.reg .b64 %rd<3>;
\t.shared .align 16 .b8 tile[64];
\tst.shared.b32 [tile], 1;
\tfence.proxy.async.shared::cta;
\tbar.sync 0;
\tld.param.u64 %rd1, [p];
\tcp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64;
\tcp.async.bulk.commit_group;
\tcp.async.bulk.wait_group 0;
\tret;
}
"""
FENCE = "\tfence.proxy.async.shared::cta;\n"


@pytest.fixture
def real_ptxas() -> tools.Tool:
    found = tools.find("ptxas")
    if not found:
        pytest.skip("no ptxas on this machine")
    return found[0]


def fake(folder: Path, name: str, release: str, body: str) -> str:
    """An executable that answers --version as NVIDIA's tools do and else runs `body` (Python)."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        "if '--version' in sys.argv:\n"
        f"    print('Cuda compilation tools, release {release}, V{release}.1')\n    sys.exit()\n"
        f"output = sys.argv[sys.argv.index('-o') + 1] if '-o' in sys.argv else None\n{body}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


WRITES = "open(output, 'wb').write(b'\\x7fELF')"
TOO_NEW = (
    "sys.stderr.write(\"ptxas in.ptx, line 1; fatal   : Unsupported .version 8.0; current version is '7.0'\\n\")\n"
    "sys.exit(255)"
)


@pytest.fixture
def only_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine where tools can only be found on PATH (and in what the test adds)."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for variable in ("PTXFENCE_PTXAS", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(tools, "_package_roots", lambda package: iter([tmp_path / package]))
    return tmp_path


def test_real_ptxas(real_ptxas: tools.Tool) -> None:
    built = assemble.build(KERNEL)
    assert built.cubin.startswith(b"\x7fELF")
    assert built.arch == "sm_90a"
    assert built.resources["k"].shared == 64
    assert built.resources["k"].registers is not None
    assert built.ptxas.release >= real_ptxas.release


def test_diagnostics_name_the_line_of_the_file(real_ptxas: tools.Tool) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble.assemble(KERNEL.replace("bar.sync 0", "bar.sink 0"), filename="dir/k.ptx")
    assert any(line.startswith("dir/k.ptx:10: ") for line in caught.value.diagnostics)
    assert "in.ptx" not in str(caught.value)


def test_library_with_open_functions(real_ptxas: tools.Tool) -> None:
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n"
    text = f"{head}.extern .func f();\n.visible .entry k()\n{{ call f, ();\nret; }}\n"
    assert assemble.assemble(text).startswith(b"\x7fELF")


def test_other_architecture_than_the_target(real_ptxas: tools.Tool) -> None:
    text = KERNEL.replace("sm_90a", "sm_90")
    assert assemble.build(text, "sm_90a").arch == "sm_90a"


@pytest.mark.parametrize(
    ("text", "arch"),
    [
        (".version 8.0\n.target sm_90a, debug\n", "sm_90a"),
        (".version 8.0 .target sm_100f", "sm_100f"),
        ("// .target sm_10\n.target\tsm_120a\n", "sm_120a"),
    ],
)
def test_target_of(text: str, arch: str) -> None:
    assert assemble.target_of(text) == arch


def test_text_without_target() -> None:
    with pytest.raises(AssemblyError, match=r"no \.target"):
        assemble.assemble("garbage")


def test_nothing_found(only_path: Path) -> None:
    assert tools.find("ptxas") == ()
    assert not assemble.available()
    with pytest.raises(AssemblyError, match="no ptxas found"):
        assemble.assemble(KERNEL)


def test_order_and_newest_first(only_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    triton = only_path / "triton" / "backends" / "nvidia" / "bin"
    fake(only_path / "bin", "ptxas", "12.9", WRITES)
    fake(triton, "ptxas", "12.8", WRITES)
    fake(triton, "ptxas-blackwell", "13.0", WRITES)
    package = fake(only_path / "nvidia" / "cu13" / "bin", "ptxas", "13.0", WRITES)
    home = only_path / "home"
    fake(home / "bin", "ptxas", "13.1", WRITES)
    monkeypatch.setenv("CUDA_HOME", str(home))
    found = tools.find("ptxas")
    assert [(t.release, t.origin) for t in found] == [
        ((13, 1), "CUDA_HOME"),
        ((13, 0), "package"),
        ((13, 0), "triton"),
        ((12, 9), "PATH"),
        ((12, 8), "triton"),
    ]
    monkeypatch.setenv("PTXFENCE_PTXAS", package)
    assert [t.path for t in tools.find("ptxas")] == [package]


def test_variable_that_names_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PTXFENCE_PTXAS", str(tmp_path / "absent"))
    with pytest.raises(AssemblyError, match="PTXFENCE_PTXAS"):
        assemble.assemble(KERNEL)


def test_broken_copy_is_passed_over(only_path: Path) -> None:
    good = fake(only_path / "bin", "ptxas", "12.9", WRITES)
    broken = only_path / "nvidia" / "cu13" / "bin" / "ptxas"
    broken.parent.mkdir(parents=True)
    broken.write_text("not a program")
    broken.chmod(0o755)
    assert [t.path for t in tools.find("ptxas")] == [good]


def test_first_copy_that_takes_the_file(only_path: Path) -> None:
    fake(only_path / "nvidia" / "cu13" / "bin", "ptxas", "13.9", TOO_NEW)
    fake(only_path / "bin", "ptxas", "12.9", WRITES)
    assert assemble.build(KERNEL).ptxas.release == (12, 9)


def test_no_copy_takes_the_file(only_path: Path) -> None:
    fake(only_path / "nvidia" / "cu13" / "bin", "ptxas", "13.9", TOO_NEW)
    fake(only_path / "bin", "ptxas", "12.9", TOO_NEW)
    with pytest.raises(AssemblyError) as caught:
        assemble.assemble(KERNEL, filename="k.ptx")
    assert [line[:11] for line in caught.value.diagnostics] == ["ptxas 13.9:", "ptxas 12.9:"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit(1)", "failed with status 1 and no message"),
        ("pass", "wrote no cubin"),
        ("open(output, 'w').write('text')", "wrote no cubin"),
        ("os.kill(os.getpid(), 11)", "ended by signal 11"),
    ],
)
def test_ptxas_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    monkeypatch.setenv("PTXFENCE_PTXAS", fake(tmp_path, "ptxas", "13.0", body))
    with pytest.raises(AssemblyError, match=message):
        assemble.assemble(KERNEL)


def test_ptxas_that_hangs_is_stopped_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "child"
    body = (
        "import subprocess\n"
        f"child = subprocess.Popen(['sleep', '60'])\nopen({str(note)!r}, 'w').write(str(child.pid))\ntime.sleep(60)"
    )
    monkeypatch.setenv("PTXFENCE_PTXAS", fake(tmp_path, "ptxas", "13.0", body))
    begin = time.monotonic()
    with pytest.raises(AssemblyError, match=r"did not end within 1.5 s"):
        assemble.assemble(KERNEL, timeout=1.5)
    assert time.monotonic() - begin < 10
    child = Path("/proc") / note.read_text() / "stat"
    deadline = time.monotonic() + 5
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not child.exists() or child.read_text().split()[2] == "Z"


def test_flood_of_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "for _ in range(300000): sys.stderr.write('ptxas in.ptx, line 3; error   : no\\n')\nsys.exit(1)"
    monkeypatch.setenv("PTXFENCE_PTXAS", fake(tmp_path, "ptxas", "13.0", body))
    with pytest.raises(AssemblyError) as caught:
        assemble.assemble(KERNEL)
    assert len(caught.value.diagnostics) < 100000


def test_version_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake(tmp_path, "ptxas", "13.0", WRITES)
    monkeypatch.setenv("PTXFENCE_PTXAS", path)
    tools.find("ptxas")
    calls: list[object] = []
    monkeypatch.setattr(tools, "run", lambda *_, **__: calls.append(1))
    assert tools.find("ptxas")[0].release == (13, 0)
    assert not calls


LISTING = """
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @!P0 MEMBAR.ALL.CTA ;
        /*0020*/                   FENCE.VIEW.ASYNC.S ;
        /*0030*/                   STS.128 [R1], R4 ;
.L_x_1:
        /*0040*/                   NOP ;
		Function : other
        /*0000*/                   EXIT ;                   /* 0x00000a00ff017b82 */
                                                            /* 0x000ff00000000800 */
"""


def fake_disassembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints as listing what stands in the cubin after its first line."""
    body = "print(open(sys.argv[-1]).read().split('\\n', 1)[1])"
    monkeypatch.setenv("PTXFENCE_NVDISASM", fake(tmp_path, "nvdisasm", "13.0", body))


def assembly(listing: str, registers: int = 8) -> assemble.Assembly:
    tool = tools.Tool("ptxas", (13, 0), "test")
    return assemble.Assembly(f"\x7fELF\n{listing}".encode(), tool, "sm_90a", {"k": assemble.Resources(registers)})


def test_histogram_of_both_tools_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_disassembler(tmp_path, monkeypatch)
    found = sass.histogram(assembly(LISTING).cubin)
    assert found["k"] == {"LDC": 1, "MEMBAR.ALL.CTA": 1, "FENCE.VIEW.ASYNC.S": 1, "STS.128": 1, "NOP": 1}
    assert found["other"] == {"EXIT": 1}


def test_compare_tells_fences_from_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_disassembler(tmp_path, monkeypatch)
    without = LISTING.replace("MEMBAR.ALL.CTA", "NOP").replace("FENCE.VIEW.ASYNC.S", "NOP")
    (change,) = sass.compare(assembly(without), assembly(LISTING))
    assert change.only_fences
    assert change.fences == {"MEMBAR.ALL.CTA": 1, "FENCE.VIEW.ASYNC.S": 1}
    assert sass.compare(assembly(LISTING), assembly(LISTING)) == ()
    (change,) = sass.compare(assembly(without), assembly(LISTING.replace("STS.128", "STS.64"), registers=9))
    assert not change.only_fences
    assert change.others == {"STS.128": -1, "STS.64": 1}
    assert "k: registers 8 -> 9" in change.lines()


def test_failing_disassembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXFENCE_NVDISASM", fake(tmp_path, "nvdisasm", "13.0", "sys.exit('no')"))
    with pytest.raises(AssemblyError, match="status 1"):
        sass.histogram(b"\x7fELF")


def test_without_disassembler_resources_are_compared(only_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PTXFENCE_NVDISASM", raising=False)
    (change,) = sass.compare(assembly(LISTING, 8), assembly(LISTING, 10))
    assert change.lines() == ("k: registers 8 -> 10",)


def test_real_fence_in_real_code(real_ptxas: tools.Tool) -> None:
    if sass.disassembler() is None:
        pytest.skip("no nvdisasm and no cuobjdump on this machine")
    before, after = assemble.build(KERNEL.replace(FENCE, "")), assemble.build(KERNEL)
    (change,) = sass.compare(before, after)
    assert change.fences == {"FENCE.VIEW.ASYNC.S": 1, "MEMBAR.ALL.CTA": 1}
    assert not change.spills_more
