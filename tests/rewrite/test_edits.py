"""Inserted lines run where they should, and every other byte stays."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxfence.analysis.report import Edit
from ptxfence.grammar import Function, PtxFile, parse
from ptxfence.rewrite import assemble, edits
from ptxfence.rewrite.layout import transparent

FENCE = "fence.proxy.async.shared::cta;"
HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
DECLARATIONS = "\t.reg .pred %p<4>;\n\t.reg .b32 %r<9>;\n\t.reg .b64 %rd<9>;\n\t.shared .align 16 .b8 tile[64];\n"


def kernel(body: str) -> str:
    return f"{HEAD}.visible .entry k(.param .u64 out)\n{{\n{DECLARATIONS}{body}}}\n"


def function_of(file: PtxFile) -> Function:
    return file.modules[0].functions[0]


def insert(text: str, opcode: str, *, after: bool = False, nth: int = 0) -> str | None:
    """The text with a fence before (after) the `nth` instruction whose opcode starts with `opcode`."""
    file = parse(text)
    function = function_of(file)
    index = [i.index for i in function.instructions if i.opcode.startswith(opcode)][nth]
    point = edits.insertion_after if after else edits.insertion_point
    line = point(file, function, index)
    return None if line is None else edits.apply(text, [Edit(line, FENCE, ("PF101",))])


def neighbours(text: str | None) -> tuple[str, str]:
    """The lines before and after the inserted one."""
    assert text is not None
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if edits.MARKER in line)
    return lines[at - 1].strip(), lines[at + 1].strip()


STORE = "\tst.shared.b32 [tile], %r1;\n"
COPY = "\tcp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64;\n"


def test_plain_line_and_marker() -> None:
    patched = insert(kernel(f"{STORE}\tbar.sync 0;\n{COPY}\tret;\n"), "bar.sync")
    assert patched is not None
    assert f"{STORE}\t{FENCE} // ptxfence PF101\n\tbar.sync 0;\n" in patched


def test_before_the_comment_of_inline_asm_and_outside_its_braces() -> None:
    asm = f"\t// begin inline asm\n\t{{\n\t.reg .pred q;\n\tsetp.ne.b32 q, %r1, 0;\n{COPY}\t}}\n\t// end inline asm\n"
    text = kernel(f"{STORE}\tbar.sync 0;\n{asm}\tret;\n")
    assert neighbours(insert(text, "cp.async")) == ("bar.sync 0;", "// begin inline asm")
    assert neighbours(insert(text, "setp")) == ("bar.sync 0;", "// begin inline asm")
    assert neighbours(insert(text, "cp.async", after=True)) == ("// end inline asm", "ret;")


def test_inside_one_asm_statement_where_nothing_else_is_the_same_point() -> None:
    asm = f"\t// begin inline asm\n{STORE}\tbar.sync 0;\n{COPY}\t// end inline asm\n"
    text = kernel(f"{asm}\tret;\n")
    assert neighbours(insert(text, "bar.sync")) == (STORE.strip(), "bar.sync 0;")


WAIT = (
    "\t// begin inline asm\n\t{\n\t.reg .pred complete;\n\twaitLoop:\n"
    "\tmbarrier.try_wait.parity.shared::cta.b64 complete, [%r3], %r4;\n"
    "\t@!complete bra.uni waitLoop;\n\t}\n\t// end inline asm\n"
)


def test_wait_block_is_never_entered() -> None:
    text = kernel(f"{STORE}{WAIT}{COPY}{WAIT}\tret;\n")
    for nth in (0, 1):
        assert insert(text, "mbarrier", nth=nth) is None
        assert insert(text, "bra", nth=nth) is None
        assert insert(text, "mbarrier", nth=nth, after=True) is None
    assert neighbours(insert(text, "st.shared", after=True)) == (STORE.strip(), "// begin inline asm")
    assert neighbours(insert(text, "bra", after=True)) == ("// end inline asm", COPY.strip())


def test_after_all_labels_and_the_loop_pragma() -> None:
    loop = f'$L1: // loop\n$tmp2:\n\t.pragma "nounroll";\n\t.loc 1 2 3\n{STORE}\t@%p1 bra $L1;\n'
    text = kernel(f"\tmov.b32 %r1, 0;\n{loop}{COPY}\tret;\n")
    assert neighbours(insert(text, "st.shared")) == ('.pragma "nounroll";', ".loc 1 2 3")
    assert neighbours(insert(text, "mov", after=True)) == ("mov.b32 %r1, 0;", "$L1: // loop")
    assert neighbours(insert(text, "bra", after=True)) == ("@%p1 bra $L1;", COPY.strip())


def test_other_pragmas_stay_with_their_instruction() -> None:
    pragma = '\t.pragma "used_bytes_mask 0xfff";\n\tld.global.b32 %r2, [%rd1];\n'
    assert neighbours(insert(kernel(f"{STORE}{pragma}\tret;\n"), "ld")) == (
        STORE.strip(),
        '.pragma "used_bytes_mask 0xfff";',
    )


def test_nothing_falls_out_of_a_jump() -> None:
    text = kernel(f"\tbra $A;\n$A:\n{STORE}\tret;\n")
    assert insert(text, "bra", after=True) is None
    assert neighbours(insert(text, "st.shared")) == ("$A:", STORE.strip())


@pytest.mark.parametrize(
    "line",
    [
        f"$A: {STORE.strip()}\n",
        f"\tbar.sync 0; {STORE.strip()}\n",
        f"\tld.shared.b32 %r2, [tile]; setp.eq.b32 %p1, %r2, 0; {STORE.strip()}\n",
        f"\tbar.sync 0; /* a comment\nof two lines */ {STORE.strip()}\n",
    ],
)
def test_shared_lines_are_not_taken_apart(line: str) -> None:
    assert insert(kernel(f"{line}\tret;\n"), "st.shared") is None


def test_one_line_block_with_harmless_company() -> None:
    block = f"\t{{.reg .pred q; setp.ne.b32 q, %r1, 0; {COPY.strip()} }}\n"
    text = kernel(f"\tbar.sync 0;\n{block}\tret;\n")
    assert neighbours(insert(text, "cp.async")) == ("bar.sync 0;", block.strip())
    assert neighbours(insert(text, "cp.async", after=True)) == (block.strip(), "ret;")


def test_statement_and_comment_over_several_lines() -> None:
    copy = COPY.replace("[%rd1], ", "[%rd1],\n// note\n\t\t")
    text = kernel(f"{STORE}/* one\n two */\n\t@%p1\n{copy}\tret;\n")
    assert neighbours(insert(text, "cp.async")) == (STORE.strip(), "/* one")
    assert neighbours(insert(text, "cp.async", after=True)) == ("[tile], 64;", "ret;")


def test_first_and_last_instruction() -> None:
    text = kernel(f"{STORE}\tret;\n")
    assert neighbours(insert(text, "st")) == (DECLARATIONS.split("\n")[-2].strip(), STORE.strip())
    assert neighbours(insert(kernel(STORE), "st", after=True)) == (STORE.strip(), "}")


def test_line_ends_and_missing_final_newline() -> None:
    text = kernel(f"{STORE}\tret;\n").replace("\n", "\r\n").removesuffix("\r\n")
    patched = insert(text, "ret")
    assert patched is not None
    assert patched == text.replace("\tret;", f"\t{FENCE} // ptxfence PF101\r\n\tret;")


def test_lone_carriage_returns_end_no_comment_so_nothing_is_inserted_there() -> None:
    assert insert(kernel(f"{STORE}\tret;\n").replace("\n", "\r"), "ret") is None


def test_bytes_that_are_no_utf8_survive() -> None:
    raw = kernel(f"// caf\xe9\n{STORE}\tret;\n").encode("latin-1")
    patched = insert(raw.decode("utf-8", "surrogateescape"), "ret")
    assert patched is not None
    added = f"\t{FENCE} // ptxfence PF101\n".encode()
    assert patched.encode("utf-8", "surrogateescape") == raw.replace(b"\tret;", added + b"\tret;")


def test_indentation_is_the_neighbours() -> None:
    text = kernel("   st.shared.b32 [tile], 1;\n$A:\n\n      ret;\n")
    patched = insert(text, "ret")
    assert patched is not None
    assert f"$A:\n      {FENCE}" in patched


def test_two_edits_of_one_line_keep_their_order() -> None:
    assert edits.apply("a\nb\n", [Edit(2, "x;"), Edit(2, "y;"), Edit(1, "z;")]) == "z;\na\nx;\ny;\nb\n"


def test_edits_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="not in the text"):
        edits.apply("a\n", [Edit(9, "x;")])
    with pytest.raises(ValueError, match="not what"):
        edits.apply("a\n", [Edit(1, "", remove="b")])


def test_remove_and_replace() -> None:
    text = kernel(f"{STORE}\t{FENCE}\t// why\r\n\t@%p1 {FENCE} bar.sync 0;\n\tfence.proxy\n\t.async;\n\tret;\n")
    file = parse(text)
    function = function_of(file)
    fences = [i.index for i in function.instructions if i.opcode.startswith("fence")]
    gone = edits.remove_statement(file, function, fences[0])
    assert gone is not None
    assert edits.apply(text, [gone]) == text.replace(f"\t{FENCE}\t// why\r\n", "")
    shared = edits.remove_statement(file, function, fences[1])
    assert shared is not None
    assert edits.apply(text, [shared]) == text.replace(f"@%p1 {FENCE} ", "")
    narrower = edits.replace_opcode(file, function, fences[1], "fence.proxy.async.global")
    assert narrower is not None
    assert edits.apply(text, [narrower]) == text.replace(f"@%p1 {FENCE}", "@%p1 fence.proxy.async.global;")
    assert edits.remove_statement(file, function, fences[2]) is None
    both = edits.apply(text, [gone, Edit(gone.line, "x;"), narrower])
    assert f"{STORE}\tx;\n\t@%p1 fence.proxy.async.global; bar.sync" in both


# --- every point of random layouts -----------------------------------------------------------------

STATEMENTS = (
    "st.shared.b32 [tile], %r1;",
    "bar.sync 0;",
    "add.s32 %r1, %r1, 1;",
    "setp.eq.b32 %p1, %r1, 0;",
    "@%p1 bra $end;",
    "ld.shared.b32 %r2, [tile];",
    ".reg .b32 t%d;",
    '.pragma "nounroll";',
    ".loc 1 2 3\n",
    "$L%d:",
    "{",
    "}",
    "// begin inline asm\n",
    "// end inline asm\n",
    "// note\n",
    "/* a\n b; */",
    "{ .reg .pred q%d; setp.eq.b32 q%d, %%r1, 0; @q%d bra $end; }",
)
GLUE = ("\n\t", "\n", " ", "\n\n\t", "\r\n\t")


@st.composite
def bodies(draw: st.DrawFn) -> str:
    pieces: list[str] = []
    depth = 0
    for number, choice in enumerate(draw(st.lists(st.sampled_from(STATEMENTS), max_size=25))):
        if choice == "}" and depth == 0:
            continue
        depth += {"{": 1, "}": -1}.get(choice, 0)
        pieces.append(choice.replace("%d", str(number)).replace("%%", "%"))
        pieces.append(draw(st.sampled_from(GLUE)))
    pieces += ["}\n"] * depth
    return "\t" + "".join(pieces) + "\n$end:\n\tret;\n"


def check_every_point(text: str, count: int) -> None:
    file = parse(text)
    assert not file.errors
    function = function_of(file)
    total = len(function.instructions)
    chosen = range(total) if total <= count else sorted(random.Random(1).sample(range(total), count))
    for index in chosen:
        check_point(text, file, function, index)


def check_point(text: str, file: PtxFile, function: Function, index: int) -> None:
    for after in (False, True):
        point = edits.insertion_after if after else edits.insertion_point
        line = point(file, function, index)
        if line is None:
            continue
        patched = edits.apply(text, [Edit(line, FENCE, ("PF101",))])
        again = parse(patched)
        assert not again.errors
        new = function_of(again)
        at = next(i.index for i in new.instructions if patched.startswith(" // ptxfence", i.end))
        assert len(new.instructions) == len(function.instructions) + 1
        begin = patched.rindex("\n", 0, new.instructions[at].start) + 1
        assert patched[:begin] + patched[patched.index("\n", begin) + 1 :] == text
        between = function.instructions[index + 1 : at] if after else function.instructions[at:index]
        assert at > index if after else at <= index
        assert all(transparent(i) for i in between)
        for label, target in function.labels.items():
            # Before: the line runs after all labels of its gap; after: labels of its gap skip it.
            stays = target <= at if not after else target < at
            assert new.labels[label] == (target if stays else target + 1)
            assert after or not at < target <= index


@settings(max_examples=150, deadline=None)
@given(bodies())
def test_every_point_of_random_layouts(body: str) -> None:
    check_every_point(kernel(body), 12)


def test_ptxas_takes_a_line_at_every_point() -> None:
    if not assemble.available():
        pytest.skip("no ptxas on this machine")
    block = f"\t{{.reg .pred q; setp.ne.b32 q, %r1, 0; @q {STORE.strip()} }}\n"
    loop = f'$L1:\n\t.pragma "nounroll";\n{STORE}{block}\tbar.sync 0;\n\t@%p1 bra $L1;\n'
    body = "\tmov.b32 %r3, tile;\n\tmov.b32 %r4, 0;\n\tmov.b32 %r1, 0;\n\tsetp.eq.b32 %p1, %r1, 1;\n"
    text = kernel(f"{body}{loop}{WAIT}\tld.param.u64 %rd1, [out];\n{COPY}\tret;\n")
    file = parse(text)
    function = function_of(file)
    points: set[int | None] = set()
    for index in range(len(function.instructions)):
        points |= {edits.insertion_point(file, function, index), edits.insertion_after(file, function, index)}
    found = sorted(line for line in points if line is not None)
    assert len(found) >= 12
    patched = edits.apply(text, [Edit(line, FENCE, ("PF101",)) for line in found])
    assert assemble.assemble(patched).startswith(b"\x7fELF")


# --- diffs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["k.ptx", "two words.ptx"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("final", [True, False])
def test_patch_applies_the_diff(tmp_path: Path, name: str, end: str, final: bool) -> None:
    before = kernel(STORE * 12 + f"\tbar.sync 0;\n{COPY}" + STORE * 12 + "\tret;\n").replace("\n", end)
    before = before if final else before.removesuffix(end)
    patched = insert(before, "bar.sync")
    assert patched is not None
    file = parse(patched)
    last = edits.insertion_after(file, function_of(file), len(function_of(file).instructions) - 2)
    assert last is not None
    after = edits.apply(patched, [Edit(last, FENCE)])
    target = tmp_path / name
    target.write_bytes(before.encode())
    shown = edits.diff(name, before, after)
    assert shown.count("@@ -") == 2
    done = subprocess.run(["patch", "-p0"], input=shown.encode(), cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stdout
    assert target.read_bytes() == after.encode()


def test_diff_of_a_changed_last_line_without_newline(tmp_path: Path) -> None:
    before, after = "a\nb", "a\nc"
    (tmp_path / "k").write_text(before)
    shown = edits.diff("k", before, after)
    subprocess.run(["patch", "-p0"], input=shown.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "k").read_text() == after
    assert edits.diff("k", before, before) == ""
