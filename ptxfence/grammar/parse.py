"""Level 1 of a file: module directives, variables and function headers; bodies are cut out by brace matching."""

from __future__ import annotations

import re

from ptxfence.errors import PtxSyntaxError
from ptxfence.grammar.declarations import declared, variable
from ptxfence.grammar.function import HEADER, Function
from ptxfence.grammar.lexical import COMMENT, GAP, STRING, blank_comments
from ptxfence.grammar.lines import Lines
from ptxfence.grammar.module import MAX_ERRORS, Module, PtxFile
from ptxfence.grammar.shapes import ShapeError, refusal
from ptxfence.grammar.statements import closing_brace


def _pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(source, flags | re.ASCII)


_GAP = _pattern(GAP)
# What `cuobjdump -ptx` prints before each module.
_DUMP = r"Fatbin \w++ code:[ \t\r]*+\n=++[ \t\r]*+\n(?:[A-Za-z][\w ]*+(?:=[^\n]*+)?\r?\n)*+"
_WORD = _pattern(rf"\.([A-Za-z_]\w*+)|(@@DWARF[^\n]*+|{_DUMP})|(;)")
_VERSION = _pattern(rf"\.version{GAP}(\d++\.\d++)")
_TARGET = _pattern(rf"\.target{GAP}([A-Za-z]\w*+(?:{GAP},{GAP}[A-Za-z]\w*+)*+)")
_ADDRESS_SIZE = _pattern(rf"\.address_size{GAP}(\d++)")
_FILE = _pattern(rf'\.file{GAP}(\d++){GAP}"([^"]*+)"(?:{GAP},{GAP}\w++{GAP},{GAP}\w++)?')
_TO_BRACE = _pattern(rf"(?:[^{{;/\"]++|{COMMENT}|/|{STRING})*+")
_PRAGMA = rf"\.pragma\b{GAP}{STRING}(?:{GAP},{GAP}{STRING})*+{GAP};"  # in a function header too
_HEAD = _pattern(rf"(?:{_PRAGMA}|[^;{{}}=/\".]++|\.|{COMMENT}|/|{STRING})*+")
_TO_END = _pattern(rf"(?:[^;{{}}=/\"]++|{COMMENT}|/|{STRING})*+")
_VALUE = _pattern(rf"(?:[^;/\"]++|{COMMENT}|/|{STRING})*+")
_SECTION = _pattern(rf"\.section{GAP}\.[A-Za-z_][\w.]*+{GAP}")
_LINE = _pattern(r"[^\n]*+")
_RECOVERY = _pattern(r"[^;\n]*+(?:;|\n(?=\s*+\.)|\n|\Z)")


def parse(text: str, filename: str = "<string>") -> PtxFile:
    """Reads PTX. Never raises on bad text: `PtxFile.errors` lists what ptxas would refuse while parsing."""
    return _Parser(text, filename).run()


class _Parser:
    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        self.lines = Lines(text, filename)
        self.at = 0
        self.modules: list[Module] = []
        self.functions: list[Function] = []
        self.errors: list[PtxSyntaxError] = []

    def run(self) -> PtxFile:
        text = self.text
        self.at = 1 if text.startswith("\ufeff") else 0
        while len(self.errors) < MAX_ERRORS:
            self.at = _end(_GAP.match(text, self.at))
            if self.at >= len(text):
                break
            word = _WORD.match(text, self.at)
            if word is None:
                self._error("expected a directive", self.at)
                self._recover()
            elif word[1] is None:
                if word[3]:
                    self._error("unexpected ';'", self.at)
                self.at = word.end()
            else:
                self._directive(word[1])
        self._close_module(len(text))
        if not self.modules:
            self._error("expected .version: this is no PTX", 0)
        return PtxFile(text, self.lines.filename, tuple(self.modules), self.lines, tuple(self.errors))

    def _directive(self, word: str) -> None:
        if word == "version":
            return self._version()
        if not self.modules:
            self._error(f"expected .version before .{word}", self.at)
            self.modules.append(Module("", self.at))
        if word == "target":
            return self._target()
        if word == "address_size":
            return self._address_size()
        if word == "file":
            return self._file()
        if word in ("section", "nv_intermediate_source_section"):
            return self._block(word)
        if word == "loc":
            self.at = _end(_LINE.match(self.text, self.at))
            return None
        return self._declaration(word)

    def _version(self) -> None:
        match = _VERSION.match(self.text, self.at)
        if match is None:
            return self._fail("expected a number after .version")
        self._close_module(self.at)
        self.modules.append(Module(match[1], self.at))
        self.at = match.end()
        return None

    def _close_module(self, end: int) -> None:
        if self.modules:
            self.modules[-1].end = end
            self.modules[-1].functions = tuple(self.functions)
        self.functions = []

    def _target(self) -> None:
        match = _TARGET.match(self.text, self.at)
        if match is None:
            return self._fail("expected a target after .target")
        if self.modules[-1].targets:
            return self._fail("a second .target")
        self.modules[-1].targets = tuple(re.findall(r"\w+", re.sub(COMMENT, " ", match[1])))
        self.at = match.end()
        return None

    def _address_size(self) -> None:
        match = _ADDRESS_SIZE.match(self.text, self.at)
        if match is None or match[1] not in ("32", "64"):
            return self._fail("expected 32 or 64 after .address_size")
        self.modules[-1].address_size = int(match[1])
        self.at = match.end()
        return None

    def _file(self) -> None:
        match = _FILE.match(self.text, self.at)
        if match is None:
            return self._fail('expected a number and a "name" after .file')
        self.modules[-1].files[int(match[1])] = match[2]
        self.at = match.end()
        return None

    def _block(self, word: str) -> None:
        opening = _end(_TO_BRACE.match(self.text, self.at))
        if word == "section" and _SECTION.fullmatch(self.text, self.at, opening) is None:
            return self._fail("expected a .name after .section")
        if self.text[opening : opening + 1] != "{":
            return self._fail(f"expected '{{' after .{word}")
        inside, depth = opening, 0
        if word != "section":
            inside, depth = self._source_end(opening)
        closing = closing_brace(self.text, inside, depth)
        if closing is None:
            self._error("this '{' is never closed", opening)
            self.at = len(self.text)
            return None
        self.at = closing + 1
        if word == "section":
            self.modules[-1].sections.append((opening + 1, closing))
        return None

    def _source_end(self, opening: int) -> tuple[int, int]:
        """Past `.source_end` of cuTile's source section, whose text has braces of its own: (offset, open braces)."""
        begin = self.text.find(".source_begin", opening)
        end = self.text.find(".source_end", begin) if begin >= 0 else -1
        if end < 0:
            return opening, 0
        return end, self.text.count("{", opening, begin) - self.text.count("}", opening, begin)

    def _declaration(self, word: str) -> None:
        start = self.at
        end = _end(_TO_END.match(self.text, start))
        header = HEADER.search(self.text, start, end)
        if header is not None:
            end = _end(_HEAD.match(self.text, header.end()))
        stop = self.text[end : end + 1]
        if header is not None:
            return self._function(header, start, end, stop)
        if stop == "=":
            end = self._initialiser(end)
            stop = self.text[end : end + 1]
        if stop != ";":
            self._error("expected ';'", start + len(blank_comments(self.text[start:end]).rstrip()))
            self.at = end
            return self._recover()
        self._variables(word, start, end)
        self.at = end + 1
        return None

    def _variables(self, word: str, start: int, end: int) -> None:
        """The names of a declaration; `.alias` and `.pragma` are looked at only for their form."""
        rule = {"alias": "names", "pragma": "strings"}.get(word)
        try:
            if rule is not None:
                error = refusal(self.text[start + len(word) + 1 : end], rule)
                if error is not None:
                    raise ShapeError(error.message, error.offset + len(word) + 1)
                return
            for item in declared(self.text, start, end):
                self.modules[-1].globals.setdefault(item.name, variable(item, None))
        except ShapeError as error:
            self._error(error.message, start + error.offset)
        self.modules[-1].declarations.append((start, end))

    def _initialiser(self, at: int) -> int:
        """The `;` after an initialiser, whose braces nest."""
        return _end(_VALUE.match(self.text, at))

    def _function(self, header: re.Match[str], start: int, end: int, stop: str) -> None:
        module = self.modules[-1]
        if stop == ";":
            self.functions.append(Function(self.lines, module, (start, end + 1), header))
            self.at = end + 1
            return None
        if stop != "{":
            return self._fail(f"expected '{{' or ';' after the header of {header[4]}")
        closing = closing_brace(self.text, end)
        if closing is None:
            self._error(f"the body of {header[4]} is never closed", end)
        last = len(self.text) if closing is None else closing
        function = Function(self.lines, module, (start, min(last + 1, len(self.text))), header)
        function.body_start, function.body_end = end, last
        self.functions.append(function)
        self.at = last + 1
        return None

    def _fail(self, message: str) -> None:
        self._error(message, self.at)
        self.at += 1
        self._recover()

    def _recover(self) -> None:
        """On to the next line that starts with a directive, or past the next `;`."""
        self.at = max(_end(_RECOVERY.match(self.text, self.at)), self.at + 1)

    def _error(self, message: str, offset: int) -> None:
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(self.lines.error(message, offset))


def _end(match: re.Match[str] | None) -> int:
    """End of a match of a pattern that also matches nothing."""
    assert match is not None
    return match.end()
