from __future__ import annotations

import json
import os
import tomllib

import jsonschema
import pytest

BROKEN = {
    "broken": "a_module_that_is_nowhere",
    "colliding": "belongs to plugin 'core'",
    "misspelt": "did you mean 'handrail_register_tools'?",
    "wrong_core": "it needs handrail-core>=99",
}


def test_plugins_says_what_loaded_what_did_not_and_why(handrail):
    listed = {
        plugin["name"]: plugin
        for plugin in handrail.json("plugins", plugins=",".join((*BROKEN, "slow", "stage", "absent")))
    }
    for name, reason in BROKEN.items():
        assert listed[name]["state"] == "failed"
        assert reason in listed[name]["reason"]
        assert listed[name]["tools"] == []
    assert listed["slow"]["state"] == "loaded"
    assert listed["slow"]["seconds"] > 0.25
    assert "greet" in listed["stage"]["tools"]
    assert listed["absent"]["reason"].startswith("it is named (HANDRAIL_PLUGINS), and not installed; there are ")
    assert listed.get("cli", {"state": "disabled"})["state"] == "disabled"


def test_a_plugin_that_is_named_and_not_installed_is_told_wherever_tools_are_asked_for(handrail):
    told = handrail("tools", plugins="stagee")
    assert told.returncode == 0
    assert (
        "plugin 'stagee' did not load: it is named (HANDRAIL_PLUGINS), and not installed; did you mean 'stage'?"
        in told.stderr
    )


def test_a_plugin_that_does_not_load_is_told_wherever_calls_are_made(handrail):
    done = handrail("call", "wait", "--args", '{"seconds": 0.1}', plugins="broken")
    assert done.returncode == 0
    assert "WARNING handrail.plugins.loader: plugin 'broken' did not load: " in done.stderr
    assert "a_module_that_is_nowhere" in done.stderr


def test_the_tools_of_a_plugin_that_collides_are_all_gone_and_the_rest_works(handrail):
    listed = {tool["name"]: tool["plugin"] for tool in handrail.json("tools", plugins="colliding,slow")}
    assert listed == {"wait": "core", "get_action_history": "core", "undo_call": "core", "slowly_there": "slow"}


def test_a_required_plugin_that_did_not_load_is_listed_and_nothing_else_runs(handrail):
    environment = {"plugins": "broken", "HANDRAIL_PLUGINS_REQUIRE": "broken"}
    done = handrail("plugins", **environment)
    assert done.returncode == 1
    assert "a_module_that_is_nowhere" in done.stdout
    assert "is required and did not load" in done.stderr
    assert handrail("call", "wait", "--args", '{"seconds": 0.1}', **environment).returncode == 1


def test_a_disabled_plugin_is_listed_as_that(handrail):
    (stage,) = [
        p for p in handrail.json("plugins", plugins="stage", HANDRAIL_PLUGINS_DISABLED="stage") if p["name"] == "stage"
    ]
    assert (stage["state"], stage["reason"]) == ("disabled", "disabled in the configuration")


def test_doctor_is_clean_where_nothing_is_missing(handrail):
    checks = handrail.json("doctor", plugins="stage", PATH=f"{handrail.path.parent}:{os.environ['PATH']}")
    assert [check for check in checks if not check["ok"]] == []
    assert all(check.keys() >= {"name", "ok", "detail", "cure"} for check in checks)
    assert "service prop" in [check["name"] for check in checks]
    assert not list(handrail.home.rglob("*.jsonl"))


def test_doctor_names_what_a_service_lacks_with_the_cure(handrail):
    checks = handrail.json("doctor", plugins="stage", code=1, STAGE_LACKS="no curtain is here; apt install curtain")
    (prop,) = [check for check in checks if check["needed"] and not check["ok"]]
    assert (prop["name"], prop["cure"]) == ("service prop", "apt install curtain")


def test_doctor_is_content_without_a_service_that_this_machine_cannot_have(handrail):
    done = handrail("doctor", plugins="stage", STAGE_LACKS="curtains are for theatres only")
    assert done.returncode == 0
    assert "absent   service prop: curtains are for theatres only\n" in done.stdout


def test_doctor_needs_only_the_backend_that_is_chosen(handrail):
    assert handrail("doctor", "--backend", "plan_only", plugins="plan_only").returncode == 0
    done = handrail("doctor", "--backend", "reader", plugins="plan_only")
    assert done.returncode == 1
    assert "apt install reader" in done.stdout


def test_doctor_calls_no_backend_ready_that_it_did_not_open(handrail):
    done = handrail("doctor", plugins="plan_only")
    assert "absent   backend plan_only: it was not opened, since no desktop was" in done.stdout
    assert done.returncode == 0


def test_doctor_names_a_plugin_that_did_not_load(handrail):
    done = handrail("doctor", plugins="broken")
    assert done.returncode == 1
    assert "a_module_that_is_nowhere" in done.stdout


def test_doctor_says_how_a_plugin_that_is_named_and_absent_is_had(handrail):
    assert "cure: install it, or take it out of HANDRAIL_PLUGINS\n" in handrail("doctor", plugins="absent").stdout


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param('mode = "wild"', "mode is 'wild'", id="value"),
        pytest.param("mode = [", "this is not TOML", id="syntax"),
        pytest.param("[plugins.stage]\ngreting = 'hi'", "plugins.stage.greting", id="key-of-a-plugin"),
        pytest.param("plugins.require = ['nowhere']", "it is not installed", id="required-plugin"),
    ],
)
def test_doctor_names_what_keeps_the_program_from_starting(handrail, text, told):
    (handrail.folder / "wrong.toml").write_text(text)
    checks = handrail.json("doctor", "--config", "wrong.toml", plugins="stage", code=1)
    looked_at = [(check["name"], check["ok"]) for check in checks]
    assert looked_at == [("handrail", True), ("start", False), ("summary", False)]
    assert told in checks[1]["detail"]
    assert checks[2]["cure"] == (checks[1]["cure"] or f"mend {checks[1]['detail']}")
    assert checks[2]["cure"]


def test_doctor_says_each_cure_once(handrail):
    done = handrail("doctor", plugins="stage", STAGE_LACKS="no curtain is here; apt install curtain")
    assert "MISSING  service prop: no curtain is here\n         cure: apt install curtain\n" in done.stdout


def test_doctor_ends_with_what_counts_and_the_first_cure(handrail):
    told = {"plugins": "stage", "STAGE_LACKS": "no curtain is here; apt install curtain"}
    *checks, summary = handrail.json("doctor", code=1, **told)
    fine = sum(check["ok"] for check in checks)
    assert (summary["name"], summary["ok"], summary["cure"]) == ("summary", False, "apt install curtain")
    assert summary["detail"] == f"{fine} fine, 1 to mend, {len(checks) - fine - 1} absent and not needed"
    assert handrail("doctor", **told).stdout.endswith(f"\n\n{summary['detail']}; first: apt install curtain\n")


def test_doctor_ends_with_nothing_to_mend_where_that_is_so(handrail):
    *checks, summary = handrail.json("doctor", plugins="plan_only")
    absent = sum(not check["ok"] for check in checks)
    assert absent > 0
    assert (summary["ok"], summary["cure"]) == (True, "")
    assert summary["detail"] == f"{len(checks) - absent} fine, nothing to mend, {absent} absent and not needed"


def test_doctor_names_folders_that_cannot_be_written(handrail, mount):
    handrail.home.mkdir()
    mount(handrail.home, "-t", "tmpfs", "-o", "ro,mode=755", "none")
    checks = handrail.json("doctor", "--desktop", "private", plugins="gui", code=1)
    unwritable = [
        check for check in checks if not check["ok"] and str(handrail.home) in check["name"] + check["detail"]
    ]
    assert {check["cure"] for check in unwritable} == {
        "make it writable, or name another folder for Handrail's own files by HANDRAIL_HOME"
    }
    assert {"desktop private", f"folder {handrail.home / 'state'}"} <= {check["name"] for check in unwritable}


def test_doctor_says_that_path_leads_to_another_copy(handrail, tmp_path):
    other = tmp_path / "other" / "handrail"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    mine = str(handrail.path.parent)
    checks = handrail.json("doctor", PATH=f"{other.parent}:{mine}:{os.environ['PATH']}")
    (check,) = [check for check in checks if check["name"] == "command handrail"]
    assert str(other) in check["detail"]
    assert check["cure"].startswith(f"put {mine!r} before it in PATH")
    assert "command handrail" not in handrail("doctor", PATH=f"{mine}:{other.parent}:{os.environ['PATH']}").stdout


def test_doctor_names_a_stop_switch_that_is_on(handrail):
    handrail("stop")
    assert "MISSING  agents: stopped on every desktop\n         cure: handrail resume\n" in handrail("doctor").stdout


def test_config_prints_each_value_with_its_source(handrail):
    (handrail.home / "config").mkdir(parents=True)
    user = handrail.home / "config" / "config.toml"
    user.write_text('desktop = "private"\n[plugins.stage]\ngreeting = "hi"\napi_token = "abc"\n')
    settings = handrail.json("config", "--mode", "plan", HANDRAIL_BACKEND="ocr")["settings"]
    assert settings["desktop"] == {"value": "private", "source": str(user)}
    assert settings["mode"] == {"value": "plan", "source": "flag --mode"}
    assert settings["backend"] == {"value": "ocr", "source": "environment HANDRAIL_BACKEND"}
    assert settings["tools.profile"] == {"value": "desktop", "source": "default"}
    assert settings["plugins.stage.greeting"]["value"] == "hi"
    assert settings["plugins.stage.api_token"]["value"] == "[redacted]"
    shown = next(line for line in handrail("config").stdout.splitlines() if line.startswith("desktop "))
    assert shown.split() == ["desktop", "=", '"private"', "#", str(user)]


def test_config_names_what_an_untrusted_folder_did_not_get_until_it_is_trusted(handrail):
    (handrail.folder / "handrail.toml").write_text('backend = "ocr"\n')
    before = handrail("config", "--json")
    assert "handrail trust" in before.stderr
    assert '"backend":{"value":null' in before.stdout
    assert handrail("trust").stdout == f"trusted: {handrail.folder}\n"
    after = handrail("config", "--json")
    assert after.stderr == ""
    assert '"backend":{"value":"ocr"' in after.stdout
    assert handrail("trust", "--list").stdout == f"{handrail.folder}\n"
    assert handrail("trust", "--revoke").stdout == f"no longer trusted: {handrail.folder}\n"
    assert "handrail trust" in handrail("config").stderr


def test_trust_of_a_folder_without_a_file_says_that_it_is_to_be_trusted_again_with_one(handrail):
    assert "trust the folder again" in handrail("trust").stderr
    (handrail.folder / "handrail.toml").write_text('backend = "ocr"\n')
    assert "handrail trust" in handrail("config").stderr
    assert handrail("trust").stderr == ""
    assert handrail("config").stderr == ""


def test_trust_of_a_folder_that_is_not_there_is_an_error(handrail):
    assert handrail("trust", "nowhere").returncode == 1


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        pytest.param('backend = "plan_only"', True, id="core"),
        pytest.param('[plugins.stage]\ngreeting = "hi"', True, id="plugin"),
        pytest.param("[plugins.stage]\ngreting = 3", False, id="plugin-unknown-key"),
        pytest.param('[backends.plan_only]\nmodel = "large"', True, id="backend"),
        pytest.param("[backends.plan_only]\nmodel = 3", False, id="backend-wrong-type"),
        pytest.param("[tools]\nprofil = 'all'", False, id="unknown-key"),
        pytest.param("[[policy.rules]]\ntool = 'a'\ndecision = 'deny'\ntier = 'admin'", False, id="tier"),
    ],
)
def test_the_schema_says_what_the_program_accepts(handrail, text, fits):
    schema = json.loads(handrail("config", "schema", plugins="stage,plan_only").stdout)
    assert bool(list(jsonschema.Draft202012Validator(schema).iter_errors(tomllib.loads(text)))) is not fits
    (handrail.folder / "handrail.toml").write_text(text)
    handrail("trust")
    assert (handrail("tools", plugins="stage,plan_only").returncode == 0) == fits
