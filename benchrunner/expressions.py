"""Templates in definitions: ``"{NUM_KEYS * 2}"`` and parameter values in, plain values out.

Pure. Expressions are arithmetic over named parameters: no attributes, no subscripts, no loops, a
handful of functions, and bounded in size, so that a definition cannot do anything but calculate.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from typing import TYPE_CHECKING

from benchrunner.errors import ConfigurationError
from benchrunner.suggest import did_you_mean, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Scalar = bool | int | float | str
Number = int | float

MAX_LENGTH = 500
MAX_DEPTH = 40
MAX_EXPONENT = 64
MAX_BITS = 256
"""Size of a whole number on the way to a result; a flag holds 64."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(?P<expression>[^{}]*)\}|[{}]")
_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _round(value: Number, digits: int = 0) -> Number:
    """``round``, to a bounded number of digits: a large one takes for ever."""
    if abs(digits) > MAX_EXPONENT:
        raise ValueError(f"cannot round to {digits} digits")
    return round(value, digits) if digits else round(value)


_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "min": min,
    "max": max,
    "round": _round,
    "int": int,
}


class _ExpressionError(Exception):
    """What is wrong with an expression, without saying where it stands."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint


def expand(template: Scalar, names: Mapping[str, Scalar], *, where: str) -> Scalar:
    """The value of a template. A text that is one placeholder keeps the value's type.

    Args:
        template: anything but a text stands for itself; ``{{`` and ``}}`` are braces.
        names: values that placeholders may use.
        where: the template's place in a definition, for messages.

    >>> expand("{NUM_KEYS // 2}", {"NUM_KEYS": 1000}, where="args.num")
    500
    >>> expand("{db_dir}/file.{n}", {"db_dir": "/data", "n": 2}, where="args.filename")
    '/data/file.2'

    Raises:
        ConfigurationError: An unknown name, a malformed expression, or no value (division by zero).
    """
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole is not None and whole["expression"] is not None:
        return _evaluated(whole["expression"], names, template, where)

    def replaced(match: re.Match[str]) -> str:
        if match["expression"] is not None:
            return to_text(_evaluated(match["expression"], names, template, where))
        if len(match[0]) == 1:
            raise ConfigurationError(
                f"{where}: {template!r} has a brace without its partner",
                "write {{ or }} for a brace",
            )
        return match[0][0]

    return _PLACEHOLDER.sub(replaced, template)


def evaluate(expression: str, names: Mapping[str, Scalar], *, where: str) -> Scalar:
    """The value of a bare expression (``estimate.disk``), written without braces.

    >>> evaluate("min(a, b) if a > 0 else 1", {"a": 3, "b": 2}, where="estimate.disk")
    2

    Raises:
        ConfigurationError: As ``expand``.
    """
    return _evaluated(expression, names, expression, where)


def names_in(template: object) -> frozenset[str]:
    """Names that a template uses; none for a malformed one, which ``expand`` reports.

    >>> sorted(names_in("{max(A, 1)} of {B}"))
    ['A', 'B']
    """
    if not isinstance(template, str):
        return frozenset()
    found: set[str] = set()
    for match in _PLACEHOLDER.finditer(template):
        found |= names_of_expression(match["expression"] or "")
    return frozenset(found)


def names_of_expression(expression: str) -> frozenset[str]:
    """Names that a bare expression uses, functions left out."""
    try:
        tree = _parsed(expression)
    except _ExpressionError:
        return frozenset()
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in called
    )


def to_text(value: Scalar) -> str:
    """A value as command lines have it.

    >>> to_text(True), to_text(0.5), to_text(2)
    ('true', '0.5', '2')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _evaluated(expression: str, names: Mapping[str, Scalar], template: str, where: str) -> Scalar:
    try:
        return _finite(_value(_parsed(expression), names))
    except _ExpressionError as error:
        raise ConfigurationError(f"{where}: {template!r}: {error}", error.hint) from None
    except (ArithmeticError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"{where}: {template!r} cannot be calculated: {error}",
            "check the parameters' values: benchrunner plan --set NAME=VALUE",
        ) from None


def _finite(value: Scalar) -> Scalar:
    if isinstance(value, float) and not math.isfinite(value):
        raise _ExpressionError("it has no finite value")
    return value


def _parsed(expression: str) -> ast.expr:
    text = expression.strip()
    if not text:
        raise _ExpressionError("there is nothing between the braces", "write {NAME}")
    if len(text) > MAX_LENGTH:
        raise _ExpressionError(f"it is longer than {MAX_LENGTH} characters")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _ExpressionError(
            "it is not an expression", "write arithmetic over parameters: {NUM_KEYS * 2}"
        ) from None
    if _depth(tree) > MAX_DEPTH:
        raise _ExpressionError(f"it is nested more than {MAX_DEPTH} deep")
    return tree


def _depth(tree: ast.AST) -> int:
    """Levels of a tree, found without recursion."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def _value(node: ast.expr, names: Mapping[str, Scalar]) -> Scalar:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            return _named(name, names)
        case ast.IfExp(test=test, body=body, orelse=other):
            return _value(body if _value(test, names) else other, names)
        case ast.BoolOp():
            return _either(node, names)
        case ast.Compare():
            return _compared(node, names)
        case _:
            return _calculated(node, names)


def _calculated(node: ast.expr, names: Mapping[str, Scalar]) -> Scalar:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, names)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_number(operand, names))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _binary(sign, _number(left, names), _number(right, names))
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            return _called(function, arguments, names)
        case _:
            raise _ExpressionError(
                f"{ast.unparse(node)} is not allowed here",
                "use + - * / // % **, comparisons, 'a if b else c', min, max, round, int",
            )


def _named(name: str, names: Mapping[str, Scalar]) -> Scalar:
    if name in names:
        return names[name]
    raise _ExpressionError(
        f"there is no parameter {name!r}{did_you_mean(name, names)}", listed(names)
    )


def _number(node: ast.expr, names: Mapping[str, Scalar]) -> Number:
    value = _value(node, names)
    if isinstance(value, str):
        raise _ExpressionError(f"{value!r} is not a number", "sizes are written like 6GiB")
    return value


def _binary(sign: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(sign, ast.Pow) and abs(right) > MAX_EXPONENT:
        raise _ExpressionError(f"an exponent may be {MAX_EXPONENT} at most")
    result = _BINARY[type(sign)](left, right)
    if isinstance(result, complex):
        raise _ExpressionError("it has no real value")
    if isinstance(result, int) and result.bit_length() > MAX_BITS:
        raise _ExpressionError(f"a number in it needs more than {MAX_BITS} bits")
    return result


def _called(function: str, arguments: list[ast.expr], names: Mapping[str, Scalar]) -> Number:
    if function not in _FUNCTIONS:
        raise _ExpressionError(f"there is no function {function!r}", "min, max, round, int")
    return _FUNCTIONS[function](*(_number(argument, names) for argument in arguments))


def _either(node: ast.BoolOp, names: Mapping[str, Scalar]) -> bool:
    values = (bool(_value(value, names)) for value in node.values)
    return all(values) if isinstance(node.op, ast.And) else any(values)


def _compared(node: ast.Compare, names: Mapping[str, Scalar]) -> bool:
    left = node.left
    for sign, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(sign, ast.Eq | ast.NotEq):
            equal = _value(left, names) == _value(right, names)
            holds = equal is isinstance(sign, ast.Eq)
        elif type(sign) in _ORDER:
            holds = _ORDER[type(sign)](_number(left, names), _number(right, names))
        else:
            raise _ExpressionError("only ==, !=, <, <=, > and >= compare")
        if not holds:
            return False
        left = right
    return True
