"""Level 1: files, modules, functions, statements, scopes, positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxfence.grammar import PtxFile, parse, validate
from ptxfence.grammar.function import Function
from ptxfence.grammar.model import FunctionKind, Register, SourceLocation, Symbol
from tests.grammar.assembler import Verdict, assemble, ptxas

FEATURES = Path(__file__).with_name("data") / "features.ptx"
HEADER = ".version 8.7\n.target sm_90a, debug\n.address_size 64\n"


def kernel(body: str, before: str = "") -> Function:
    file = parse(f"{HEADER}{before}.visible .entry k(.param .u64 p)\n{{\n{body}\n}}\n")
    assert file.errors == ()
    return file.modules[0].functions[-1]


@pytest.fixture(scope="module")
def features() -> PtxFile:
    return parse(FEATURES.read_text(encoding="utf-8"), "features.ptx")


@pytest.mark.skipif(ptxas() is None, reason="no ptxas")
def test_features_assemble():
    assert assemble(FEATURES.read_text(encoding="utf-8"), "sm_90a") == (Verdict.ACCEPTED, "")


def test_features_are_valid(features: PtxFile):
    assert validate(features) == ()
    assert features.text == FEATURES.read_text(encoding="utf-8")


def test_module_header():
    module = parse(HEADER + '.file 1 "a.py"\n.file 2 "b.py", 1, 2\n').modules[0]
    assert (module.version, module.target, module.targets) == ("8.7", "sm_90a", ("sm_90a", "debug"))
    assert (module.address_size, module.files) == (64, {1: "a.py", 2: "b.py"})


def test_functions(features: PtxFile):
    functions = features.modules[0].functions
    assert [(item.name, item.kind, item.has_body) for item in functions[:4]] == [
        ("vprintf", FunctionKind.FUNC, False),
        ("helper", FunctionKind.FUNC, False),
        ("noreturn_helper", FunctionKind.FUNC, True),
        ("helper", FunctionKind.FUNC, True),
    ]
    entry = next(item for item in functions if item.kind is FunctionKind.ENTRY)
    assert dict(entry.directives) == {"maxntid": (128, 1, 1), "minnctapersm": (1,), "pragma": ()}
    assert [(item.name, item.align, item.size) for item in entry.params] == [
        ("pointer", 8, 8),
        ("plain_pointer", 8, 8),
        ("descriptor", 64, 128),
        ("count", 4, 4),
    ]
    assert [item.name for item in functions[3].returns] == ["out"]
    assert features.text[entry.start :].startswith(".visible .entry features(")
    assert features.text[entry.end - 1] == "}"
    assert entry.line == features.text[: entry.start].count("\n") + 1


def test_variables(features: PtxFile):
    found = features.modules[0].variables
    sizes = {
        name: (found[name].space, found[name].align, found[name].size) for name in ("global_smem", "table", "tile")
    }
    assert sizes == {"global_smem": ("shared", 16, None), "table": ("global", 4, 32), "tile": ("shared", 16, 2048)}
    assert features.text[found["table"].start : found["table"].end] == "table"
    assert found["tile"].function == "features"
    assert found["four"].size == 16


def test_same_variable_in_two_functions_is_told_apart():
    body = "{ .shared .b32 s[4]; mov.b32 %r1, s; ret; }\n"
    file = parse(HEADER + f".entry a() {body}.entry b() {body}.entry c() {{ .shared .b32 t; ret; }}\n")
    module = file.modules[0]
    assert sorted(module.variables) == ["s@a", "s@b", "t"]
    assert [function.instructions[0].operands[1] for function in module.functions[:2]] == [Symbol("s@a"), Symbol("s@b")]


def test_instructions_and_spans():
    function = kernel("@!%p1 add .s32 %r1,\n\t%r2, 1; bra.uni L; L: ret;")
    add, bra, ret = function.instructions
    assert (add.opcode, add.guard, add.guard_negated) == ("add.s32", "%p1", True)
    assert add.text == "@!%p1 add .s32 %r1,\n\t%r2, 1;"
    assert (bra.opcode, bra.operand_text, ret.opcode, ret.operands) == ("bra.uni", " L", "ret", ())
    assert [item.index for item in function.instructions] == [0, 1, 2]
    assert dict(function.labels) == {"L": 2}


@pytest.mark.parametrize(
    "text",
    [
        "add.s32 %r1, %r2, 1;",
        "add.s32\t%r1,%r2,1;",
        "/* a ; } */ add.s32 /* { */ %r1, // x ; }\n %r2, 1 ;",
        "add.s32\r\n%r1,\r\n%r2,\r\n1\r\n;\r\n",
        "add /* x */ .s32 %r1, %r2, 1;",
        "add\n.s32 %r1, %r2, 1;",
    ],
)
def test_layout_does_not_matter(text: str):
    (add,) = kernel(text).instructions
    assert add.opcode == "add.s32"
    assert len(add.operands) == 3


def test_scopes_and_shadowing():
    function = kernel(
        ".reg .b32 %r<4>; .reg .pred q;\n"
        "{ .reg .pred done; loop: @!done bra loop; }\n"
        "{ .reg .pred done; mov.b32 %r1, 1; .reg .b32 %r1; loop: @done bra loop; mov.b32 %r1, %r2; bra OUT; }\n"
        "OUT: mov.b32 %r1, 2; @q bra OUT; END:"
    )
    first, early, second, late, out, outer, last = function.instructions
    assert (first.guard, first.operands) == ("done#1", (Symbol("loop#1"),))
    assert (second.guard, second.operands) == ("done#2", (Symbol("loop#2"),))
    names = [str(getattr(item.operands[0], "name", "")) for item in (early, late, out, outer)]
    assert names == ["%r1", "%r1#2", "OUT", "%r1"]
    assert (last.guard, [item.scope for item in function.instructions]) == ("q", [1, 2, 2, 2, 2, 0, 0])
    assert dict(function.labels) == {"loop#1": 0, "loop#2": 2, "OUT": 5, "END": 7}
    assert function.registers["%r1#2"] == "b32"
    assert function.registers["done#1"] == "pred"
    assert "%r4" not in function.registers
    assert len(function.registers) == len(list(function.registers)) == 8


def test_ranges_with_digits_in_the_stem():
    registers = kernel(".reg .b32 %a1_<4>, %b2<12>; .reg .b64 %b<3>;").registers
    assert (registers["%a1_3"], registers["%b211"], registers["%b2"]) == ("b32", "b32", "b64")
    assert all(name not in registers for name in ("%a1_4", "%b212", "%b02", "%b3", "%b"))


def test_target_lists():
    function = kernel(
        "A: ts: .branchtargets A, B; brx.idx %r1, ts; B: fs: .calltargets f, g;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b64 _); ret;",
        ".func f() { ret; }\n.func g() { ret; }\n",
    )
    assert dict(function.targets) == {"ts": ("A", "B"), "fs": ("f", "g")}
    assert dict(function.prototypes) == {"proto": "(.param .b32 _) _ (.param .b64 _)"}
    assert dict(function.labels) == {"A": 0, "B": 1}
    assert function.instructions[0].operands[1] == Symbol("ts")


def test_source_locations():
    function = kernel(
        "ret;\n.loc 1 10 3\nret;\n.loc 2 20 4, function_name $L, inlined_at 1 10 3\nret; ret; // .loc 1 99 1\nret;"
        "\n.loc 1 0 0\nret;",
        '.file 1 "a.py"\n.file 2 "b.py"\n',
    )
    outer, inner = SourceLocation("a.py", 10, 3), SourceLocation("b.py", 20, 4)
    assert [function.source_at(index) for index in range(6)] == [None, outer, inner, inner, inner, None]
    assert function.inline_chain(1) == (outer,)
    assert function.inline_chain(3) == (inner, outer)


def test_several_modules_and_dump_headers():
    module = HEADER + ".entry k() { ret; }\n"
    dump = "\nFatbin ptx code:\n================\narch = sm_90\ncode version = [9,0]\ncompressed\nptxasOptions = \n\n"
    file = parse(
        dump + module + dump + module.replace("8.7", "8.6") + "Fatbin elf code:\n================\narch = sm_90\n"
    )
    assert validate(file) == ()
    assert [(item.version, len(item.functions)) for item in file.modules] == [("8.7", 1), ("8.6", 1)]
    assert file.modules[0].end == file.modules[1].start


def test_what_newer_compilers_print():
    file = parse(
        HEADER + ".visible .entry k(.hidden .param .u32 p)\n.reqntid 128\n.language 7\n.blocksareclusters\n{\n"
        '.pragma "next knob 0x1";\n.loc_intermediate 1 2 3\nret;\n}\n'
        ".nv_intermediate_source_section {\n.code_block {\n.ir_name x\n.source_begin\n"
        'if { } } %name ; "\n.source_end\n}\n}\n.entry after() { ret; }\n'
    )
    assert validate(file) == ()
    assert [item.name for item in file.modules[0].functions] == ["k", "after"]
    assert dict(file.modules[0].functions[0].directives)["language"] == (7,)


def test_positions():
    file = parse("ab\r\ncd\nef\rgh")
    assert [file.position(offset) for offset in (0, 3, 4, 7, 10)] == [(1, 1), (1, 4), (2, 1), (3, 1), (4, 1)]
    assert [file.line_text(line) for line in range(6)] == ["", "ab", "cd", "ef", "gh", ""]


def test_byte_order_mark_is_kept():
    file = parse("\ufeff" + HEADER)
    assert file.errors == ()
    assert file.text[0] == "\ufeff"


def test_register_parameters_are_registers():
    file = parse(HEADER + ".func (.reg .f32 o) f (.reg .b32 i) { cvt.rn.f32.s32 o, i; ret; }\n")
    callee = file.modules[0].functions[0]
    assert callee.instructions[0].operands == (Register("o"), Register("i"))
    assert dict(callee.registers) == {"o": "f32", "i": "b32"}
    assert [item.space for item in callee.returns + callee.params] == ["reg", "reg"]
