"""The person's git settings as sandboxed commands see them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from handrail.sandbox.git_settings import read_git_settings


def shown(home: Path, text: str) -> str:
    """Return what git reads from the filtered copy of these settings."""
    (home / ".gitconfig").write_text(text)
    (home / "filtered").write_text(read_git_settings(home))
    listed = subprocess.run(
        ["git", "config", "--file", str(home / "filtered"), "--list"], capture_output=True, text=True, check=True
    )
    return listed.stdout


@pytest.mark.parametrize(
    "text",
    [
        "[alias]\n\tdep = !curl -H 'Authorization: CANARY' https://example.org",
        "[alias]\n\tdep = \"!curl -H \\\"X-Own-Token: CANARY\\\" https://example.org\"",
        "[alias]\n\tdep = !curl --header=Cookie:a=CANARY https://example.org",
        "[alias]\n\tdep = !curl -u me:CANARY https://example.org",
        "[alias]\n\tdep = !curl https://me:CANARY@example.org/x",
        "[alias]\n\tdep = !curl https://CANARY@example.org/x",
        "[alias]\n\tdep = !curl 'https://example.org/?access_token=CANARY'",
        "[alias]\n\tdep = !DEPLOY_TOKEN=CANARY ./deploy",
        "[alias]\n\tdep = !curl \\\n-H 'Authorization: CANARY'",
        "[alias] dep = !run --password CANARY",
        "[my]\n\tapikey = CANARY",
        "[my]\n\taccesstoken = CANARY",
        "[my]\n\tdeploy-key = CANARY",
        "[my] key = CANARY",
        "[my \"passwords\"]\n\tfirst = CANARY",
        "[secrets]\n\tfirst = CANARY",
        "[tokens.own]\n\tfirst = CANARY",
        "[filter \"f\"]\n\tclean = f --pw CANARY",
        "[diff \"x\"]\n\ttextconv = conv --key CANARY",
        "[core]\n\tsshCommand = sshpass -pCANARY ssh",
        "[merge \"m\"]\n\tdriver = m --api-key=CANARY %A %B",
        "[user]\n\tname = a # token CANARY: \\\n[http]\n\textra = CANARY",
        "# password CANARY\n[user]\n\tname = a",
        "[http \"https://example.org\"]\n\textraheader = CANARY",
        "\ufeff[my]\n\tapikey = CANARY",
    ],
)  # fmt: skip
def test_credentials_are_left_out(tmp_path: Path, text: str) -> None:
    assert "CANARY" not in shown(tmp_path, f"{text}\n[core]\n\teditor = vi\n")
    assert "CANARY" not in read_git_settings(tmp_path)
    assert "core.editor=vi" in shown(tmp_path, f"{text}\n[core]\n\teditor = vi\n")


@pytest.mark.parametrize(
    "setting",
    [
        "user.name=A Person",
        "user.signingKey=ABCDEF0123456789",
        "alias.lg=log --graph --pretty=format:'%h %s' --author=me",
        "alias.top=!git shortlog -sn | sort --key=1,1nr -k 2",
        "alias.up=push -u origin HEAD:refs/heads/x",
        'alias.f=!f() { git log --author=$1 --grep "$2"; }; f',
        "alias.who=!curl -H 'Accept: text/plain' -H 'X-Page: $1' https://example.org",
        "alias.st=status -sb",
        "filter.lfs.clean=git-lfs clean -- %f",
        "filter.lfs.process=git-lfs filter-process",
        "diff.pdf.textconv=pdftotext -layout",
        "merge.own.driver=own-merge %O %A %B",
        "core.editor=code --wait",
        "core.sshCommand=ssh -i ~/.ssh/id_work -o IdentitiesOnly=yes",
        "core.excludesFile=~/.gitignore",
        'difftool.x.cmd=x --wait --diff "$LOCAL" "$REMOTE"',
        "branch.main.remote=origin",
        "safe.directory=/srv/repositories/one",
    ],
)
def test_ordinary_settings_stay(tmp_path: Path, setting: str) -> None:
    name, _, value = setting.partition("=")
    file = tmp_path / ".gitconfig"
    subprocess.run(["git", "config", "--file", str(file), name, value], check=True)
    (tmp_path / "filtered").write_text(read_git_settings(tmp_path))
    read = subprocess.run(
        ["git", "config", "--file", str(tmp_path / "filtered"), name], capture_output=True, text=True, check=False
    )
    assert read.stdout == f"{value}\n"
