"""Programs that only read, and the options with which that is so.

Options are the attack surface of harmless programs, so they are listed and everything else is asked about. One row a program:

    name[,name…]  operands  options

`-abc` are letters without a value, `-n:` takes a value, `-f<` one that is a file it reads; `--name`, `--name=` and `--name<` likewise (a
value may stand behind `=`; `--name[=]` may have one, and only there; `-n[]` likewise). Indented lines go on with the row.
Operands: `paths` (files or folders it reads), `path?` (at most one), `pattern` (a text, then paths), `text` (anything), `format`
(text, with options before it), `none`. Left out on purpose: whatever writes, runs,
uses the network or sets the machine (`sort -o`, `uniq IN OUT`, `date -s`, `hostname NAME`, `tree -o`, `rg --pre`, `file -C`, `xxd -r A B`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Operands = Literal["paths", "path?", "pattern", "text", "none", "format"]

ROWS = """
cat                 paths    -AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs
    --show-nonprinting
tac                 paths    -bs: -r --before --regex --separator=
head                paths    -n: -c: -qvz -0123456789 --lines= --bytes= --quiet --silent --verbose --zero-terminated
tail                paths    -n: -c: -qvz -0123456789 --lines= --bytes= --quiet --silent --verbose --zero-terminated
nl                  paths    -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: -p --body-numbering= --number-format=
    --number-width= --starting-line-number=
wc                  paths    -clLmw --bytes --chars --lines --max-line-length --words --total=
ls,dir,vdir         paths    -aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -w: -T: --all --almost-all --author
    --classify[=] --color[=] --directory --full-time --group-directories-first --human-readable --si --inode --ignore=
    --hide= --indicator-style= --literal --no-group --numeric-uid-gid --quote-name --recursive --reverse --size
    --sort= --time= --time-style= --format= --width= --zero --dereference --block-size=
tree                paths    -adfilxpsughDFqNQrtUvACSJXn -L: -P: -I: --noreport --dirsfirst --filesfirst --du --prune
    --matchdirs --inodes --device --sort= --charset= --filelimit= --si --ignore-case --gitignore --metafirst
stat                paths    -Lft -c: --dereference --file-system --format= --printf= --terse
file                paths    -bcEhiIkLNnprsSv0 -F: -e: -P: --brief --mime --mime-type --mime-encoding --dereference
    --keep-going --no-pad --raw --extension
du                  paths    -0aAbcDhHklLmPsSx -d: -t: -B: --all --apparent-size --bytes --total --human-readable
    --max-depth= --summarize --si --exclude= --threshold= --one-file-system --block-size= --time[=] --separate-dirs
df                  paths    -aBhHiklPTv -t: -x: --all --block-size= --human-readable --si --inodes --local
    --portability --print-type --type= --exclude-type= --total --output[=]
cut                 paths    -b: -c: -d: -f: -nsz --bytes= --characters= --delimiter= --fields= --only-delimited
    --complement --output-delimiter= --zero-terminated
paste               paths    -d: -sz --delimiters= --serial --zero-terminated
join                paths    -a: -e: -i -j: -o: -t: -v: -1: -2: -z --ignore-case --check-order --nocheck-order
    --header --zero-terminated
comm                paths    -123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated
sort                paths    -bdfghiMnRrVcCmsuz -k: -t: --ignore-leading-blanks --dictionary-order --ignore-case
    --general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --numeric-sort --random-sort
    --reverse --sort= --version-sort --check[=] --key= --merge --stable --field-separator= --unique --zero-terminated
    --debug
uniq                path?    -cdDiuz -f: -s: -w: --count --repeated --all-repeated[=] --skip-fields= --group[=]
    --ignore-case --skip-chars= --unique --zero-terminated --check-chars=
rev,fold,fmt        paths    -bstucp -w: -0123456789 --bytes --spaces --width= --uniform-spacing
expand,unexpand     paths    -ai -t: --all --initial --first-only --tabs=
column              paths    -txenR: -c: -s: -o: -N: -J --table --columns= --separator= --output-separator= --fillrows
    --json
diff                paths    -abBcdeEinNpqrstTuwyZ -C: -U: -I: -W: -x: -F: -0123456789 --brief --recursive
    --unified[=] --context[=] --side-by-side --ignore-all-space --ignore-space-change --ignore-blank-lines
    --ignore-case --text --new-file --report-identical-files --suppress-common-lines --color[=] --width= --exclude=
    --strip-trailing-cr --minimal --normal --ed --label= --no-dereference --show-c-function --ignore-trailing-space
    --ignore-tab-expansion --ignore-matching-lines= --speed-large-files --unidirectional-new-file --tabsize=
    --left-column
cmp                 paths    -bls -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent
md5sum,sha1sum,sha224sum,sha256sum,sha384sum,sha512sum,b2sum,cksum,sum,shasum  paths  -bctwrsz -a: -l: --binary
    --check --tag --text --zero --ignore-missing --quiet --status --strict --warn --algorithm= --length=
base64,base32       paths    -di -w: -D --decode --ignore-garbage --wrap=
xxd                 path?    -abeipuEdr -c: -g: -l: -s: -n: -o:
od                  paths    -abcdfhiloxsv -A: -j: -N: -S: -t: -w: --address-radix= --skip-bytes= --read-bytes=
    --format= --output-duplicates --width[=] --strings[=]
hexdump,hd          paths    -bcCdovx -e: -n: -s:
strings             paths    -afhoVw -n: -t: -e: -0123456789 --all --bytes= --radix= --encoding= --print-file-name
grep,egrep,fgrep    pattern  -EFGPabcHhiILlnoqRrsTUvVwxyZz -A: -B: -C: -D: -d: -e: -f< -m: -0123456789
    --extended-regexp --fixed-strings --basic-regexp --perl-regexp --regexp= --file< --ignore-case --no-ignore-case
    --invert-match --word-regexp --line-regexp --count --color[=] --colour[=] --files-without-match
    --files-with-matches --max-count= --only-matching --quiet --silent --no-messages --byte-offset --with-filename
    --no-filename --label= --line-number --initial-tab --null --after-context= --before-context= --context= --text
    --binary-files= --binary --directories= --exclude= --exclude-from< --exclude-dir= --include= --recursive
    --dereference-recursive --null-data --line-buffered
rg                  pattern  -aBbcFHhiILlMnNoPpqsSTtuUvVwx0. -A: -B: -C: -E: -e: -f< -g: -j: -M: -m: -r: -T: -t:
    --after-context= --before-context= --context= --count --count-matches --color= --colors= --column --crlf --debug
    --encoding= --files --files-with-matches --files-without-match --fixed-strings --follow --glob= --iglob= --heading
    --no-heading --hidden --ignore-case --case-sensitive --smart-case --invert-match --json --line-number
    --no-line-number --line-regexp --max-columns= --max-count= --max-depth= --max-filesize= --multiline
    --multiline-dotall --no-config --no-ignore --no-ignore-vcs --no-messages --null --null-data --one-file-system
    --only-matching --passthru --pcre2 --pretty --quiet --regexp= --replace= --sort= --sortr= --stats --text
    --threads= --trim --type= --type-not= --type-list --unrestricted --vimgrep --with-filename --no-filename
    --word-regexp --binary --include-zero
jq                  pattern  -acCeijMnrRsS --ascii-output --color-output --compact-output --exit-status --join-output
    --monochrome-output --null-input --raw-output --raw-input --slurp --sort-keys --tab --indent= --seq --stream
    --raw-output0
yq                  pattern  -CMPNercjno: --colors --no-colors --prettyPrint --no-doc --exit-status --raw-output
    --output-format= --input-format= --unwrapScalar
echo                text     -
printf              format   -
true,false,:        text     -
test,[,[[           text     -
pwd                 none     -LP --logical --physical
whoami,tty,arch,nproc,logname  none  --all --ignore= -s --silent --quiet
hostname            none     -aAdfiIsy --short --fqdn --long --domain --ip-address --all-ip-addresses --all-fqdns
    --alias
id,groups           text     -aGgnruzZ --group --groups --name --real --user --zero
uname               none     -asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine
    --processor --hardware-platform --operating-system
uptime              none     -ps --pretty --since
date                format   -uRI[] -d: -r< --date= --reference< --utc --universal --rfc-email --rfc-2822 --rfc-3339=
    --iso-8601[=]
cal,ncal            text     -13hjmnsywY -A: -B: --three --one --year
seq                 text     -w -f: -s: --equal-width --format= --separator=
expr                text     -
basename            text     -az -s: --multiple --suffix= --zero
dirname             text     -z --zero
realpath,readlink   paths    -efmnqsvzPL --canonicalize --canonicalize-existing --canonicalize-missing --no-newline
    --quiet --silent --verbose --zero --logical --physical --strip --no-symlinks --relative-to= --relative-base=
which,whereis,type  text     -apbmsuflLtP --all --skip-alias
printenv            text     -0 --null
locale              text     -ackm --all-locales --charmaps --category-name --keyword-name
getconf             text     -a
free                none     -bkmghltvw -s: -c: --bytes --kilo --mega --giga --human --lohi --line --total --wide --si
ps                  text     -AaNdeflFjlMyHTLmwuxcrhVZ -C: -G: -g: -p: -s: -t: -U: -u: -o: -O: --pid= --ppid= --user=
    --format= --sort= --no-headers --headers --forest --cols= --columns= --width=
pgrep,pidof         text     -acdflnovwxLsi -d: -G: -g: -P: -s: -t: -u: -U: --list-name --list-full --full --newest
    --oldest --count --exact --ignore-case --parent= --euid= --uid=
lscpu,lsblk,lsusb,lspci,lsmod,lsmem,lsns,lslocks  text  -abBcdDefhiJklLmMnopPrsStTvVxyz -o: -O --all --bytes --fs
    --json --list --noheadings --output= --output-all --pairs --paths --perms --raw --topology --ascii --extended[=]
    --parse[=]
lsof                paths    -abhlnNoOPRtUvVX -i[] -p: -u: -c: -d: -g: -s[]
ss,netstat          text     -HOanlroempsTZbi460dtuwxSM -f: -A: --all --listening --numeric --resolve --processes
    --tcp --udp --raw --unix --summary --extended --memory --info --no-header --oneline --family= --query=
who,w,users,last    none     -abdHlmpqrsTtuwhfoi --all --boot --heading --count --short --no-header
sleep               text     -
ip                  none     -
kill                none     -lL
"""

# Of git, what only looks, in a repository that the person trusts. Rows as above, the subcommand first.
GIT_ROWS = """
status        paths  -sbvuz[] -u[] --short --branch --show-stash --porcelain[=] --long --verbose --untracked-files[=]
    --ignore-submodules[=] --ignored[=] --column[=] --no-column --ahead-behind --no-ahead-behind --renames
    --no-renames --find-renames[=] --null
log           paths  -pusmcrtzgiEFPqabw -n: -S: -G: -L: -U: -M[] -C[] -0123456789 --oneline --graph --decorate[=]
    --no-decorate --all --branches[=] --tags[=] --remotes[=] --stat[=] --shortstat --numstat --name-only --name-status
    --summary --patch --no-patch --raw --format= --pretty[=] --abbrev-commit --no-abbrev-commit --abbrev[=] --date=
    --relative-date --since= --after= --until= --before= --author= --committer= --grep= --all-match --invert-grep
    --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --max-count= --skip= --merges --no-merges
    --first-parent --reverse --follow --full-history --topo-order --date-order --author-date-order --left-right
    --cherry --cherry-pick --cherry-mark --boundary --no-walk[=] --walk-reflogs --simplify-by-decoration
    --diff-filter= --find-renames[=] --find-copies[=] --color[=] --no-color --word-diff[=] --color-words[=] --unified=
    --no-ext-diff --no-textconv --ignore-all-space --ignore-space-change --ignore-blank-lines --show-signature
    --pickaxe-regex --pickaxe-all --full-diff --source --use-mailmap --mailmap --not --ancestry-path --dirstat[=]
    --compact-summary --minimal --patience --histogram --diff-algorithm= --parents --children --no-notes --notes[=]
    --relative[=] --text --binary --exit-code --quiet --check --encoding=
show,whatchanged  paths  -pusmcrtziqw -n: -S: -G: -U: -M[] -C[] -0123456789 --oneline --decorate[=] --stat[=]
    --shortstat --numstat --name-only --name-status --summary --patch --no-patch --raw --format= --pretty[=]
    --abbrev-commit --abbrev[=] --date= --color[=] --no-color --word-diff[=] --color-words[=] --unified= --no-ext-diff
    --no-textconv --ignore-all-space --ignore-space-change --first-parent --diff-filter= --text --binary --no-notes
    --encoding= --compact-summary --minimal --patience --histogram --quiet
diff          paths  -pusmcrtziqwabR -S: -G: -U: -M[] -C[] -D -0123456789 --cached --staged --stat[=] --shortstat
    --numstat --name-only --name-status --summary --patch --no-patch --raw --no-index --merge-base --color[=]
    --no-color --word-diff[=] --color-words[=] --unified= --no-ext-diff --no-textconv --ignore-all-space
    --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --diff-filter= --find-renames[=] --find-copies[=]
    --text --binary --exit-code --quiet --check --minimal --patience --histogram --diff-algorithm= --function-context
    --relative[=] --abbrev[=] --full-index --compact-summary --dirstat[=] --pickaxe-all --pickaxe-regex --reverse
    --submodule[=] --ignore-submodules[=] --src-prefix= --dst-prefix= --no-prefix --inter-hunk-context=
    --color-moved[=] --no-renames
blame,annotate  paths  -bcefklnpstwM[] -L: -C[] --porcelain --line-porcelain --show-stats --show-name --show-number
    --show-email --date= --since= --reverse --root --incremental --abbrev= --color-lines --color-by-age --first-parent
    --encoding= --ignore-rev=
shortlog      paths  -nsecw[] --numbered --summary --email --all --since= --until= --no-merges --group= --format=
    --author=
describe      text   --all --tags --contains --abbrev[=] --candidates= --exact-match --long --match= --exclude=
    --always --first-parent --dirty[=] --broken[=]
ls-files      paths  -cdmoiskutvfz -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed
    --exclude= --exclude-standard --error-unmatch --full-name --abbrev[=] --eol --deduplicate --directory
    --no-empty-directory --format=
ls-tree       paths  -drtlz --long --name-only --name-status --full-name --full-tree --abbrev[=] --object-only
    --format=
cat-file      text   -tsep --batch-check[=] --textconv-none
rev-parse     text   --abbrev-ref[=] --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir
    --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --short[=]
    --verify --quiet -q --symbolic --symbolic-full-name --all --branches[=] --tags[=] --remotes[=]
    --show-superproject-working-tree --revs-only --no-revs --sq --local-env-vars --show-object-format[=]
rev-list      paths  -n: -0123456789 --all --count --max-count= --since= --until= --author= --grep= --left-right
    --merges --no-merges --first-parent --reverse --oneline --objects --branches[=] --tags[=] --remotes[=] --not
    --ancestry-path --topo-order --date-order --no-walk[=] --max-parents= --min-parents= --parents --children
    --boundary --abbrev-commit --format= --pretty[=]
merge-base    text   -a --all --octopus --is-ancestor --independent --fork-point
name-rev      text   --tags --refs= --all --name-only --always
for-each-ref  text   --format= --sort= --count= --points-at= --merged[=] --no-merged[=] --contains[=] --no-contains[=]
show-ref      text   -qsd --head --heads --branches --tags --verify --hash[=] --abbrev[=] --dereference --quiet
grep          pattern  -aiIwvhHErGFPnlLczopqW -e: -f< -m: -A: -B: -C: -0123456789 --text --ignore-case --word-regexp
    --invert-match --full-name --extended-regexp --basic-regexp --perl-regexp --fixed-strings --line-number --column
    --files-with-matches --name-only --files-without-match --count --color[=] --no-color --break --heading
    --show-function --context= --after-context= --before-context= --function-context --max-depth= --cached --untracked
    --no-index --recurse-submodules --and --or --not --all-match --quiet --only-matching --max-count= --null
    --threads= --no-textconv
count-objects none   -vH --verbose --human-readable
check-ignore  paths  -qvnz --quiet --verbose --non-matching --no-index
check-attr    paths  -az --all --cached
diff-tree     paths  -prtcmsuz --root --stat[=] --name-only --name-status --numstat --no-commit-id --cc --pretty[=]
    --format=
version       none   --build-options
help          text   -agc --all --guides --config
"""
# Subcommands of git that look only in these forms.
GIT_FORMS: Mapping[str, tuple[str, ...]] = {
    "branch": ("-a", "-r", "-v", "-vv", "-av", "-rv", "-avv", "--all", "--remotes", "--list", "-l", "--show-current", "--verbose", "--no-color"),
    "remote": ("-v", "--verbose", "get-url"),
    "tag": ("-l", "--list", "-n"),
    "stash": ("list", "show"),
    "config": ("--get", "--get-all", "--show-origin", "--show-scope", "get"),
    "worktree": ("list", "--porcelain"),
    "submodule": ("status", "summary"),
    "reflog": ("show", "-n"),
    "bisect": ("log",),
    "notes": ("list", "show"),
    "clean": ("-n", "-nd", "-nx", "-ndx", "-dn", "-nfd", "--dry-run"),
}  # fmt: skip

# Of those, the words behind which names may follow.
GIT_NAMING = frozenset((
    "--list", "-l", "list", "show", "get-url", "--get", "--get-all", "--get-regexp", "get", "status", "log",
))  # fmt: skip

# Tools that may be asked for their version or help, whatever else they do.
ASKED_FOR_HELP = frozenset((
    "python", "python3", "pip", "pip3", "node", "npm", "gcc", "g++", "clang", "make", "cmake", "java", "javac",
    "ruby", "perl", "php", "bash", "docker", "kubectl", "terraform", "gh", "curl", "wget", "rsync", "tar", "zip",
    "unzip", "gzip", "sed", "awk", "find", "git", "rm", "cp", "mv", "mkdir", "rmdir", "touch", "ln", "chmod", "chown",
    "dd", "tee", "ls", "cat", "sort", "uv", "rg", "fd", "jq", "tree",
))  # fmt: skip
HELP_WORDS = frozenset(("--version", "--help"))


@dataclass(frozen=True, slots=True)
class Reader:
    """The options with which a program only reads. `reading` are options whose value is a file."""

    operands: Operands
    plain: frozenset[str]
    valued: frozenset[str]
    optional: frozenset[str]
    reading: frozenset[str]


@dataclass(frozen=True, slots=True)
class Call:
    """The words of a call sorted by a reader's options: files it reads and other operands. `unknown` is a word that is not listed."""

    paths: tuple[int, ...] = ()
    texts: tuple[int, ...] = ()
    # Files that stand in the same word as their option.
    attached: tuple[tuple[int, str], ...] = ()
    unknown: int | None = None


@lru_cache(maxsize=1)
def readers() -> Mapping[str, Reader]:
    """The table, by program."""
    return _parse(ROWS)


@lru_cache(maxsize=1)
def git_readers() -> Mapping[str, Reader]:
    """The subcommands of git that only look."""
    return _parse(GIT_ROWS)


def sort_words(reader: Reader, argv: Sequence[str | None], *, start: int = 1) -> Call:
    """What each word of a call is. A word that is not certain (None) is an operand, which the caller has to think about."""
    paths: list[int] = []
    texts: list[int] = []
    attached: list[tuple[int, str]] = []
    at = start
    seen_pattern = reader.operands != "pattern"
    only_operands = False
    while at < len(argv):
        word = argv[at]
        if (
            word is not None
            and not only_operands
            and word.startswith("-")
            and len(word) > 1
            and reader.operands != "text"
        ):
            if word == "--":
                only_operands = True
                at += 1
                continue
            taken = _option(reader, argv, at)
            if taken is None:
                return Call(unknown=at)
            reads, following = taken
            if reads and following:
                paths.append(at + following)
            elif reads:
                attached.append((at, _attached(reader, word)))
            seen_pattern = seen_pattern or word.startswith(("-e", "--regexp", "-f", "--file")) or word == "--files"
            at += 1 + following
            continue
        if not seen_pattern:
            texts.append(at)
            seen_pattern = True
        else:
            (paths if reader.operands in ("paths", "path?", "pattern") else texts).append(at)
        at += 1
    if reader.operands == "none" and texts:
        return Call(unknown=texts[0])
    if reader.operands == "path?" and len(paths) > 1:
        return Call(unknown=paths[1])
    return Call(tuple(paths), tuple(texts), tuple(attached))


def _option(reader: Reader, argv: Sequence[str | None], at: int) -> tuple[bool, int] | None:
    """Whether its value is a file, and whether that is the next word; None when the option is not listed."""
    word = argv[at]
    assert word is not None
    if word.startswith("--"):
        name, equals, _ = word.partition("=")
        if name in reader.plain:
            return None if equals else (False, 0)
        if name in reader.optional:
            return False, 0
        if name in reader.valued or name in reader.reading:
            following = not equals
            if following and at + 1 >= len(argv):
                return None
            return name in reader.reading, int(following)
        return None
    if word in reader.plain:
        return False, 0
    for offset, letter in enumerate(word[1:], 1):
        option = f"-{letter}"
        if option in reader.optional:
            return False, 0
        if option in reader.valued or option in reader.reading:
            following = offset == len(word) - 1
            if following and at + 1 >= len(argv):
                return None
            return option in reader.reading, int(following)
        if option not in reader.plain:
            return None
    return False, 0


def _attached(reader: Reader, word: str) -> str:
    """The file in `--file=name` and `-fname`."""
    if word.startswith("--"):
        return word.partition("=")[2]
    at = next(offset for offset, letter in enumerate(word[1:], 1) if f"-{letter}" in reader.reading)
    return word[at + 1 :]


def _parse(rows: str) -> Mapping[str, Reader]:
    table: dict[str, Reader] = {}
    for row in rows.strip().replace("\n    ", " ").splitlines():
        names, operands, *options = row.split()
        sets: dict[str, set[str]] = {"": set(), ":": set(), "=": set(), "<": set(), "[]": set(), "[=]": set()}
        for option in options:
            match = re.fullmatch(r"(--?[A-Za-z0-9.-]*)(\[=\]|\[\]|[:=<]|)", option)
            assert match is not None, option
            name, kind = match[1], match[2]
            if name.startswith("--") or kind in ("=", "[=]"):
                sets[kind].add(name)
            elif kind:
                *flags, last = name[1:]
                sets[""].update(f"-{letter}" for letter in flags)
                sets[kind].add(f"-{last}")
            else:
                sets[""].update(f"-{letter}" for letter in name[1:])
        reader = Reader(
            _operands(operands),
            frozenset(sets[""]),
            frozenset(sets[":"] | sets["="]),
            frozenset(sets["[]"] | sets["[=]"]),
            frozenset(sets["<"]),
        )
        table.update(dict.fromkeys(names.split(","), reader))
    return table


def _operands(word: str) -> Operands:
    for known in ("paths", "path?", "pattern", "text", "none", "format"):
        if word == known:
            return known
    raise ValueError(f"{word!r} is no kind of operands")
