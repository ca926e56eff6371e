"""The variables of a Windows session, or of PowerShell elsewhere, that are known without looking."""

from __future__ import annotations

from collections.abc import Mapping

from handrail_cli.shell.windows.findings import LineEvaluation


def known_environment(case: LineEvaluation) -> Mapping[str, str]:
    """Return the environment variables whose value is certain on any host, by their lower-case names."""
    judging = case.judging
    if not case.windows:
        return {"home": str(judging.home), "user": judging.user, "pwd": str(case.cwd or ""), "logname": judging.user}
    home = str(judging.home)
    drive, _, rest = home.partition(":")
    return {
        "userprofile": home,
        "homedrive": f"{drive}:",
        "homepath": rest,
        "home": home,
        "username": judging.user,
        "temp": rf"{home}\AppData\Local\Temp",
        "tmp": rf"{home}\AppData\Local\Temp",
        "appdata": rf"{home}\AppData\Roaming",
        "localappdata": rf"{home}\AppData\Local",
        "systemroot": r"C:\Windows",
        "windir": r"C:\Windows",
        "systemdrive": "C:",
        "programfiles": r"C:\Program Files",
        "programfiles(x86)": r"C:\Program Files (x86)",
        "programw6432": r"C:\Program Files",
        "commonprogramfiles": r"C:\Program Files\Common Files",
        "programdata": r"C:\ProgramData",
        "allusersprofile": r"C:\ProgramData",
        "public": r"C:\Users\Public",
        "comspec": r"C:\Windows\System32\cmd.exe",
        "os": "Windows_NT",
    }
