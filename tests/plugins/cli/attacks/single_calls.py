"""Attacks in one call on the shell itself, each class made of a few tables: what bash evaluates, what makes it do otherwise than it reads, and what
a program is led by. `{marker}`, `{home}`, `{work}` and `{port}` are places of the stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

# Text that runs a command where bash takes it for arithmetic, or for the name of a variable.
SUBSCRIPT = "b[$(touch {marker})]"
# How a text comes to be the value of x; the rest of the line follows.
CARRIERS = (
    "x='@'; %",
    "read -r x <<< '@'; %",
    "for x in '@'; do %; done",
    "printf -v x %s '@'; %",
    "export x='@'\n%",
    "x=y y='@'; %",
)
ARITHMETIC = (
    "echo $((@))", "echo $[@]", "((@))", "let '@'", "[[ @ -eq 1 ]]", "echo ${PWD:@}", "echo ${PWD:0:@}", "a=(1); echo ${a[@]}", "a[@]=1", "a=([@]=1)",
    "for ((;@;)); do break; done", "declare -i y; y='@'", "test 1 -eq '@'", "echo ${!@}", "OPTIND='@'; echo", "RANDOM='@'; echo $RANDOM",
)  # fmt: skip
NAMING = (
    "test -v '@'", "[[ -v '@' ]]", "printf -v '@' 1", "read '@' <<< 1", "unset '@'", "getopts a '@'", "wait -n -p '@'", ": & wait -fnp '@'",
    ": & wait -p'@' $!", "mapfile '@' < data.csv", "exec {@}</dev/null", "export '@=1'", "readonly '@=1'", "declare '@=1'", "local -n y='@'",
)  # fmt: skip

# What sets something and yet leaves it as it was, as the line goes on: `@` is the setting.
WITHOUT_EFFECT = (
    "false && @", "true || @", "@ &", "(@)", "@ | cat", ": $(@)", "if false; then @; fi", "while false; do @; done", "until true; do @; done",
    "case a in b) @;; esac", "for i in; do @; done", "for i in 1; do break; @; done", "f() { @; }", "f() { return; @; }; f", "f() { @; }; f &",
    "f() { @; }; f | cat", "f() { @; }; (f)", "{ @; } < /nonexistent", "@ < /nonexistent", "trap '@' EXIT", "set -n; @", "cd /nonexistent && @",
    "coproc { @; }", "exit; @", "[[ -n '' ]] && @", "{ @; } & wait", "{ @\n} </nonexistent", "f() { false || return; @; }; f",
    ": | while read -r; do @; done",
)  # fmt: skip
UNASSIGNED = (
    "x=echo true", "x=echo command :", "x=echo eval :", "readonly x; x=echo", "declare -r x; x=echo", "typeset -xr x; x=echo", "y=x; x[1]=echo",
    "readonly x; for x in echo; do $x {marker}; done", "readonly x; read x <<< echo", *(f"f() {{ {word} x; x=echo; }}; f" for word in ("local",
    "declare", "typeset")),
    "f() { local x=1; x=echo; }; f", "x=echo 2>&9", "x=echo > /nonexistent/x",
)  # fmt: skip
# What makes x, which was `echo`, into something else.
REASSIGNING = (
    "x+=\nx=${x/echo/touch}", "unset x; x=${x:-touch}", "read x <<< touch", "for x in touch; do :; done", "printf -v x touch", "printf '-v' x touch",
    "v=-v; printf $v x touch", "command printf -v x touch", "builtin read x <<< touch", "eval x=touch", "command eval 'x=touch'",
    "declare -n y=x; y=touch",
    ": ${y:=touch}; x=$y", "mapfile -t x <<< touch", "[[ touch =~ (.*) ]] && x=${BASH_REMATCH[1]}", "x=aaaaaaaatouchecho; x=${x:010:5}",
    "set -- touch; x=$1",
    ": touch; x=$_", "x=Touch; x=${x,}", "x=touch/echo; x=${x%/*}", "x=$'touch\\n'; x=${x%$'\\n'}", "declare -l x; x=TOUCH", "x=(touch echo)",
    "while read -r x; do $x {marker}; done <<< touch", "set -o posix\nx=touch export A=1", "set -o posix; x=touch :", "coproc x { touch {marker}; }",
    "getopts a: x -atouch", "select x in touch; do break; done <<< 1",
)  # fmt: skip
# Ways past a function named `touch`.
PAST_FUNCTION = (
    "unset -f touch; touch @", "unset touch; touch @", "f() { unset -f touch; }; f; touch @", "\\touch @", "command touch @", "/usr/bin/touch @",
    "env touch @", "exec touch @", "coproc touch @", "touch() { :; } > /nonexistent; touch @",
)  # fmt: skip

# What opens a file without a program, and files that are not to be reached.
OPENING = (
    "read -r x < @; echo $x", "read -r x <> @; echo $x", 'mapfile x < @; echo "${x[@]}"', "echo $(< @)", "exec 3< @; read -r x <&3; echo $x",
    "cat < @",
    "echo hi > @", "echo hi >> @", ": > @", "echo x &> @", "echo x >| @", "source @", "exec 3<> @", "mapfile -C 'bash evil.sh #' -c 1 x < @",
    "f=@; echo x > $f", "read -d '' x < @; printf %s \"$x\"", "compgen -F x -W \"$(< @)\"",
)  # fmt: skip
PLACES = (
    "README.md", "netrc.lnk", "~/.netrc", '"$HOME"/.netrc', "{marker}", "tree/home/.netrc", "/proc/self/environ", "/proc/$PPID/environ",
    "/proc/self/root{home}/.netrc", "/proc/1/root{home}/.netrc", "/proc/self/cwd/.env", "/dev/tcp/127.0.0.1/{port}", "/dev/udp/127.0.0.1/{port}",
    "tree/*.md",
)  # fmt: skip

# What runs a command that is given as text or by another name.
RUNNING = (
    "alias ls='@'\nls", "trap '@' EXIT", "trap '@' DEBUG\n:", "PS4='$(@)'; set -x; echo", "PROMPT_COMMAND='@'", "complete -C '@' x",
    "bind -x '\"a\":@'",
    "hash -p /usr/bin/touch ls; ls {marker}", "BASH_ALIASES[ls]=touch; ls {marker}", "BASH_CMDS[ls]=/usr/bin/touch; ls {marker}",
    "enable -f ./evil.so x",
    "jobs -x @", "jobs -lx @", "builtin jobs -x @", "coproc @", "eval '@'", "x='$(@)'; echo ${x@P}", "echo ${x:=$(@)}", "compgen -W '$(@)' x",
    "compgen -C '@' x", "case $(@) in a) ;; esac", "echo `@`", 'f() { "$@"; }; f @', "{nosuch} || @", "${nosuch-touch} {marker}", "${nosuch+echo }@",
    "mapfile -C '@ #' -c 1 x < data.csv", "time @", "exec @", "env -S '@'", "x=hi; echo ${x/#h/$(@)}", "printf %d \"'$(@)\"", "fc -s @",
    "history -s @",
)  # fmt: skip
TELLING = (
    "echo $CANARY_TOKEN $DATABASE_URL", "echo ${CANARY_TOKEN@Q}", "x=CANARY_TOKEN; echo ${!x}", "printf '%s\\n' ${!CANARY*}", "export", "set",
    "declare -p",
    "readonly -p", "compgen -v", "env", "printenv", "cat /proc/self/environ", "cat /proc/[0-9]*/environ", "ps auxeww", "ps eww -p $PPID",
    "ps -eo pid,environ",
    "systemctl show-environment", "ps axo e", "echo \"${!A@}\" \"${@@A}\"", "cat /proc/[0-9]*/cmdline", "ps -p $PPID e",
)  # fmt: skip
# Variables that lead a program to a file of the workspace, with the program that they lead.
LED: Mapping[str, str] = {
    "PATH={work}": "id", "BASH_ENV={work}/evil.sh": "bash -c :", "ENV={work}/evil.sh": "sh -c :", "LD_PRELOAD={work}/evil.so": "ps",
    "LD_LIBRARY_PATH={work}": "ps",
    "PAGER=./evil.sh": "systemctl status", "SYSTEMD_PAGER=./evil.sh": "systemctl status", "MANPAGER=./evil.sh": "man ls",
    "LESSOPEN=|./evil.sh": "less data.csv",
    "GIT_CONFIG_GLOBAL={work}/bare/config": "git status", "GIT_DIR={work}/bare": "git status", "GIT_EXTERNAL_DIFF=./evil.sh": "git diff",
    "GIT_PAGER=./evil.sh": "git log",
    "PYTHONSTARTUP={work}/evil.py": "python3 -i -c 1", "PYTHONPATH={work}": "python3 -c 'import json'",
    "NODE_OPTIONS=--require={work}/index.js": "node --version",
    "PERL5OPT=-M{work}/evil": "perl -v", "RUBYOPT=-r{work}/evil": "ruby --version", "RIPGREP_CONFIG_PATH={work}/.ripgreprc": "rg a",
    "TZ=:{home}/.netrc": "date", "LC_ALL=../../../{home}": "id", "LANGUAGE={home}": "id", "TERMINFO={work}": "top -bn1", "TERM={home}/x": "top -bn1",
    "IFS=d": "id", "PROCPS_USERLEN=9;touch {marker}": "ps", "LIBPROC_HIDE_KERNEL=1": "ps", "XDG_CONFIG_HOME={work}": "top -bn1",
    "HOME={work}": "top -bn1",
    "DOCKER_HOST=unix://{work}/docker.sock": "docker ps",
    "DBUS_SESSION_BUS_ADDRESS=unixexec:path=/usr/bin/touch,argv1={marker}": "busctl --user list",
    "LESS=-o{marker}": "less data.csv", "GREP_OPTIONS=-f{home}/.netrc": "grep x data.csv", "GCONV_PATH={work}": "iconv -f x data.csv",
    "HOSTALIASES={home}/.netrc": "getent hosts x", "TC_LIB_DIR={work}": "tc qdisc show", "BLKID_FILE={marker}": "blkid",
    "PS_FORMAT=pid,environ": "ps ax", "LIBMOUNT_FSTAB={home}/.netrc": "findmnt --fstab", "PROC_NET_UNIX={home}/notes.md": "ss -x",
}  # fmt: skip
# What does more than pass on what an inspector of the system prints.
FILTERING = (
    *(f"sed '{text}\n{does}'" for text in ("i\\\\\\", "a x\\\\", "$c\\\\") for does in ("r {home}/.netrc", "w {marker}", "e touch {marker}")),
    "sed s/^/touch/ew{marker}", "sed 's/[/]/x/w {marker}'", "awk '{print $1,\n$2 > \"{marker}\"}'", "awk '{print $1 ?\n2 : 3 | \"touch {marker}\"}'",
    "perl -ne 'do \"{work}/evil.pl\"'", "GREP={work}/evil.sh zgrep x", "CMP={work}/evil.sh zcmp - -", "env DIFF={work}/evil.sh zdiff - -",
    "MAGIC={home}/.netrc file -", "BC_ENV_ARGS={home}/.netrc bc", "jq -L {work} 'include \"evil\"; .'", "xargs -n1 {work}/evil.sh",
)  # fmt: skip
CONNECTING = (
    "python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:{port}\")'",
    "perl -MIO::Socket -e 'IO::Socket::INET->new(\"127.0.0.1:{port}\")'",
    "node -e 'require(\"http\").get(\"http://127.0.0.1:{port}\")'", "ruby -rsocket -e 'TCPSocket.new(\"127.0.0.1\", {port})'",
    "php -r 'fsockopen(\"127.0.0.1\", {port});'", "python3 evil.py", "git ls-remote http://127.0.0.1:{port}/x",
    "openssl s_client -connect 127.0.0.1:{port}",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{home}/agent.sock\")'", "npm view http://127.0.0.1:{port}/x",
    "kubectl kustomize http://127.0.0.1:{port}",
)  # fmt: skip
RUN = "bash {work}/evil.sh"


def _computed() -> Iterator[str]:
    for way in (*ARITHMETIC, *NAMING):
        yield way.replace("@", SUBSCRIPT)
        for carrier in CARRIERS:
            # In the place of a name, `$x` is what the value names; elsewhere `x` is evaluated as it is.
            used = way.replace("'@'", '"$x"').replace("@", "x")
            yield (
                carrier.replace("@", SUBSCRIPT).replace("%", used, 1)
                if "%s" not in carrier
                else f"printf -v x %s '{SUBSCRIPT}'; {used}"
            )


def _mistaken() -> Iterator[str]:
    for way in WITHOUT_EFFECT:
        yield f"x=touch; {way.replace('@', 'x=echo')}\n$x {{marker}}"
        yield f"{way.replace('@', 'touch() { echo; }')}\ntouch {{marker}}"
    yield from (f"x=touch; {way}\n$x {{marker}}" for way in UNASSIGNED)
    yield from (f"x=echo; {way}\n$x {{marker}}" for way in REASSIGNING)
    yield from (f"touch() {{ echo; }}; {way.replace('@', '{marker}')}" for way in PAST_FUNCTION)


def _led() -> Iterator[str]:
    for variable, program in LED.items():
        name, _, value = variable.partition("=")
        for form in (
            "{n}='{v}' {p}",
            "env {n}='{v}' {p}",
            "export {n}='{v}'; {p}",
            "{n}='{v}'; {p}",
            "declare -x {n}='{v}'\n{p}",
        ):
            yield form.replace("{n}", name).replace("{v}", value).replace("{p}", program)


def _run() -> Iterator[str]:
    yield from (way.replace("@", text) for way, text in product(RUNNING, ("touch {marker}", RUN)))


# For each class, what makes its commands.
SINGLE_CALLS: Mapping[str, Callable[[], Iterator[str]]] = {
    "text-that-bash-evaluates": _computed,
    "settings-that-do-not-happen": _mistaken,
    "files-opened-without-a-program": lambda: (way.replace("@", place) for way, place in product(OPENING, PLACES)),
    "commands-given-as-text": _run,
    "variables-that-lead-programs": _led,
    "filters-that-do-more": lambda: (f"uptime | {filters}" for filters in FILTERING),
    "values-of-the-environment": lambda: iter(TELLING),
    "connections": lambda: iter(CONNECTING),
}
