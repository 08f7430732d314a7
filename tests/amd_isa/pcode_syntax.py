"""AMD's pseudocode of an instruction, as a tree of tuples.

Statements: ("assign", place, operator, value), ("declare", name, type, length), ("if", [(condition, body)...]),
("for", name, first, last, body), ("break",), ("return", value), ("call", value), ("lambda", name, parameters, body).
Expressions: ("number", type or None, value), ("name", text), ("type", expression, type), ("index", expression, index),
("slice", expression, high, low), ("join", [expressions]), ("cast", type, expression), ("call", name, [expressions]),
("unary", operator, x), ("binary", operator, x, y), ("choose", condition, x, y). A type is (letter, bits).
"""

from __future__ import annotations

import re
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<sized>\d+'(?:[UIFB]{1,2}\b|-?[0-9]+\.[0-9]+|0x[0-9a-fA-F]+|[0-9]+)U?)
  | (?P<float>\d+\.\d+F?)
  | (?P<int>(?:0x[0-9a-fA-F]+|\d+)(?:ULL|LL|U)?(?![0-9a-zA-Z_']))
  | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
  | (?P<op>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\|=|&=|[-+*/%&|^~!<>=?:;,.(){}\[\]])
)""",
    re.VERBOSE,
)
_TYPE = re.compile(r"(bf|fp|bf8|[buif])(\d+)")
_BINARY = [
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"), ("**",),
]  # fmt: skip
_ASSIGNMENTS = {"=", "+=", "-=", "|=", "&="}
_ENDS = {"endif", "endfor", "else", "elsif", ")"}


class PcodeError(Exception):
    """Pseudocode that isn't understood."""


def _tokens(text: str) -> list[str]:
    text = re.sub(r"//[^\n]*", "", text)
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise PcodeError(f"no token at {text[at : at + 40]!r}")
        found.append(match.group().strip())
        at = match.end()
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens, self.at = _tokens(text), 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if expected and token != expected:
            raise PcodeError(f"expected {expected!r}, got {token!r} before {self.tokens[self.at : self.at + 6]}")
        self.at += 1
        return token

    def have(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def statements(self) -> list[Any]:
        found = []
        while self.peek() and self.peek() not in _ENDS:
            if not self.have(";"):
                found.append(self.statement())
        return found

    def statement(self) -> Any:
        word = self.peek()
        if word == "if":
            return self.condition()
        if word == "for":
            return self.loop()
        if word == "declare":
            return self.declaration()
        if word == "break":
            self.take()
            return ("break",)
        if word == "return":
            self.take()
            return ("return", self.expression())
        if self.peek(1) == "=" and self.peek(2) == "lambda":
            return self.function()
        place = self.expression()
        if self.peek() in _ASSIGNMENTS:
            operator = self.take()
            value = self.expression()
            if self.peek() == "=":  # `EXEC.u64[laneId] = D0.u64[laneId] = x`
                self.take()
                inner = self.expression()
                return ("both", ("assign", value, "=", inner), ("assign", place, "=", value))
            return ("assign", place, operator, value)
        return ("call", place)

    def condition(self) -> Any:
        branches = []
        self.take("if")
        while True:
            test = self.expression()
            self.take("then")
            branches.append((test, self.statements()))
            if self.have("elsif"):
                continue
            if self.have("else"):
                branches.append((None, self.statements()))
            self.take("endif")
            return ("if", branches)

    def loop(self) -> Any:
        self.take("for")
        name = self.take()
        self.take("in")
        first = self.ternary(ranges=True)
        self.take(":")
        last = self.expression()
        self.take("do")
        body = self.statements()
        self.take("endfor")
        return ("for", name, first, last, body)

    def declaration(self) -> Any:
        self.take("declare")
        name = self.take()
        self.take(":")
        kind, length = _sized_type(self.take()), None
        if self.have("["):
            length = int(self.take())
            self.take("]")
        return ("declare", name, kind, length)

    def function(self) -> Any:
        name = self.take()
        self.take("=")
        self.take("lambda")
        self.take("(")
        parameters = []
        while not self.have(")"):
            parameters.append(self.take())
            self.have(",")
        self.take("(")
        body = self.statements()
        self.take(")")
        if len(body) == 1 and body[0][0] == "call":
            body = [("return", body[0][1])]
        return ("lambda", name, parameters, body)

    def expression(self) -> Any:
        return self.ternary()

    def ternary(self, ranges: bool = False) -> Any:
        test = self.binary(0)
        if not ranges and self.have("?"):
            yes = self.ternary()
            self.take(":")
            return ("choose", test, yes, self.ternary())
        return test

    def binary(self, level: int) -> Any:
        if level == len(_BINARY):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _BINARY[level]:
            operator = self.take()
            left = ("binary", operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Any:
        for operator in ("-", "~", "!", "+"):
            if self.have(operator):
                x = self.unary()
                return x if operator == "+" else ("unary", operator, x)
        return self.postfix(self.primary())

    def postfix(self, x: Any) -> Any:
        while True:
            if self.have("."):
                word = self.take()
                match = _TYPE.fullmatch(word)
                x = ("type", x, (match[1], int(match[2]))) if match else ("member", x, word)
            elif self.have("["):
                high = self.expression()
                x = ("slice", x, high, self.expression()) if self.have(":") else ("index", x, high)
                self.take("]")
            else:
                return x

    def primary(self) -> Any:
        token = self.take()
        if token == "(":
            x = self.expression()
            self.take(")")
            return x
        if token == "{":
            parts = [self.expression()]
            while self.have(","):
                parts.append(self.expression())
            self.take("}")
            return ("join", parts)
        if "'" in token:
            return self.sized(token)
        if re.fullmatch(r"\d+\.\d+F?", token):
            return ("number", ("f", 32 if token.endswith("F") else 64), float(token.rstrip("F")))
        if token[:1].isdigit():
            return _integer(token)
        if re.match(r"[A-Za-z_]", token):
            if self.have("("):
                arguments = []
                while not self.have(")"):
                    arguments.append(self.expression())
                    self.have(",")
                return ("call", token, arguments)
            return ("name", token)
        raise PcodeError(f"unexpected {token!r}")

    def sized(self, token: str) -> Any:
        bits, _, rest = token.partition("'")
        if rest in ("U", "I", "F", "B", "BF"):
            kind = _sized_type(token)
            self.take("(")
            x = self.expression()
            self.take(")")
            return ("cast", kind, x)
        if "." in rest:
            return ("number", ("f", int(bits)), float(rest))
        return ("number", ("u", int(bits)), int(rest.rstrip("U"), 0))


def _sized_type(token: str) -> tuple[str, int]:
    bits, _, letters = token.partition("'")
    return letters.lower(), int(bits)


def _integer(token: str) -> Any:
    digits = token.rstrip("UL")
    suffix = token[len(digits) :]
    kind = {"": None, "U": ("u", 32), "LL": ("i", 64), "ULL": ("u", 64)}[suffix]
    return ("number", kind, int(digits, 0))


def parse(text: str) -> list[Any]:
    """The statements of an instruction's pseudocode. Raises `PcodeError` where it isn't understood."""
    parser = _Parser(text)
    found = parser.statements()
    if parser.peek():
        raise PcodeError(f"{parser.peek()!r} is no part of a statement")
    return found
