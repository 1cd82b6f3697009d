"""The C back end of programs: text, the compiler of the machine, and compiled objects on disk."""

from symgrad.program.native.compiler import find_compiler
from symgrad.program.native.nodes import Unsupported
from symgrad.program.native.runner import Native, native

__all__ = ["Native", "Unsupported", "find_compiler", "native"]
