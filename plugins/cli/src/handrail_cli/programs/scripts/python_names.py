"""Meanings of names in Python: which parts of the standard library only compute, access files, or require approval."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Mapping

from handrail_cli.programs.values import OperandRole

# Modules of the standard library of which every public name only computes, prints or tells.
PURE_MODULES = frozenset((
    "json", "re", "math", "cmath", "datetime", "time", "calendar", "textwrap", "collections", "itertools", "functools",
    "random", "statistics", "decimal", "fractions", "numbers", "hashlib", "hmac", "base64", "binascii", "uuid", "pprint", "copy", "enum",
    "struct", "unicodedata", "html", "urllib.parse", "shlex", "difflib", "bisect", "heapq", "colorsys", "keyword",
    "zlib", "csv", "array", "secrets", "ipaddress", "locale", "sysconfig", "zoneinfo", "stat", "errno", "platform", "reprlib",
))  # fmt: skip
# Of other modules, only these; the roles of their arguments in order.
MEMBER_ROLES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sys": dict.fromkeys((
        "version", "version_info", "platform", "executable", "argv", "path", "stdin", "stdout", "stderr", "exit", "maxsize", "byteorder", "prefix",
        "base_prefix", "exec_prefix", "implementation", "getsizeof", "getrecursionlimit", "getdefaultencoding", "getfilesystemencoding", "float_info",
        "int_info", "hexversion", "flags", "maxunicode", "intern", "copyright", "builtin_module_names", "stdlib_module_names", "api_version",
        "setrecursionlimit", "is_finalizing", "hash_info", "thread_info", "abiflags",
    ), ()),
    "os": {
        **dict.fromkeys((
            "getcwd", "sep", "linesep", "curdir", "pardir", "name", "cpu_count", "getpid", "getppid", "getuid", "getgid", "uname", "getlogin",
            "pathsep", "extsep", "altsep", "devnull", "path", "fspath", "fsencode", "fsdecode", "strerror", "get_terminal_size", "getloadavg",
            "times",
            "urandom",
        ), ()),
        **dict.fromkeys(("listdir", "scandir", "walk", "stat", "lstat", "access", "readlink"), ("list",)),
        **dict.fromkeys(("remove", "unlink", "rmdir"), ("delete",)), **dict.fromkeys(("mkdir", "makedirs"), ("create",)),
        **dict.fromkeys(("rename", "replace", "renames"), ("move", "dest")), "chmod": ("change",), "utime": ("change",), "symlink": ("target",
        "create"),
        "chdir": ("folder",), "getenv": ("variable",), "removedirs": ("delete",), "link": ("read", "create"),
    },
    "os.path": {**dict.fromkeys((
        "join", "basename", "dirname", "splitext", "split", "abspath", "normpath", "relpath", "expanduser", "commonpath", "commonprefix", "isabs",
        "normcase", "sep", "realpath",
    ), ()), **dict.fromkeys(("exists", "isfile", "isdir", "islink", "getsize", "getmtime", "lexists", "ismount"), ("list",))},
    "shutil": {
        "which": (), "get_terminal_size": (), "disk_usage": ("list",), "rmtree": ("delete_tree",), "move": ("move", "dest"),
        **dict.fromkeys(("copy", "copy2", "copyfile", "copytree"), ("read", "dest")),
    },
    "glob": {"glob": ("list",), "iglob": ("list",), "escape": ()},
    "pathlib": dict.fromkeys(("Path", "PurePath", "PosixPath", "PurePosixPath", "PureWindowsPath"), ()),
    "importlib.util": {"find_spec": ()},
    "ast": dict.fromkeys(("literal_eval", "parse", "dump", "walk", "unparse"), ()),
    "string": dict.fromkeys((
        "ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits", "octdigits", "punctuation", "printable", "whitespace",
        "capwords",
        "Template",
    ), ()),
    "operator": dict.fromkeys(("add", "sub", "mul", "truediv", "mod", "pow", "neg", "xor", "or_", "and_", "itemgetter", "eq", "lt", "gt"), ()),
    "importlib.metadata": {"version": (), "PackageNotFoundError": (), "requires": ()},
    "inspect": dict.fromkeys(("signature", "getdoc", "isclass", "isfunction"), ()),
    "tomllib": {"loads": (), "load": ()},
    "io": {"StringIO": (), "BytesIO": ()},
    "configparser": {},
    "gzip": {"compress": (), "decompress": ()},
    "bz2": {"compress": (), "decompress": ()},
    "lzma": {"compress": (), "decompress": ()},
    "timeit": {"default_timer": ()},
    "tempfile": {"gettempdir": ()},
    "traceback": {"print_exc": (), "format_exc": ()},
    "warnings": {"simplefilter": (), "filterwarnings": (), "warn": ()},
    "xml.etree.ElementTree": {"fromstring": (), "tostring": ()},
    "site": {"getsitepackages": (), "getusersitepackages": ()},
}  # fmt: skip
DANGEROUS_MODULES = frozenset((
    "subprocess", "socket", "ctypes", "pty", "multiprocessing", "pickle", "marshal", "shelve", "dill", "joblib", "code", "codeop", "runpy",
    "importlib",
    "imp", "http", "urllib", "urllib2", "urllib3", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "imaplib", "poplib", "telnetlib",
    "ssl", "signal", "builtins", "posix", "nt", "pdb", "webbrowser", "paramiko", "fabric", "pexpect", "sh", "cffi", "winreg", "fcntl", "mmap",
    "resource",
    "pkgutil", "zipimport", "socketserver", "xmlrpc", "commands", "popen2", "antigravity", "keyring", "pip", "setuptools",
))  # fmt: skip
STDLIB_MODULES = sys.stdlib_module_names
# Public names of modules that are called like a module of the standard library, but are none.
NAMESAKE_MODULES = frozenset((
    "datetime.datetime", "datetime.time", "datetime.date", "time.time", "copy.copy", "glob.glob", "pprint.pprint", "random.random",
    "calendar.calendar",
    "os.path", "sys.path", "sys.platform", "array.array", "platform.platform", "os.stat",
))  # fmt: skip
# Builtins by which anything can be reached under another name.
REACHING_BUILTINS = frozenset(("eval", "exec", "compile", "__import__", "globals", "breakpoint", "__builtins__"))
NO_BUILTINS = frozenset((
    "eval", "exec", "compile", "__import__", "globals", "locals", "vars", "getattr", "setattr", "delattr", "breakpoint", "memoryview", "input",
    "open", "__builtins__", "__loader__", "__spec__", "help", "object", "super", "classmethod", "staticmethod", "property", "copyright", "credits",
))  # fmt: skip
BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_")) - NO_BUILTINS
# Attributes of values that would be modules, or start programs, on a value that came from elsewhere.
MODULE_LIKE = (STDLIB_MODULES | {"system", "popen", "Popen", "check_output", "urlopen", "import_module", "load_module", "exec_module", "modules"}) - {
    "copy", "time", "types", "statistics", "stat", "string", "select", "queue", "numbers", "code", "html",
}  # fmt: skip
FRAME_ATTRIBUTE = re.compile(r"(gi|cr|ag|tb|f|co|func)_\w+|mro|format_map|with_traceback")
PUBLIC_DUNDER = frozenset(
    ("__version__", "__file__", "__name__", "__doc__", "__path__", "__len__", "__init__", "__str__", "__repr__")
)
# Methods by which a path or a file does something. Whatever has them is asked about unless it is known.
ACTING_METHODS = frozenset((
    "write_text", "write_bytes", "unlink", "rmdir", "mkdir", "touch", "rename", "chmod", "lchmod", "symlink_to", "hardlink_to", "link_to",
    "read_text", "read_bytes", "open", "iterdir", "glob", "rglob", "walk", "expanduser", "extractall", "extract",
))  # fmt: skip
PATH_ROLES: Mapping[str, OperandRole] = {
    "write_text": "write", "write_bytes": "write", "unlink": "delete", "rmdir": "delete", "mkdir": "create", "touch": "create", "chmod": "change",
    "read_text": "read", "read_bytes": "read", "iterdir": "list", "glob": "list", "rglob": "list", "exists": "list", "stat": "list",
}  # fmt: skip
ALLOWED_NODES = (
    ast.Module, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If, ast.With, ast.Try, ast.Raise, ast.Assert, ast.Pass,
    ast.Break, ast.Continue, ast.Return, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Delete, ast.BoolOp, ast.NamedExpr, ast.BinOp, ast.UnaryOp,
    ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Yield, ast.YieldFrom, ast.Compare,
    ast.Call,
    ast.FormattedValue, ast.JoinedStr, ast.Constant, ast.Attribute, ast.Subscript, ast.Starred, ast.Name, ast.List, ast.Tuple, ast.Slice,
    ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context, ast.comprehension, ast.arguments, ast.arg, ast.keyword, ast.alias,
    ast.withitem, ast.ExceptHandler, ast.Global, ast.Nonlocal,
)  # fmt: skip
# Of calls with roles, the keywords that change nothing about which files they touch.
HARMLESS_KEYWORDS = frozenset(
    ("exist_ok", "parents", "recursive", "ignore_errors", "dirs_exist_ok", "follow_symlinks", "missing_ok", "default")
)
# Keywords of `open`.
OPEN_KEYWORDS = frozenset(("encoding", "errors", "newline", "mode", "buffering"))
ROLES: tuple[OperandRole, ...] = (
    "read", "list", "write", "append", "create", "dest", "move", "delete", "delete_tree", "change", "target", "folder", "variable",
)  # fmt: skip
# What makes a path of its arguments.
PATH_CONSTRUCTORS = frozenset(
    (("pathlib", "Path"), ("pathlib", "PurePath"), ("pathlib", "PosixPath"), ("os.path", "join"))
)
