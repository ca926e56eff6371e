"""A whole job in a web application: what the server has in the end is what was asked for."""

from __future__ import annotations

from pathlib import Path

from tests.plugins.browser.site import PASSWORD, Office, serving
from tests.plugins.browser.working import OWN, Hands

from handrail.api.approval import yes
from handrail.testing import open_test_session
from handrail_browser import hooks


async def test_a_person_is_looked_up_and_edited_and_files_go_both_ways(tmp_path: Path) -> None:
    office = Office()
    with serving(office):
        environment = {"HANDRAIL_SECRET_OFFICE": PASSWORD}
        async with open_test_session(
            plugins={"browser": hooks}, folder=tmp_path, settings=OWN, environment=environment, confirm=yes
        ) as session:
            hands = Hands(session)
            work = tmp_path / "work"
            (work / "notes.txt").write_text("for the file\n")

            await hands.done("navigate", office.url())
            await hands.done("fill", name="User", text="ada")
            filled = await hands.done("fill", name="Password", text="secret:OFFICE")
            assert PASSWORD not in str(filled.wire())
            entered = await hands.done("click", selector="button")
            assert entered["title"] == "People"

            await hands.done("fill", name="Filter", text="turing")
            rows = await hands.lines(filter="all")
            assert "Alan Turing" in rows
            assert "Grace Hopper" not in rows

            await hands.done("click", ref=await hands.ref('link "Edit"'))
            await hands.done("fill", name="Name", text="Alan M. Turing")
            await hands.done("select", name="Role", values=["writer"])
            saved = await hands.done("click", name="Save")
            assert saved["url"] == office.url()

            await hands.done("upload", name="File", paths=["notes.txt"])
            await hands.done("click", name="Send file")
            got = await hands.done("download", name="Download report", path="report.csv")

    assert office.logins == 1
    assert office.people[2] == {"name": "Alan M. Turing", "role": "writer"}
    assert office.files == {"notes.txt": b"for the file\n"}
    assert got["size_bytes"] == len((work / "report.csv").read_bytes())
    assert "Alan M. Turing,writer" in (work / "report.csv").read_text()
