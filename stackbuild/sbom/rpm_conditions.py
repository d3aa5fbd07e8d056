"""rpm's rich dependencies: ``(a if b else c)``, ``(a or (b and c))``, ``(a with b)``, …

RPM documentation, "Boolean dependencies", rpm 4.18; what may follow what is that of ``rpmrichParse`` in
``lib/rpmds.c``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stackbuild.sbom.rpm_versions import Relation

_CHAINED = ("and", "or", "with")
_OPERATORS = (*_CHAINED, "if", "unless", "without")
_DEEPEST = 16
_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"[a-z]+(?=[\s(])")
_NAME = re.compile(r"[^\s()]+|[()]")
_VERSION = re.compile(r"\s*(<=|>=|==|=|<|>)\s*([^\s()]+)")


@dataclass(frozen=True, slots=True)
class Condition:
    """A rich dependency.

    Attributes:
        operator: ``and``, ``or``, ``with``, ``without``, ``if``, ``unless``.
        parts: Its operands in order; of ``if`` and ``unless`` what is after ``else`` is the third.
    """

    operator: str
    parts: tuple[Condition | Relation, ...]


def is_condition(text: str) -> bool:
    """Whether a dependency is a rich one."""
    return text.startswith("(")


def parse_condition(text: str) -> Condition | Relation | None:
    """The condition that a dependency states; None for one that cannot be read."""
    try:
        parser = _Parser(text)
        found = parser.condition(0)
        return found if parser.at_end() else None
    except _UnreadableError:
        return None


class _UnreadableError(Exception):
    """The text is no condition."""


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def at_end(self) -> bool:
        self._skip()
        return self._at == len(self._text)

    def condition(self, depth: int) -> Condition | Relation:
        if depth > _DEEPEST or not self._take("("):
            raise _UnreadableError
        parts = [self._operand(depth)]
        operator = ""
        while not self._take(")"):
            word = self._word()
            if not operator and word in _OPERATORS:
                operator = word
            elif word == "else" and operator in ("if", "unless") and len(parts) == 2:
                pass
            elif word != operator or word not in _CHAINED:
                raise _UnreadableError
            parts.append(self._operand(depth))
        return Condition(operator, tuple(parts)) if operator else parts[0]

    def _operand(self, depth: int) -> Condition | Relation:
        self._skip()
        return self.condition(depth + 1) if self._text.startswith("(", self._at) else self._relation()

    def _relation(self) -> Relation:
        begun, open_ = self._at, 0
        while match := _NAME.match(self._text, self._at):
            open_ += {"(": 1, ")": -1}.get(match[0], 0)
            if open_ < 0:
                break
            self._at = match.end()
        name = self._text[begun : self._at]
        if not name:
            raise _UnreadableError
        version = _VERSION.match(self._text, self._at)
        if version is None:
            return Relation(name)
        self._at = version.end()
        return Relation(name, "=" if version[1] == "==" else version[1], version[2])

    def _word(self) -> str:
        self._skip()
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise _UnreadableError
        self._at = match.end()
        return match[0]

    def _take(self, sign: str) -> bool:
        self._skip()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        return True

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match is not None else self._at
