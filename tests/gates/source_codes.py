"""Finds, in the source, every code that a finding or an error can carry.

A code enters through an argument named ``code`` where a finding, a spec problem or an error is made. Each such
argument is followed back to string literals: through conditionals, local names, constants, parameters (to all
callers), returns, and fields of other models from which it is read. What cannot be followed is reported, so
that a code built at run time is noticed.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Arguments of that kind which are numbers, or programs.
_OTHERS = frozenset({"exit_code", "status_code", "returncode", "http_code", "gpu_code"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_code_name(name: str) -> bool:
    """Whether an argument or attribute of that name holds a stable code."""
    return (name == "code" or name.endswith("_code")) and name not in _OTHERS


@dataclass
class CodeTaker:
    """A function or a model class: its arguments in order, and where it is."""

    name: str
    parameters: list[str]
    node: ast.AST
    module: Module

    def position(self, parameter: str) -> int:
        return self.parameters.index(parameter)


@dataclass
class Module:
    """One source file, with its nodes, every node's parent and what its imports bind: name → dotted module."""

    path: Path
    tree: ast.Module
    nodes: list[ast.AST] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def place(self, node: ast.AST) -> str:
        return f"{self.path}:{getattr(node, 'lineno', 0)}"

    def enclosing(self, node: ast.AST) -> Iterator[Function]:
        """The functions around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, Function):
                yield node


class SourceCodes:
    """The codes of a set of source folders.

    Attributes:
        codes: Code → the first place that names it.
        untraced: Places whose code could not be followed to literals, with what stands there.
    """

    def __init__(self, *folders: Path) -> None:
        self.codes: dict[str, str] = {}
        self.untraced: list[str] = []
        self._modules = [self._read(path) for folder in folders for path in sorted(folder.rglob("*.py"))]
        self._callables: dict[str, list[CodeTaker]] = {}
        self._constants: dict[str, list[tuple[Module, ast.expr]]] = {}
        self._calls: dict[str, list[tuple[Module, ast.Call]]] = {}
        self._seen: set[tuple[int, str]] = set()
        for module in self._modules:
            self._index(module)
        for name in self._carriers():
            for entry in self._callables.get(name, []):
                self._follow_class(entry)
        for name, calls in self._calls.items():
            known = {parameter for entry in self._callables.get(name, []) for parameter in entry.parameters}
            for module, call in calls:
                # A call of something that is not known by its name, such as an error class in a variable.
                self._follow_keywords(module, call, without=known)

    def _carriers(self) -> set[str]:
        """The classes of findings, spec problems (which violations of a rule become) and errors."""
        carriers, before = {"Finding", "SpecProblem", "Violation", "StackbuildError"}, 0
        while len(carriers) > before:
            before = len(carriers)
            carriers |= {
                entry.name
                for entries in self._callables.values()
                for entry in entries
                if isinstance(entry.node, ast.ClassDef)
                and any(isinstance(base, ast.Name) and base.id in carriers for base in entry.node.bases)
            }
        return carriers

    @staticmethod
    def _read(path: Path) -> Module:
        module = Module(path, ast.parse(path.read_text(encoding="utf-8")))
        module.nodes.append(module.tree)
        for parent in module.nodes:  # which grows by each node's children
            for child in _children(parent):
                module.parents[child] = parent
                module.nodes.append(child)
            if isinstance(parent, ast.ImportFrom) and parent.module is not None:
                module.imported |= {item.asname or item.name: parent.module for item in parent.names}
        return module

    def _index(self, module: Module) -> None:
        for node in module.nodes:
            if isinstance(node, Function):
                arguments = node.args
                names = [item.arg for item in (*arguments.posonlyargs, *arguments.args)]
                method = isinstance(module.parents.get(node), ast.ClassDef) and names[:1] in (
                    ["self"], ["cls"],
                )  # fmt: skip
                names = names[1:] if method else names
                names += [item.arg for item in arguments.kwonlyargs]
                self._callables.setdefault(node.name, []).append(CodeTaker(node.name, names, node, module))
            elif isinstance(node, ast.ClassDef):
                fields = [
                    item.target.id
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                ]
                self._callables.setdefault(node.name, []).append(CodeTaker(node.name, fields, node, module))
            elif isinstance(node, ast.Call):
                function = node.func
                name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
                self._calls.setdefault(name, []).append((module, node))
        for statement in module.tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._constants.setdefault(name, []).append((module, value))
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self._constants.setdefault(name, []).append((module, value))

    def _follow_keywords(self, module: Module, call: ast.Call, without: Collection[str] = ()) -> None:
        for keyword in call.keywords:
            if keyword.arg is not None and is_code_name(keyword.arg) and keyword.arg not in without:
                self._follow(module, keyword.value)

    def _follow_class(self, entry: CodeTaker) -> None:
        """Follow the code of everything that is made of one class, and the class's own default."""
        if (id(entry.node), "class") in self._seen or not isinstance(entry.node, ast.ClassDef):
            return
        self._seen.add((id(entry.node), "class"))
        for item in entry.node.body:
            match item:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant() as fallback):
                    if is_code_name(name):
                        self._follow(entry.module, fallback)
                case ast.FunctionDef(name="__init__"):
                    self._follow_default(entry.module, item, "code")
        for module, call in self._calls.get(entry.name, []):
            if not _means(module, call, entry):
                continue
            self._follow_keywords(module, call)
            for parameter in filter(is_code_name, entry.parameters):
                for value in call.args[entry.position(parameter) :][:1]:
                    self._follow(module, value)

    def _follow_default(self, module: Module, function: Function, parameter: str) -> None:
        arguments = function.args
        positional = [*arguments.posonlyargs, *arguments.args]
        pairs = [
            *zip(reversed(positional), reversed(arguments.defaults), strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if argument.arg == parameter and default is not None:
                self._follow(module, default)

    def _follow_field(self, module: Module, name: str) -> None:
        """A code read from a model: follow the making of the models with that field that the module knows."""
        for entries in self._callables.values():
            for entry in entries:
                known = entry.module is module or entry.name in module.imported
                if known and name in entry.parameters:
                    self._follow_class(entry)

    def _follow(self, module: Module, node: ast.expr, index: int | None = None) -> None:
        """Follow an expression to literals; only element ``index`` of it when it is a tuple."""
        if (id(node), str(index)) in self._seen:
            return
        self._seen.add((id(node), str(index)))
        if isinstance(node, ast.Tuple) and index is not None and index < len(node.elts):
            self._follow(module, node.elts[index])
            return
        match node:
            case ast.Constant(value=str(code)):
                if code:
                    self.codes.setdefault(code, module.place(node))
            case ast.Constant(value=None | int()):
                pass
            case ast.IfExp():
                self._follow(module, node.body)
                self._follow(module, node.orelse)
            case ast.BoolOp():
                for value in node.values:
                    self._follow(module, value)
            case ast.Tuple() | ast.List() | ast.Set():
                for element in node.elts:
                    self._follow(module, element)
            case ast.Starred() | ast.NamedExpr():
                self._follow(module, node.value)
            case ast.Dict():
                for value in node.values:
                    self._follow(module, value)
            case ast.Subscript():
                self._follow(module, node.value)
            case ast.SetComp() | ast.ListComp() | ast.GeneratorExp():
                self._follow(module, node.elt)
            case ast.Attribute(attr=name) if is_code_name(name):
                self._follow_field(module, name)
            case ast.Name():
                self._follow_name(module, node)
            case ast.Call(func=ast.Attribute(attr="pop" | "get", value=owner)):
                self._follow(module, owner)
            case ast.Call():
                self._follow_returns(module, node, index)
            case _:
                self._lost(module, node)

    def _follow_name(self, module: Module, node: ast.Name) -> None:
        for function in module.enclosing(node):
            bound = list(_bindings(function, node.id))
            parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            is_parameter = node.id in {item.arg for item in parameters}
            if bound or is_parameter:
                for value, index in bound:
                    self._follow(module, value, index)
                if is_parameter:
                    self._follow_callers(function, node.id)
                return
        known = self._constants.get(node.id, [])
        own = [entry for entry in known if entry[0] is module] or known
        for where, value in own:
            self._follow(where, value)
        if not own:
            self._lost(module, node)

    def _follow_callers(self, function: Function, parameter: str) -> None:
        if (id(function), parameter) in self._seen:
            return
        self._seen.add((id(function), parameter))
        for entry in self._callables[function.name]:
            if entry.node is not function:
                continue
            self._follow_default(entry.module, function, parameter)
            for module, call in self._calls.get(function.name, []):
                if not _means(module, call, entry):
                    continue
                given = [item.value for item in call.keywords if item.arg == parameter]
                position = entry.position(parameter)
                given += call.args[position : position + 1]
                for value in given:
                    self._follow(module, value)

    def _follow_returns(self, module: Module, call: ast.Call, index: int | None) -> None:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        meant = [
            entry
            for entry in self._callables.get(name, [])
            if isinstance(entry.node, Function) and _means(module, call, entry)
        ]
        if not meant:
            self._lost(module, call)
        for entry in meant:
            for node in ast.walk(entry.node):
                if isinstance(node, ast.Return) and node.value is not None:
                    self._follow(entry.module, node.value, index)

    def _lost(self, module: Module, node: ast.expr) -> None:
        self.untraced.append(f"{module.place(node)}: {ast.unparse(node)}")


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """A node's children, without those that hold nothing: operators, and whether a name is read or bound."""
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST) and child._fields:
                yield child


def _means(module: Module, call: ast.Call, entry: CodeTaker) -> bool:
    """Whether a call in ``module`` can mean ``entry``; a method's name means every method of that name."""
    if not isinstance(call.func, ast.Name) or entry.module is module:
        return True
    origin = module.imported.get(call.func.id, "")
    path = entry.module.path.with_suffix("").as_posix()
    return bool(origin) and path.endswith(origin.replace(".", "/"))


Bound = tuple[ast.expr, int | None]


def _bindings(function: Function, name: str) -> Iterator[Bound]:
    """What a name is bound to in a function: an expression, and which element of it when it is unpacked."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For | ast.comprehension):
            pairs = [(node.target, node.iter)]
        else:
            continue
        for target, value in pairs:
            yield from _bound(target, value, name)


def _bound(target: ast.expr, value: ast.expr, name: str, index: int | None = None) -> Iterator[Bound]:
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value, index
    elif isinstance(target, ast.Tuple):
        for position, part in enumerate(target.elts):
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                yield from _bound(part, value.elts[position], name)
            else:
                yield from _bound(part, value, name, position)
