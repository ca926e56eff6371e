"""Data on the programs of Windows: which of their options only read, and which programs can do anything.

Sources: Microsoft's reference of Windows commands; the LOLBAS project's list of programs that run, fetch or copy what
they are given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# What words without a mark are: none may be there; data; files that are read or listed; a pattern and then files.
OperandKind = Literal["none", "data", "read", "list", "pattern"]


@dataclass(frozen=True, slots=True)
class ReadOnlyProgram:
    """Program that only reads with these options.

    The value of an option: empty (a switch), `v` a value, `r` a file read, `l` a file naming files to read, `w` a file
    written.
    """

    options: dict[str, str]
    words: OperandKind
    remote: frozenset[str] = frozenset()
    # Whether letters may be joined (`-ano`).
    cluster: bool = False


def _create_reader(options: str, words: OperandKind, remote: str = "", *, cluster: bool = False) -> ReadOnlyProgram:
    found = {name: kind for word in options.split() for name, _, kind in (word.partition(":"),)}
    return ReadOnlyProgram(found, words, frozenset(remote.split()), cluster)


READERS: dict[str, ReadOnlyProgram] = {
    "whoami": _create_reader("user groups priv claims logonid upn fqdn all fo:v nh", "none"),
    "hostname": _create_reader("", "none"),
    "ipconfig": _create_reader("all allcompartments displaydns", "none"),
    "systeminfo": _create_reader("fo:v nh", "none", "s u p"),
    "tasklist": _create_reader("v svc m:v fo:v fi:v nh apps", "none", "s u p"),
    "driverquery": _create_reader("fo:v nh v si", "none", "s u p"),
    "openfiles": _create_reader("query fo:v nh v", "none", "s u p"),
    "getmac": _create_reader("fo:v nh v", "none", "s u p"),
    "netstat": _create_reader("a b e f i n o p:v q r s t x y", "data", cluster=True),
    "arp": _create_reader("a g v n:v", "data", cluster=True),
    "where": _create_reader("r:r q f t", "data"),
    "find": _create_reader("v c n i off offline", "pattern"),
    "findstr": _create_reader("b e l r s i x v n m o p off offline c:v g:r f:l d:r a:v", "pattern", cluster=True),
    "tree": _create_reader("f a", "list"),
    "more": _create_reader("e c p s", "read"),
    "fc": _create_reader("a b c l n t u w off offline", "read"),
    "comp": _create_reader("d a l n:v c off offline m", "read"),
    "sort": _create_reader(
        "r rev reverse l:v locale:v m:v memory:v rec:v uniq unique + o:w output:w t:w temporary:w c case_sensitive",
        "read",
    ),
    "timeout": _create_reader("t:v nobreak", "data"),
    "choice": _create_reader("c:v n cs t:v d:v m:v", "none"),
    "help": _create_reader("", "data"),
    "chcp": _create_reader("", "data"),
    "query": _create_reader("", "data", "server"),
    "quser": _create_reader("", "data", "server"),
    "qwinsta": _create_reader("", "data", "server"),
    "qprocess": _create_reader("", "data", "server"),
    "gpresult": _create_reader("r z v scope:v", "none", "s u p"),
    "tzutil": _create_reader("g l", "none"),
    "nbtstat": _create_reader("n c r s", "none"),
    "vol": _create_reader("", "data"),
}

# Programs with rules of their own, in `program_rules`.
RULED_PROGRAMS = (
    "reg", "sc", "schtasks", "wmic", "net", "net1", "netsh", "taskkill", "tskill", "shutdown", "certutil", "bitsadmin", "mshta", "msiexec",
    "vssadmin",
    "wbadmin", "bcdedit", "diskpart", "format", "fsutil", "wevtutil", "icacls", "cacls", "takeown", "attrib", "robocopy", "xcopy", "makecab",
    "expand",
    "extrac32", "clip", "setx", "subst", "forfiles", "psexec", "psexec64", "runas", "winrs", "sdelete", "sdelete64", "wsl", "powercfg",
    "cipher",
    "winget", "choco", "scoop", "ping", "tracert", "nslookup", "route", "diskshadow", "pcalua", "conhost", "mklink", "auditpol", "chkdsk", "dism",
    "esentutl", "print", "replace", "explorer",
)  # fmt: skip

# Programs that run, load or fetch what they are given (LOLBAS, and interpreters of scripts).
RUNS_ANYTHING = frozenset((
    "cscript", "wscript", "mshta", "rundll32", "regsvr32", "regasm", "regsvcs", "installutil", "msbuild", "csc", "vbc", "jsc", "ieexec", "odbcconf",
    "presentationhost", "mavinject", "cmstp", "control", "infdefaultinstall", "syncappvpublishingserver", "scriptrunner", "runscripthelper", "hh",
    "mmc", "msdt", "msdeploy", "ntdsutil", "xwizard", "verclsid", "atbroker", "bginfo", "cdb", "windbg", "dxcap", "eventvwr", "fltmc",
    "gfxdownloadwrapper", "ilasm", "mofcomp", "msconfig", "openwith", "rasautou", "register-cimprovider", "sdbinst", "wab", "winrm", "wsreset",
    "appinstaller", "certoc", "certreq", "cmdl32", "configsecuritypolicy", "coregen", "customshellhost", "datasvcutil", "desktopimgdownldr",
    "devtoolslauncher", "dfsvc", "dnscmd", "extexport", "ftp", "gpscript", "imewdbld", "msedge", "msohtmed", "mspub", "mpcmdrun",
    "offlinescannershell",
    "onedrivestandaloneupdater", "pnputil", "pubprn", "rpcping", "squirrel", "update", "sqlps", "sqltoolsps", "sqldumper", "stordiag", "tttracer",
    "te", "tracker", "utilityfunctions", "vbscript", "vsjitdebugger", "winword", "excel", "powerpnt", "workfolders", "wuauclt", "xsd", "adplus",
    "agentexecutor", "appcert", "appvlp", "dotnet-dump", "fsi", "fsianycpu", "mftrace", "microsoft.workflow.compiler", "msxsl", "ntsd", "rcsi",
    "remote", "visualuiaverifynative", "wfc", "at", "batch", "start-process", "procdump", "rdrleakdiag", "createdump", "comsvcs", "ldifde",
    "devinit", "dump64", "finger", "nltest", "ttdinject", "unregmp2", "wlrmdr", "wfmformat", "bcp", "vshadow", "vsls-agent", "winfile",
    "provlaunch", "pktmon", "psr", "tpmtool", "runonce", "bitsadmin", "msiexec", "nc", "ncat", "netcat", "socat", "telnet", "plink", "putty",
))  # fmt: skip

# Programs of which any use must be seen.
DANGEROUS_PROGRAMS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("mimikatz", "procdump64", "lazagne", "cmdkey", "vaultcmd", "dpapimig", "rdpclip", "keymgr"), ("secret",
    "it reads or keeps passwords")),
    **dict.fromkeys(("logoff", "tsdiscon", "reset", "rwinsta", "psshutdown", "pskill"), ("ends", "it ends programs or sessions")),
    **dict.fromkeys(("bootrec", "bootsect", "bcdboot", "reagentc", "manage-bde", "fdisk", "recover", "convert", "label", "diskraid", "defrag",
    "mountvol",
                     "sfc", "compact", "lodctr", "unlodctr", "pnpunattend", "sysprep", "secedit", "gpupdate", "gpfixup", "w32tm", "tpmvscmgr",
                     "syskey",
                     "wusa", "dsadd", "dsmod", "dsrm", "dsmove", "ktpass", "setspn", "djoin", "netdom", "regini", "nvspbind", "verifier"),
                    ("system", "it changes the system")),
    **dict.fromkeys(("regedit", "regedt32"), ("registry", "it changes the registry")),
    **dict.fromkeys(("mstsc", "ssh-keygen", "rsh", "rcp", "tftp", "psping", "psservice", "psinfo", "pslist"), ("remoting",
    "it reaches for another machine")),
}  # fmt: skip
KNOWN_PROGRAMS = frozenset(READERS) | frozenset(RULED_PROGRAMS) | RUNS_ANYTHING | frozenset(DANGEROUS_PROGRAMS)

# Other names of programs that are the same on every system.
PROGRAM_ALIASES = {"py": "python"}
SENDING_PROGRAMS = frozenset(
    (
        "curl",
        "wget",
        "scp",
        "sftp",
        "ssh",
        "ftp",
        "tftp",
        "certutil",
        "bitsadmin",
        "nc",
        "ncat",
        "netcat",
        "rsync",
        "aws",
        "gcloud",
        "az",
        "plink",
        "pscp",
    )
)
FETCHING_PROGRAMS = frozenset(("curl", "wget"))
CODE_READER = re.compile(r"(ba|da|z|k)?sh|python[\d.]*|py|node|perl|ruby|php|deno|bun|lua")

_POWERSHELL: tuple[tuple[str, str], ...] = (
    ("encodedcommand", "encoded"), ("command", "command"), ("commandwithargs", "command"), ("file", "file"), ("executionpolicy", "policy"),
    ("noexit", "flag"), ("nologo", "flag"),
    ("noprofile", "flag"), ("noprofileloadtime", "flag"), ("noninteractive", "flag"), ("sta", "flag"), ("mta", "flag"), ("login", "flag"),
    ("interactive", "flag"),
    ("help", "flag"), ("?", "flag"), ("version", "value"), ("inputformat", "value"), ("outputformat", "value"), ("windowstyle", "hidden"),
    ("workingdirectory", "folder"),
)  # fmt: skip
_POWERSHELL_SHORT = {
    "e": "encoded", "ec": "encoded", "enc": "encoded", "c": "command", "cwa": "command", "f": "file", "ep": "policy", "ex": "policy",
    "if": "value", "of": "value", "o": "value",
    "w": "hidden", "wd": "folder", "h": "flag", "i": "flag", "l": "flag", "v": "value", "nop": "flag", "noni": "flag", "nol": "flag", "noe": "flag",
}  # fmt: skip


def find_powershell_option(name: str) -> str | None:
    """Return the kind of an option of `powershell`, by its short name or any prefix; None if unknown or ambiguous."""
    if name in _POWERSHELL_SHORT:
        return _POWERSHELL_SHORT[name]
    found = {kind for known, kind in _POWERSHELL if known.startswith(name)}
    if "encoded" in found:
        return "encoded"
    return found.pop() if len(found) == 1 else None
