from __future__ import annotations

KEYS = {"name", "description", "layer", "plugin", "source", "input_schema", "available", "reason"}


def by_name(listed):
    return {tool["name"]: tool for tool in listed}


def test_every_tool_is_listed_with_what_a_host_needs(handrail):
    listed = handrail.json("tools", plugins="stage")
    assert all(tool.keys() == KEYS for tool in listed)
    greet = by_name(listed)["greet"]
    assert (greet["plugin"], greet["layer"], greet["available"], greet["reason"]) == ("stage", "core", True, None)
    assert greet["input_schema"]["properties"]["name"]["description"] == "Whom to greet."


def test_a_tool_that_the_backend_cannot_serve_is_listed_with_the_reason(handrail):
    listed = by_name(handrail.json("tools", "--backend", "plan_only", plugins="plan_only"))
    assert listed["plan_it"]["available"]
    assert not listed["read_it"]["available"]
    assert "plan_only is chosen" in listed["read_it"]["reason"]


def test_a_disabled_tool_is_not_available(handrail):
    listed = by_name(handrail.json("tools", HANDRAIL_TOOLS_DISABLED="wait"))
    assert "tools.disabled" in listed["wait"]["reason"]


def test_the_model_is_that_of_a_backend_that_plans_and_of_no_other(handrail):
    words = ("tools", "--model", "tiny", "--backend")
    assert handrail("tools", "--backend", "plan_only", "--model", "large", plugins="plan_only").returncode == 0
    refused = handrail(*words, "plan_only", plugins="plan_only")
    assert refused.returncode == 1
    assert "plan_only.model" in refused.stderr
    assert handrail(*words, "reader", plugins="plan_only").returncode == 0


def test_an_unknown_backend_is_an_error_with_the_nearest(handrail):
    done = handrail("tools", "--backend", "plan_onyl", plugins="plan_only")
    assert done.returncode == 1
    assert "did you mean 'plan_only'?" in done.stderr


def test_listing_leaves_no_audit_behind(handrail):
    handrail("tools", plugins="stage")
    assert not list(handrail.home.rglob("*.jsonl"))


def test_a_person_is_shown_a_line_a_tool(handrail):
    shown = handrail("tools", HANDRAIL_TOOLS_DISABLED="wait").stdout.splitlines()
    (line,) = (line for line in shown if line.startswith("wait "))
    assert line.split() == ["wait", "not", "available:", "it", "is", "disabled", "by", "tools.disabled"]


def test_a_model_is_shown_what_its_family_is_told(handrail):
    assert by_name(handrail.json("tools", "--model", "nobody", plugins="stage")) == by_name(
        handrail.json("tools", plugins="stage")
    )
    told = by_name(handrail.json("tools", "--model", "openai/gpt-5", plugins="stage"))["greet"]
    assert told["description"] == "Say hello to GPT."


def test_a_dialect_prints_what_is_declared_of_available_tools(handrail):
    declared = handrail.json(
        "tools", "--dialect", "gemini", plugins="stage", HANDRAIL_TOOLS_DISABLED="wait,get_action_history"
    )
    greet = {each["name"]: each for each in declared}["greet"]
    assert greet["parameters"]["type"] == "OBJECT"
    assert "wait" not in {each["name"] for each in declared}


def test_an_unknown_dialect_is_misuse(handrail):
    assert handrail("tools", "--dialect", "cohere").returncode == 2
