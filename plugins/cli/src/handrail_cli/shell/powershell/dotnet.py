"""Types and methods of .NET that only compute or read, as data: all others that a command names require approval."""

from __future__ import annotations

import re

# Types of which every static member only computes. Names as in `nodes`.
PURE_TYPES = frozenset(
    ("math", "string", "char", "int", "int16", "int32", "int64", "uint16", "uint32", "uint64", "long", "ulong", "short", "byte", "sbyte",
     "double", "single", "float", "decimal", "bool", "boolean", "datetime", "datetimeoffset", "dateonly", "timeonly", "timespan", "guid",
     "version", "bigint", "numerics.biginteger", "convert", "bitconverter", "regex", "text.regularexpressions.regex", "io.path", "uri",
     "text.encoding", "text.asciiencoding", "text.utf8encoding", "text.unicodeencoding", "globalization.cultureinfo", "cultureinfo", "array", "enum",
     "net.webutility", "web.httputility", "stringcomparer", "stringcomparison", "system.string", "consolecolor", "dayofweek", "text.stringbuilder",
     "security.cryptography.sha256", "security.cryptography.md5", "security.cryptography.sha1", "security.cryptography.hashalgorithm",
     "collections.arraylist", "linq.enumerable", "random", "type", "void", "object", "hashtable", "pscustomobject", "psobject", "ordered", "xml",
     "array[]", "string[]", "int[]", "char[]", "byte[]", "object[]", "switch", "nullable", "stopwatch", "diagnostics.stopwatch", "net.ipaddress",
     "ipaddress", "mailaddress", "semver", "management.automation.semanticversion", "runtime.interopservices.runtimeinformation", "textinfo")
)  # fmt: skip

# Members of other types that only read: type and member.
PURE_MEMBERS = frozenset(
    ("environment", name) for name in ("newline", "machinename", "username", "osversion", "processorcount", "is64bitoperatingsystem",
     "is64bitprocess", "currentdirectory", "systemdirectory", "tickcount", "tickcount64", "version", "getfolderpath", "userdomainname",
     "userinteractive", "workingset", "processid", "systempagesize", "getlogicaldrives", "specialfolder")
) | frozenset(
    ("console", name) for name in ("writeline", "write", "outputencoding", "inputencoding", "windowwidth", "windowheight", "title",
     "bufferwidth", "foregroundcolor", "backgroundcolor", "resetcolor")
) | frozenset(
    (("io.driveinfo", "getdrives"), ("net.dns", "gethostname"), ("threading.thread", "sleep"), ("appcontext", "basedirectory"),
     ("security.principal.windowsidentity", "getcurrent"), ("security.principal.windowsbuiltinrole", "administrator"),
     ("runtime.environment", "version"), ("timezoneinfo", "local"), ("timezoneinfo", "utc"), ("gc", "gettotalmemory"))
)  # fmt: skip
# Of which the given argument counts.
IO_READS = frozenset(
    ("readalltext", "readalllines", "readallbytes", "readlines", "exists", "getfiles", "getdirectories", "enumeratefiles", "enumeratedirectories",
     "getlastwritetime", "getcreationtime", "getattributes", "getfilesystementries", "openread", "opentext", "getlastaccesstime",
     "enumeratefilesystementries")
)  # fmt: skip
IO_WRITES = frozenset(
    ("writealltext", "writealllines", "writeallbytes", "appendalltext", "appendalllines", "create", "createtext", "appendtext", "createdirectory",
     "openwrite")
)  # fmt: skip
IO_TYPES = frozenset(("io.file", "io.directory"))

# Types that may be made with `New-Object` or `::new()`: they hold values.
PURE_OBJECTS = PURE_TYPES | frozenset(
    ("text.stringbuilder", "collections.hashtable", "collections.queue", "collections.stack", "collections.sortedlist", "io.memorystream",
     "io.stringreader", "management.automation.psobject", "timespan", "datetime", "collections.specialized.ordereddictionary", "io.fileinfo",
     "io.directoryinfo", "security.principal.windowsprincipal", "globalization.textinfo", "eventargs", "exception")
)  # fmt: skip
GENERIC_COLLECTION = re.compile(r"collections\.(generic|concurrent)\.\w+(\[.*\])?")
WEB_TYPES = frozenset(("net.webclient", "net.http.httpclient", "net.webrequest", "net.httpwebrequest"))
SOCKET_TYPE = re.compile(
    r"(net\.)?sockets?\b.*|.*\b(tcpclient|tcplistener|udpclient|clientwebsocket|namedpipeclientstream|namedpipeserverstream)"
)

# Methods of values that only compute, in lower case.
PURE_METHODS = frozenset(
    ("tostring", "toupper", "tolower", "toupperinvariant", "tolowerinvariant", "trim", "trimstart", "trimend", "substring", "replace", "split",
    "contains",
     "startswith", "endswith", "indexof", "lastindexof", "padleft", "padright", "insert", "remove", "tochararray", "equals", "compareto",
     "gethashcode",
     "gettype", "add", "addrange", "addseconds", "addminutes", "addhours", "adddays", "addmonths", "addyears", "subtract", "tolocaltime",
     "touniversaltime", "toshortdatestring", "tolongdatestring", "toshorttimestring", "toarray", "getenumerator", "containskey", "containsvalue",
     "keys",
     "values", "count", "append", "appendline", "appendformat", "where", "foreach", "clone", "isnullorempty", "format", "join", "concat", "reverse",
     "sort", "distinct", "first", "last", "getstring", "getbytes", "matches", "match", "ismatch", "getvalueordefault", "trygetvalue", "push", "pop",
     "peek", "enqueue", "dequeue", "isinrole", "computehash", "tobase64string", "normalize", "getlength", "getupperbound", "fromseconds", "item",
     "clear", "copyto", "tolist", "tosingle", "todouble", "toint32", "hasflag", "dispose", "close", "next", "nextdouble", "stop", "restart",
     "elapsed")
) - {"stop", "restart", "clear", "close"}  # fmt: skip
# Properties that are often asked for by name alone.
COMMON_PROPERTIES = frozenset(
    ("name", "fullname", "length", "extension", "basename", "directory", "directoryname", "parent", "root", "exists", "lastwritetime", "creationtime",
     "lastaccesstime", "mode", "attributes", "id", "processname", "cpu", "ws", "path", "line", "linenumber", "filename", "pattern", "status",
     "displayname", "starttype", "value", "key", "version", "source", "commandtype", "definition", "title", "content", "count", "message", "day",
     "month",
     "year", "hour", "minute", "second", "ticks", "isreadonly", "versioninfo", "hash", "group", "sum", "average", "maximum", "minimum")
)  # fmt: skip
WEB_READS = frozenset(("downloadstring", "downloaddata", "openread", "getstringasync", "getasync", "getbytearrayasync", "getstreamasync",
                       "downloadstringtaskasync", "getresponse", "getresponsestream", "readtoend"))  # fmt: skip
WEB_FILES = frozenset(("downloadfile", "downloadfileasync", "downloadfiletaskasync"))
WEB_SENDS = frozenset(
    ("uploadstring", "uploadfile", "uploaddata", "uploadvalues", "postasync", "putasync", "sendasync", "openwrite")
)


def is_pure_type(name: str) -> bool:
    """Return True if objects of that type only hold values."""
    return (
        name in PURE_OBJECTS or GENERIC_COLLECTION.fullmatch(name) is not None or name.removesuffix("[]") in PURE_TYPES
    )
