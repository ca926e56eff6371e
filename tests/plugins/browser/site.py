"""A web application on this machine: it keeps its state in memory, and a test looks at that."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import default
from html import escape
from urllib.parse import parse_qs, urlsplit

from tests.web_server import Answering, serving as listening

PASSWORD = "correct-horse-battery"
PEOPLE = [
    ("Ada Lovelace", "analyst"),
    ("Grace Hopper", "admiral"),
    ("Alan Turing", "analyst"),
    ("Edsger Dijkstra", "writer"),
]

Page = Callable[["Asked"], "Answer"]


@dataclass(frozen=True)
class Answer:
    """What the server says."""

    body: bytes | str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Asked:
    """A request: its path, query or form, headers and content."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    content: bytes

    @property
    def form(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(self.content.decode(), keep_blank_values=True).items()}


@dataclass
class Site:
    """Where it is, what it shows at each path, and what it was asked."""

    port: int = 0
    pages: dict[str, str | Answer | Page] = field(default_factory=dict[str, "str | Answer | Page"])
    asked: list[str] = field(default_factory=list[str])
    release: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked.path)
        page = self.pages.get(asked.path)
        if page is None:
            return Answer("not found", 404)
        if callable(page):
            return page(asked)
        return Answer(page) if isinstance(page, str) else page


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(Answering):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            answer = site.answer(Asked(parts.path, query, {k.lower(): v for k, v in self.headers.items()}, self.body()))
            headers = {"content-type": "text/html; charset=utf-8", "cache-control": "no-store", **answer.headers}
            body = answer.body.encode() if isinstance(answer.body, str) else answer.body
            self.respond(body, status=answer.status, headers=headers)

    with listening(Handler) as site.port:
        try:
            yield site
        finally:
            site.release.set()


@dataclass
class Office(Site):
    """A small application behind a login: people in a table that is filtered in the page, records that are edited, files."""

    people: list[dict[str, str]] = field(default_factory=lambda: [{"name": n, "role": r} for n, r in PEOPLE])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    logins: int = 0

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked.path)
        if asked.path == "/login":
            return self._login(asked)
        if "session=yes" not in asked.headers.get("cookie", ""):
            return Answer("", 302, {"location": "/login"})
        if (found := re.fullmatch(r"/people/(\d+)", asked.path)) is not None:
            return self._record(int(found[1]), asked)
        match asked.path:
            case "/upload":
                sent = b"content-type: " + asked.headers["content-type"].encode() + b"\r\n\r\n" + asked.content
                for part in BytesParser(policy=default).parsebytes(sent).iter_parts():
                    self.files[str(part.get_filename())] = part.get_content().encode()
                return Answer("", 303, {"location": "/"})
            case "/report.csv":
                rows = "\n".join(f"{each['name']},{each['role']}" for each in self.people)
                return Answer(
                    rows, headers={"content-type": "text/csv", "content-disposition": "attachment; filename=report.csv"}
                )
            case _:
                return Answer(self._table())

    def _login(self, asked: Asked) -> Answer:
        if asked.content and asked.form.get("password") == PASSWORD:
            self.logins += 1
            return Answer("", 303, {"location": "/", "set-cookie": "session=yes; HttpOnly; Path=/"})
        wrong = "<p role=alert>Wrong password.</p>" if asked.content else ""
        return Answer(
            f"<title>Log in</title><h1>Log in</h1>{wrong}<form method=post><label>User <input name=user></label>"
            "<label>Password <input type=password name=password></label><button>Log in</button></form>"
        )

    def _table(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(each['name'])}</td><td>{escape(each['role'])}</td><td><a href='/people/{at}'>Edit</a></td></tr>"
            for at, each in enumerate(self.people)
        )
        files = "".join(f"<li>{escape(name)}</li>" for name in self.files)
        return (
            "<title>People</title><main><h1>People</h1><label>Filter <input id=filter type=search></label>"
            f"<table><thead><tr><th>Name</th><th>Role</th><th></th></tr></thead><tbody>{rows}</tbody></table>"
            f"<a href='/report.csv'>Download report</a><h2>Files</h2><ul>{files}</ul>"
            "<form method=post action=/upload enctype=multipart/form-data><label>File <input type=file name=file></label>"
            "<button>Send file</button></form></main>"
            "<script>document.getElementById('filter').addEventListener('input', e => {"
            "const wanted = e.target.value.toLowerCase();"
            "for (const row of document.querySelectorAll('tbody tr')) row.hidden = !row.textContent.toLowerCase().includes(wanted);"
            "});</script>"
        )

    def _record(self, at: int, asked: Asked) -> Answer:
        if asked.content:
            self.people[at] = {"name": asked.form["name"], "role": asked.form["role"]}
            return Answer("", 303, {"location": "/"})
        person = self.people[at]
        options = "".join(
            f"<option{' selected' if role == person['role'] else ''}>{role}</option>"
            for role in ("analyst", "admiral", "writer")
        )
        return Answer(
            f"<title>Edit</title><h1>Edit</h1><form method=post><label>Name <input name=name value='{escape(person['name'])}'></label>"
            f"<label>Role <select name=role>{options}</select></label><button>Save</button></form>"
        )
