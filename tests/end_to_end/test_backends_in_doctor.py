"""What `handrail doctor` says of the vision backends, of all plugins together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HANDRAIL = Path(sys.executable).with_name("handrail")


def test_the_doctor_says_which_key_and_which_server_backends_lack(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "GEMINI_API_KEY"}
    (tmp_path / "config.toml").write_text(
        '[backends.qwen]\nurl = "http://127.0.0.1:9/v1"\nkey_variable = "A_KEY_THAT_IS_NOWHERE"\n'
        '[backends.omniparser]\nurl = "http://127.0.0.1:9"\n'
    )
    done = subprocess.run(
        [HANDRAIL, "doctor", "--json", "--desktop", "private", "--config", tmp_path / "config.toml"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    for name, lacks, cure in (
        ("gemini_computer_use", "GEMINI_API_KEY", "Google AI Studio"),
        ("qwen", "A_KEY_THAT_IS_NOWHERE", "export"),
        ("omniparser", "http://127.0.0.1:9", "backends.omniparser.url"),
        ("phi", "backends.phi.url", "address"),
    ):
        check = checks[f"backend {name}"]
        assert (check["ok"], check["needed"]) == (False, False)
        assert lacks in check["detail"]
        assert cure in check["cure"]
    assert checks["backend ocr"]["ok"]
    # The one that is chosen has its line as the others have.
    assert [name for name in checks if "accessibility" in name and "backend" in name] == ["backend accessibility"]
    assert checks["vision on private"]["detail"] == "by accessibility"
