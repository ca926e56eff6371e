"""Checks of Perl, Ruby, JavaScript, PHP, Lua and R in a command line, by allowlists of words that compute and print.

A program is split into strings, numbers, names and marks. Every name must be known to compute or print, or be a
variable of the program itself; names that start programs, open files or reach further are dangerous, and everything
else is not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from handrail_cli.programs.scripts.script_finding import READ_ONLY, UNCLEAR, ScriptFinding, create_dangerous_finding

MAX_CODE = 4000


@dataclass(frozen=True)
class LanguageRules:
    """Rules of a language: its strings and comments, names that compute or do more, and how variables are created."""

    tokens: re.Pattern[str]
    computes: frozenset[str]
    dangerous: frozenset[str]
    binds: re.Pattern[str]
    # In these strings code may stand.
    live: re.Pattern[str]
    # Marks that run something, or begin what is not taken apart here.
    runs: re.Pattern[str]
    # What would make strings and comments begin or end elsewhere than they seem to.
    misleads: re.Pattern[str]
    # After which tokens a `/` can only divide.
    divided: frozenset[str] = frozenset(("number",))


NUMBER = r"(?P<number>\b\d[\w.]*)"
SINGLE = r"'(?:[^'\\]|\\.)*'"
DOUBLE = r'"(?:[^"\\]|\\.)*"'


def _compile_tokens(*, strings: str, comments: str, name: str, regex: str = r"(?!)") -> re.Pattern[str]:
    return re.compile(
        rf"(?P<comment>{comments})|(?P<string>{strings})|(?P<regex>{regex})|{NUMBER}|(?P<name>{name})|(?P<mark>[^\w\s])|\s+",
        re.DOTALL,
    )


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER = re.compile(r"(?!)")
RUBY = LanguageRules(
    _compile_tokens(strings=rf"{SINGLE}|{DOUBLE}", comments=r"\#[^\n]*", name=r"[@$]*[A-Za-z_]\w*[?!]?"),
    _split_words(
        "puts print p pp format sprintf if unless else elsif end while until do then def return nil true false and or not case when in "
        "yield upto downto times each each_with_index map select reject inject reduce sum size length first last join split sort sort_by "
        "uniq reverse upcase downcase capitalize strip chomp to_s to_i to_f to_a to_sym inspect min max zip flatten compact include? "
        "empty? even? odd? zero? abs round floor ceil gsub sub tr start_with? end_with? keys values merge push pop shift count group_by "
        "tally step succ pred chars bytes ord chr Math sqrt PI Time now year month day strftime Integer Float String Array Hash Range "
        "RUBY_VERSION RUBY_PLATFORM class is_a? new rand Random lambda proc call loop break next freeze dup"
    ),
    _split_words(
        "system exec spawn fork eval instance_eval class_eval module_eval instance_exec send __send__ public_send method open "
        "FileUtils Process Kernel load Socket TCPSocket TCPServer UDPSocket UNIXSocket Net Open3 PTY ENV "
        "ObjectSpace binding define_method const_get syscall trap at_exit popen unlink delete rm_rf Fiddle DL Marshal autoload exit! "
        "abort URI"
    ),
    re.compile(r"([a-z_]\w*)\s*(?:\|\||[-+*/%&|^]|<<|\*\*)?=(?!=|~)|\|([\w\s,]+)\||def\s+(\w+)|\(([\w\s,]*)\)"),
    re.compile(r'^".*#[{$@]', re.DOTALL),
    re.compile(r"`|%[xwWqQiIrs]?[\W_]|<<[~-]?['\"A-Za-z]|&:|&method|\\$"),
    re.compile(r"[$?@]\s*[\"'`#/]|(?m:^=)|__\w+__"),
)  # fmt: skip
NODE = LanguageRules(
    _compile_tokens(strings=rf"{SINGLE}|{DOUBLE}|`(?:[^`\\]|\\.)*`", comments=r"//[^\n]*|/\*.*?\*/", name=r"[A-Za-z_$][\w$]*"),
    _split_words(
        "console log info warn error table dir let const var if else for of in while do return function true false null undefined NaN "
        "Infinity typeof new try catch throw break continue switch case default Math PI abs floor ceil round max min pow sqrt random sign "
        "trunc log2 log10 sin cos tan JSON stringify parse Object keys values entries fromEntries assign Array from isArray String Number "
        "Boolean Date now toISOString getTime getFullYear getMonth getDate toString toFixed toUpperCase toLowerCase length split join map "
        "filter reduce forEach some every find findIndex includes indexOf slice splice concat push pop shift unshift sort reverse fill "
        "flat flatMap trim trimStart trimEnd replace replaceAll match matchAll test startsWith endsWith padStart padEnd repeat charAt "
        "charCodeAt fromCharCode codePointAt substring substr parseInt parseFloat isNaN isInteger isFinite Set Map has get set add size "
        "Symbol BigInt RegExp Error message Intl NumberFormat DateTimeFormat format localeCompare toLocaleString process version versions "
        "platform arch v8 argv exit uptime memoryUsage cwd hrtime Buffer encodeURIComponent decodeURIComponent encodeURI decodeURI btoa "
        "atob setTimeout Promise resolve then all await async structuredClone URL URLSearchParams host hostname pathname searchParams "
        "href crypto randomUUID"
    ),
    _split_words(
        "eval Function child_process exec execSync spawn spawnSync fork execFile execFileSync net http https http2 "
        "dgram tls vm worker_threads cluster fetch XMLHttpRequest WebSocket globalThis global mainModule binding dlopen "
        "constructor __proto__ prototype Reflect Proxy env kill chdir setuid unlinkSync rmSync rm unlink WebAssembly Deno "
        "Bun"
    ),
    re.compile(r"(?:let|const|var)\s+\{?\[?([\w$\s,:]+?)\]?\}?\s*(?:=|of|in|;)|function\s*\w*\s*\(([\w$\s,]*)\)|\(([\w$\s,]*)\)\s*=>|([\w$]+)\s*=>|catch\s*\((\w+)\)|function\s+(\w+)"),
    re.compile(r"^`.*\$\{", re.DOTALL),
    re.compile(r"\\u|\[\s*['\"`]|\]\s*\(|#"),
    re.compile(r"<!--|-->"),
)  # fmt: skip
PHP = LanguageRules(
    _compile_tokens(strings=rf"{SINGLE}|{DOUBLE}", comments=r"//[^\n]*|\#[^\n]*|/\*.*?\*/", name=r"\$?[A-Za-z_]\w*"),
    _split_words(
        "echo print print_r var_dump var_export printf sprintf number_format if else elseif for foreach as while do return function fn "
        "true false null and or not new array count strlen strtoupper strtolower ucfirst ucwords trim ltrim rtrim explode implode join "
        "str_replace str_repeat str_pad substr strpos strrev array_sum array_keys array_values array_merge array_reverse array_unique "
        "array_slice sort rsort ksort asort range in_array max min abs floor ceil round sqrt pow pi rand mt_rand random_int intdiv date "
        "time strtotime mktime microtime json_encode json_decode md5 sha1 hash crc32 base64_encode base64_decode bin2hex hex2bin dechex "
        "hexdec bindec decbin urlencode urldecode htmlspecialchars PHP_EOL PHP_VERSION PHP_OS PHP_INT_MAX phpversion php_uname "
        "php_sapi_name is_int is_string is_array isset empty uniqid serialize JSON_PRETTY_PRINT PHP_OS_FAMILY intval floatval strval ord "
        "chr nl2br wordwrap ucwords similar_text levenshtein soundex metaphone"
    ),
    _split_words(
        "system exec passthru shell_exec popen proc_open pcntl_exec eval assert create_function "
        "unlink rmdir mkdir rename copy symlink chmod chown fsockopen "
        "pfsockopen stream_socket_client socket_create curl_init curl_exec mail header call_user_func call_user_func_array "
        "ob_start register_shutdown_function unserialize dl putenv getenv ini_set set_include_path "
        "extract parse_str phpinfo posix_kill FFI ReflectionFunction"
    ),
    re.compile(r"(\$\w+)"),
    re.compile(r'^".*(\{\$|\$\{)', re.DOTALL),
    re.compile(r"`|<<<|\$\$|\$\w+\s*\(|[\"'\])}]\s*\("),
    re.compile(r"\?>|<\?"),
    frozenset(("number", "name", "mark", "string")),
)  # fmt: skip
LUA = LanguageRules(
    _compile_tokens(strings=rf"{SINGLE}|{DOUBLE}", comments=r"--(?!\[)[^\n]*", name=r"[A-Za-z_]\w*"),
    _split_words(
        "print if then else elseif end for do while repeat until in return function local true false nil and or not pairs ipairs tostring "
        "tonumber type select string format rep sub upper lower len reverse gsub gmatch match find byte char table concat insert remove "
        "sort unpack math pi floor ceil abs sqrt max min huge random sin cos tan exp log fmod _VERSION next assert error os time date "
        "clock break"
    ),
    _split_words(
        "execute popen dofile loadfile load loadstring package debug rawget rawset setmetatable getmetatable _G _ENV "
        "getenv rename tmpname exit ffi jit"
    ),
    re.compile(r"local\s+(?:function\s+)?([\w\s,]+)|for\s+([\w\s,]+?)\s*(?:=|in)|function\s*\w*\s*\(([\w\s,]*)\)|([A-Za-z_]\w*)\s*="),
    NEVER,
    # Of the system nothing but the time: `remove` is of tables.
    re.compile(r"\[\[|\[=|\[\s*['\"]|\]\s*\(|[\"']\s*:|(?<!\w)os\b(?!\.(?:time|date|clock)\b)"),
    NEVER,
    frozenset(("number", "name", "mark", "string")),
)  # fmt: skip
R = LanguageRules(
    _compile_tokens(strings=rf"{SINGLE}|{DOUBLE}", comments=r"\#[^\n]*", name=r"[A-Za-z.][\w.]*"),
    _split_words(
        "print cat paste paste0 sprintf format c seq rep sum mean median sd var min max range length nchar sqrt abs exp log log10 round "
        "floor ceiling if else for in while function return TRUE FALSE NULL NA T F pi letters LETTERS rev sort order unique table summary "
        "head tail rnorm runif sample set.seed matrix dim nrow ncol t apply sapply lapply vapply vector list names data.frame str class "
        "typeof is.na toupper tolower substr strsplit gsub sub grepl as.numeric as.integer as.character R.version.string R.version "
        "packageVersion Sys.time Sys.Date date version stopifnot nlevels factor levels quantile cumsum diff which"
    ),
    _split_words(
        "system system2 shell eval parse load url download.file unlink file.remove file.rename "
        "sink socketConnection pipe Sys.getenv Sys.setenv install.packages do.call get "
        "assign match.fun environment"
    ),
    re.compile(r"([A-Za-z.][\w.]*)\s*(?:<-|=)|for\s*\(\s*(\w+)|function\s*\(([\w\s,.]*)\)"),
    NEVER,
    # What is applied may be named by a text.
    re.compile(r"`|::|\\\(|apply\b(?!\(\s*[\w.:]+(?:\([\w.,: ]*\))?\s*,\s*function\s*\()"),
    re.compile(r"[rR][\"']"),
    frozenset(("number", "name", "mark", "string")),
)  # fmt: skip
PERL = LanguageRules(
    _compile_tokens(strings=rf"{SINGLE}|{DOUBLE}", comments=r"(?<![$@])\#[^\n]*", name=r"[$@%]?[A-Za-z_]\w*|\$\d+|[$@]_|\$[.,;/\\]"),
    _split_words(
        "print printf say sprintf if unless else elsif for foreach while until do my our return and or not x eq ne lt gt le ge cmp join "
        "split map grep sort reverse keys values each push pop shift unshift splice length substr index rindex uc lc ucfirst lcfirst abs "
        "int sqrt sin cos exp log hex oct ord chr scalar defined exists delete wantarray time localtime gmtime rand srand chomp chop last "
        "next BEGIN END $_ @_ $. $, $; $/ $\\ @F $a $b sum max min first uniq undef pos lc sprintf"
    ),
    _split_words(
        "system exec fork eval open close opendir unlink rmdir mkdir rename chmod chown kill require use no socket connect bind listen "
        "accept syscall qx readpipe pipe dup sysopen sysread syswrite read readline glob symlink link utime truncate chdir chroot ioctl "
        "fcntl dbmopen tie bless sub local goto dump ENV %ENV $ENV @ARGV $ARGV STDIN require IO Socket POSIX format write select getc"
    ),
    re.compile(r"(?:my|our)\s*\(?([$@%\w\s,]+)|([$@%]\w+)"),
    re.compile(r'^".*(@\{|\$\{|\$ENV|@\[|[$@]\w+\s*(->)?\s*[\[{])', re.DOTALL),
    re.compile(r"`|<[\w$]*>|<<|\bq[qxwr]?\b|&\s*[\w$@{]|->|\$\$|\$\{|@\{|\*\w+\{|\$\W?ENV|(?<![\w$])(?:tr|y|m)\b|(?<![\w$@%])do\b(?!\s*\{)"),
    re.compile(r"[$@%&]\s*[\"'`#/]|(?m:^=)|__\w+__"),
)  # fmt: skip
# `s/…/…/` and `/…/` of perl where a term is expected, without quotes and without code in them.
PERL_BEFORE = r"(^|(?<![$@%])[(~;{!&|]|(?<![\w$@%&>:-])(?:if|unless|and|or)\b)(\s*)"
PERL_BODY = r"(?:\\[^\"'`]|[^\\\"'`;{mark}])*"
PERL_SUBSTITUTION = re.compile(
    PERL_BEFORE
    + r"s(?:"
    + "|".join(
        rf"{m}{PERL_BODY.replace('{mark}', m)}{m}{PERL_BODY.replace('{mark}', m)}{m}" for m in ("/", "#", "!", ":")
    )
    + r")[gimsxr]*(?![a-zA-Z])"
)
PERL_MATCH = re.compile(PERL_BEFORE + "/" + PERL_BODY.replace("{mark}", "/") + r"/[gimsx]*(?![a-zA-Z])")
PERL_LIVE = re.compile(r"\(\?\??\{|@\{|\$\{|\$ENV|@\[|[$@]\w+\s*(->)?\s*[\[{]|\(\*")


def check_names(text: str, language: LanguageRules) -> ScriptFinding:
    """Check what a program does, as far as its names show."""
    if len(text) > MAX_CODE or language.misleads.search(text):
        return UNCLEAR
    tokens = list(language.tokens.finditer(text))
    if sum(len(token[0]) for token in tokens) != len(text):
        return UNCLEAR
    bare = "".join('""' if token.lastgroup in ("string", "comment") else token[0] for token in tokens)
    names = [token["name"] for token in tokens if token["name"] is not None]
    if (wrong := next((name for name in names if name in language.dangerous), None)) is not None:
        return create_dangerous_finding(f"uses {wrong!r}")
    if language.runs.search(bare) or any(
        token["string"] is not None and language.live.match(token["string"]) for token in tokens
    ):
        return UNCLEAR
    made = {
        name
        for match in language.binds.finditer(bare)
        for group in match.groups()
        if group
        for name in re.findall(r"[$@%]?[\w$]+", group)
    }
    if not _is_division_only(tokens, language):
        return UNCLEAR
    return READ_ONLY if all(name in language.computes or name in made for name in names) else UNCLEAR


def _is_division_only(tokens: list[re.Match[str]], language: LanguageRules) -> bool:
    """Return True if each `/` can only divide: a pattern between slashes would hide its contents."""
    before: re.Match[str] | None = None
    for token in tokens:
        if token[0] == "/" and (before is None or not _is_value_token(before, language)):
            return False
        if token[0].strip():
            before = token
    return True


def _is_value_token(token: re.Match[str], language: LanguageRules) -> bool:
    if token.lastgroup == "name":
        return token[0].startswith("$") or language.divided > {"number"}
    return token.lastgroup in language.divided


def check_perl_script(text: str) -> ScriptFinding:
    """Perl, with substitutions and matches that hold no code."""

    def emptied(match: re.Match[str]) -> str:
        return match[0] if PERL_LIVE.search(match[0][len(match[1]) :]) else f"{match[1]}{match[2]} 1 "

    if "`" in text:
        return create_dangerous_finding("runs commands (`…`)")
    return check_names(PERL_MATCH.sub(emptied, PERL_SUBSTITUTION.sub(emptied, text)), PERL)


def check_ruby_script(text: str) -> ScriptFinding:
    """Ruby, in which backquotes run commands."""
    finding = check_names(text, RUBY)
    return create_dangerous_finding("runs commands (`…`)") if finding.doubtful and "`" in text else finding


def check_node_script(text: str) -> ScriptFinding:
    """JavaScript; `require('./package.json')` reads a file of the project."""
    read = re.findall(r"require\(\s*['\"](\.{1,2}/[\w./-]+\.json)['\"]\s*\)", text)
    finding = check_names(
        re.sub(r"require\(\s*['\"](\.{1,2}/[\w./-]+\.json)['\"]\s*\)(\.[A-Za-z]\w*)*", "1", text), NODE
    )
    if read and finding == READ_ONLY:
        return ScriptFinding(named=tuple(("read", name) for name in read))
    return finding


def check_php_script(text: str) -> ScriptFinding:
    """Check a PHP script."""
    return check_names(text, PHP)


def check_lua_script(text: str) -> ScriptFinding:
    """Lua."""
    return check_names(text, LUA)


def check_r_script(text: str) -> ScriptFinding:
    """Check an R script."""
    return check_names(text, R)
