"""Models and keys."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from tests.end_to_end.troubles.place import Met, Place
from tests.gemini_server import KEY, Fails, serving
from tests.plugins.browser import site

# It stands in a folder of its own; without it is another case.
LITELLM = str(Path(sys.prefix) / "litellm")


def there_is_no_key(place: Place) -> Met:
    """There is no API key."""
    return place.handrail("run", "count the files", plugins="adk")


def the_key_is_wrong(place: Place) -> Met:
    """The API key is wrong."""
    with serving() as gemini:
        return _run(place, gemini.url, key="AIza-a-wrong-one")


def the_model_is_unknown(place: Place) -> Met:
    """The service does not have the model."""
    with serving(Fails(404, "models/gemini-9 is not found for API version v1beta", "NOT_FOUND")) as gemini:
        return _run(place, gemini.url, "--model", "gemini-9")


def there_is_no_network(place: Place) -> Met:
    """The service cannot be reached."""
    with socket.socket() as closed:
        # Nobody listens there, and nobody else gets the port.
        closed.bind(("127.0.0.1", 0))
        return _run(place, f"http://127.0.0.1:{closed.getsockname()[1]}", more="attempts = 1\n")


def a_model_that_sees_has_no_address(place: Place) -> Met:
    """A vision model has no address."""
    return _observe(place, "ui_tars", "")


def the_key_of_a_model_that_sees_is_wrong(place: Place) -> Met:
    """The API key of a vision model is wrong."""
    with site.serving(site.Site()) as models:
        refused = site.Answer('{"error": {"message": "Incorrect API key provided"}}', 401)
        models.pages["/v1/chat/completions"] = refused
        place.shown[models.url("/v1")] = "https://models.example/v1"
        config = f'[backends.kimi]\nurl = "{models.url("/v1")}"\nmodel = "kimi-k3"\nkey_variable = "KIMI_KEY"\n'
        return _observe(place, "kimi", config, KIMI_KEY="sk-a-wrong-one")


def omniparser_does_not_answer(place: Place) -> Met:
    """OmniParser does not answer."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        place.shown[url] = "http://127.0.0.1:8000"
        return _observe(place, "omniparser", f'[backends.omniparser]\nurl = "{url}"\n')


def a_package_is_lacking_for_the_model(place: Place) -> Met:
    """A model needs a package that is not installed."""
    return place.handrail("run", "count the files", "--model", "openai/gpt-5", plugins="adk")


def there_is_no_key_for_a_model_of_others(place: Place) -> Met:
    """There is no API key for a model of another service."""
    return place.handrail("run", "count the files", "--model", "openai/gpt-5", plugins="adk", PYTHONPATH=LITELLM)


def the_key_for_a_model_of_others_is_wrong(place: Place) -> Met:
    """The API key for a model of another service is wrong."""
    with site.serving(site.Site()) as models:
        refused = {"message": "Incorrect API key provided: sk-a-wr*ng-one", "code": "invalid_api_key"}
        models.pages["/v1/chat/completions"] = site.Answer(json.dumps({"error": refused}), 401)
        place.shown[models.url("/v1")] = "https://models.example/v1"
        words = ("run", "count the files", "--model", "openai/gpt-5")
        keys = {"OPENAI_BASE_URL": models.url("/v1"), "OPENAI_API_KEY": "sk-a-wrong-one"}
        return place.handrail(*words, plugins="adk", PYTHONPATH=LITELLM, **keys)


def the_recorded_model_is_not_there(place: Place) -> Met:
    """A model script does not exist."""
    return place.handrail("run", "count the files", "--model", "script:answers.yaml", plugins="adk")


def _run(place: Place, url: str, *words: str, key: str = KEY, more: str = "") -> Met:
    place.shown[url] = "https://models.example"
    place.shown[KEY] = "AIza…"
    config = f'[plugins.adk]\nurl = "{url}"\n{more}'
    return place.handrail("run", "count the files", *words, config=config, plugins="adk", GEMINI_API_KEY=key)


def _observe(place: Place, backend: str, config: str, **variables: str) -> Met:
    words = ("call", "observe_screen", "--backend", backend, "--desktop", "private")
    return place.handrail(*words, plugins="gui,vision_vlm,vision_omniparser", config=config, **variables)
