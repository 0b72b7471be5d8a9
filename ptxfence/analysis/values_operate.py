"""The value of an operation from the values of its arguments: the table over node kinds."""

from __future__ import annotations

from ptxfence.analysis.values_cycles import compared
from ptxfence.analysis.values_domain import Value, constant, interval, single, top
from ptxfence.analysis.values_nodes import Node
from ptxfence.analysis.values_transfer import (
    absolute,
    both,
    divide,
    either,
    exclusive,
    greater,
    lesser,
    logic3,
    mask_bits,
    multiply,
    multiply_high,
    or_constant,
    permute,
    remainder,
    shift_right,
    shift_right_signed,
    sign_extend,
    xor_constant,
    zero_extend,
)


def operate(node: Node, args: list[Value]) -> Value:
    width, data = node.width, node.data
    match node.op:
        case "shr":
            return shift_right(args[0], int(data[0]), width)
        case "shrs":
            return shift_right_signed(args[0], int(data[0]), width)
        case "and":
            return mask_bits(args[0], int(data[0]), width)
        case "and2":
            return both(args[0], args[1], width)
        case "or":
            return either(args[0], args[1], width)
        case "xor":
            return exclusive(args[0], args[1], width)
        case "orc":
            return or_constant(args[0], int(data[0]), width)
        case "xorc":
            return xor_constant(args[0], int(data[0]), width)
        case "mul":
            return multiply(args[0], args[1], width)
        case "zext":
            return zero_extend(args[0], int(data[0]))
        case "sext":
            return sign_extend(args[0], int(data[0]))
        case "cmp":
            return compared(node, args)
        case "pnot":
            known = single(args[0])
            return interval(0, 1) if known is None else constant(1 - (known & 1))
        case _:
            return _rare(node, args)


def _rare(node: Node, args: list[Value]) -> Value:
    width, data = node.width, node.data
    match node.op:
        case "div" | "divs":
            return divide(args[0], int(data[0]), width, node.op == "divs")
        case "rem" | "rems":
            return remainder(args[0], int(data[0]), width, node.op == "rems")
        case "mulhi" | "mulhis":
            return multiply_high(args[0], args[1], width, node.op == "mulhis")
        case "min" | "mins":
            return lesser(args[0], args[1], width, node.op == "mins")
        case "max" | "maxs":
            return greater(args[0], args[1], width, node.op == "maxs")
        case "prmt":
            return permute(args[0], args[1], int(data[0]))
        case "lop3":
            return logic3(args[0], args[1], args[2], int(data[0]))
        case "abs":
            return absolute(args[0], width)
        case "bool":
            return args[0]
        case "popc":
            return interval(0, int(data[0]))
        case _:
            return top(width)
