"""What is known of the programs of Windows, as data: which of their options only read, and which of them can do anything.

Sources: Microsoft's reference of Windows commands; the LOLBAS project's list of programs that run, fetch or copy what they are given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

# What words without a mark are: none may be there; data; files that are read or listed; a pattern and then files.
Words = Literal["none", "data", "read", "list", "pattern"]


@dataclass(frozen=True, slots=True)
class Reader:
    """A program that only reads with these options.

    Of an option: nothing (a switch), `v` a value, `r` a file read, `l` one that names files to be read, `w` one written.
    """

    options: dict[str, str]
    words: Words
    remote: frozenset[str] = frozenset()
    # Whether letters may be joined (`-ano`).
    cluster: bool = False


def _reader(options: str, words: Words, remote: str = "", *, cluster: bool = False) -> Reader:
    found = {name: kind for word in options.split() for name, _, kind in (word.partition(":"),)}
    return Reader(found, words, frozenset(remote.split()), cluster)


READERS: dict[str, Reader] = {
    "whoami": _reader("user groups priv claims logonid upn fqdn all fo:v nh", "none"),
    "hostname": _reader("", "none"),
    "ipconfig": _reader("all allcompartments displaydns", "none"),
    "systeminfo": _reader("fo:v nh", "none", "s u p"),
    "tasklist": _reader("v svc m:v fo:v fi:v nh apps", "none", "s u p"),
    "driverquery": _reader("fo:v nh v si", "none", "s u p"),
    "openfiles": _reader("query fo:v nh v", "none", "s u p"),
    "getmac": _reader("fo:v nh v", "none", "s u p"),
    "netstat": _reader("a b e f i n o p:v q r s t x y", "data", cluster=True),
    "arp": _reader("a g v n:v", "data", cluster=True),
    "where": _reader("r:r q f t", "data"),
    "find": _reader("v c n i off offline", "pattern"),
    "findstr": _reader("b e l r s i x v n m o p off offline c:v g:r f:l d:r a:v", "pattern", cluster=True),
    "tree": _reader("f a", "list"),
    "more": _reader("e c p s", "read"),
    "fc": _reader("a b c l n t u w off offline", "read"),
    "comp": _reader("d a l n:v c off offline m", "read"),
    "sort": _reader(
        "r rev reverse l:v locale:v m:v memory:v rec:v uniq unique + o:w output:w t:w temporary:w c case_sensitive",
        "read",
    ),
    "timeout": _reader("t:v nobreak", "data"),
    "choice": _reader("c:v n cs t:v d:v m:v", "none"),
    "help": _reader("", "data"),
    "chcp": _reader("", "data"),
    "query": _reader("", "data", "server"),
    "quser": _reader("", "data", "server"),
    "qwinsta": _reader("", "data", "server"),
    "qprocess": _reader("", "data", "server"),
    "gpresult": _reader("r z v scope:v", "none", "s u p"),
    "tzutil": _reader("g l", "none"),
    "nbtstat": _reader("n c r s", "none"),
    "vol": _reader("", "data"),
}

# Programs with rules of their own, in `rules`.
RULED = (
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
DANGEROUS: dict[str, tuple[str, str]] = {
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
KNOWN = frozenset(READERS) | frozenset(RULED) | RUNS_ANYTHING | frozenset(DANGEROUS)

# Other names of programs that are the same on every system.
SAME = {"py": "python"}
SENDING = frozenset(
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
FETCHING = frozenset(("curl", "wget"))
READS_CODE = re.compile(r"(ba|da|z|k)?sh|python[\d.]*|py|node|perl|ruby|php|deno|bun|lua")

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


def powershell_option(name: str) -> str | None:
    """What an option of `powershell` is, by its short name or any beginning; None when it is not known or does not tell."""
    if name in _POWERSHELL_SHORT:
        return _POWERSHELL_SHORT[name]
    found = {kind for known, kind in _POWERSHELL if known.startswith(name)}
    if "encoded" in found:
        return "encoded"
    return found.pop() if len(found) == 1 else None
