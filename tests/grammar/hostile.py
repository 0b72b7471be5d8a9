"""Texts that try to make the front end slow, deep or big: name -> maker of a text of about `n` repetitions."""

from __future__ import annotations

from collections.abc import Callable

HEADER = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def _body(text: str) -> str:
    return f"{HEADER}.entry k() {{\n{text}\n}}\n"


CASES: dict[str, Callable[[int], str]] = {
    "labels": lambda n: _body("".join(f"L{i}: " for i in range(n))),
    "same label": lambda n: _body("L: " * n),
    "one line": lambda n: _body("add.s32 %r1, %r2, %r3; " * n),
    "no semicolons": lambda n: _body("add.s32 %r1, %r2, %r3\n" * n),
    "open braces": lambda n: f"{HEADER}.entry k() " + "{" * n,
    "nested braces": lambda n: f"{HEADER}.entry k() " + "{" * n + "}" * n,
    "nested uses": lambda n: _body("{ @p ret; " * min(n, 20_000) + "}" * min(n, 20_000)),
    "words and braces": lambda n: _body("a{" * n),
    "words and pairs": lambda n: _body("a{}" * n),
    "NUL in a body": lambda n: _body("\0" * n),
    "NUL outside": lambda n: "\0" * n,
    "open comment": lambda n: _body("/*" + " mov" * n),
    "comment openers": lambda n: _body("/* " * n),
    "open string": lambda n: _body('.pragma "' + " mov" * n),
    "slashes": lambda n: _body("a/ " * n),
    "quotes": lambda n: _body('"' * (n + 1)),
    "parentheses": lambda n: _body("add.s32 " + "(" * n + ";"),
    "brackets": lambda n: _body("add.s32 " + "[" * n + ";"),
    "minus": lambda n: _body("add.s32 " + "-" * n + "1;"),
    "sum": lambda n: _body("add.s32 " + "1+" * n + "1;"),
    "operands": lambda n: _body("add.s32 " + "%r1, " * n + "1;"),
    "one name": lambda n: _body("add.s32 " + "a" * n + ";"),
    "register range": lambda _: _body(".reg .b32 %r<2000000000>; add.s32 %r1, %r2, %r1999999999;"),
    "registers": lambda n: _body("".join(f".reg .b32 r{i};\n" for i in range(n // 4))),
    "dots": lambda n: _body("." * n),
    "guards": lambda n: _body("@!%p " * n),
    "loc": lambda n: _body(".loc " * n),
    "lines": lambda n: _body(" \r\n" * n),
    "semicolons": lambda n: ";" * n,
    "directives": lambda n: ".foo " * n,
    "versions": lambda n: ".version 8.0 " * (n // 10),
    "functions": lambda n: HEADER + ".entry k(){ret;}\n" * (n // 10),
    "initialiser": lambda n: f"{HEADER}.global .b32 a[{n}] = {{" + "1, " * n + "1};",
    "bad initialiser": lambda n: f"{HEADER}.global .b32 a[{n}] = {{" + "1, " * n + "};",
    "nested initialiser": lambda n: f"{HEADER}.global .b32 a[3] = " + "{" * n + "1" + "}" * n + ";",
    "dimensions": lambda n: f"{HEADER}.global .b32 a" + "[99999999999]" * (n // 10) + ";",
    "digits": lambda n: _body("add.s32 " + "1" * n + ";"),
    "product": lambda _: _body("add.s32 " + "*".join(["999999999999999999"] * 150) + ";"),
    "exponent": lambda n: _body("add.f32 1e" + "9" * n + ";"),
    "shift": lambda _: _body("add.s32 1 << 999999999999;"),
    "parameters": lambda n: f"{HEADER}.entry k(" + ".param .b32 a, " * (n // 10) + ".param .b32 b) { ret; }",
    "open parameters": lambda n: f"{HEADER}.entry k" + "(" * n,
    "shapes": lambda n: _body("".join(f"add.s32 {i:b};".replace("0", "a,").replace("1", "2,") for i in range(n // 40))),
    "not ASCII": lambda n: _body("\u00e9" * n),
    "byte order marks": lambda n: "\ufeff" * n,
    "lone bytes": lambda n: _body("\udcff" * n),
    "target list": lambda n: _body("ts: .branchtargets " + "L, " * n + "L;"),
    "sources": lambda n: HEADER + ".nv_intermediate_source_section {" + ".source_begin " * n,
    "section": lambda n: HEADER + ".section .debug {" + ".b8 1 " * n + "}",
    "sections": lambda n: HEADER + ".section .debug {" * n,
    "dump": lambda n: "Fatbin ptx code:\n===\n" * n,
    "files": lambda n: HEADER + '.file 1 "' * n,
    "aliases": lambda n: HEADER + ".alias " + "a," * n + "a;",
}
