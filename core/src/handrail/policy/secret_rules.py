"""Core's judge of calls that name secrets: a person approves where a secret goes, unless `[secrets.sites]` lists the place."""

from __future__ import annotations

from handrail.api.call import Invocation, list_argument_paths
from handrail.api.secret_refs import find_secret_names, has_secret_ref, normalize_secret_name
from handrail.api.tool import Input, Run, Send, Tool
from handrail.api.verdict import Decision, EvaluationContext, Evaluator, Opinion, Reason
from handrail.net import urls
from handrail.net.allowed_hosts import is_loopback
from handrail.net.hostnames import is_same_or_subdomain
from handrail.text import make_visible


class SecretsEvaluator(Evaluator):
    """Judges by the secrets that arguments name. Trusted; it only tightens."""

    name = "secrets"

    def applies(self, tool: Tool) -> bool:
        return tool.takes_text

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        """Return a floor to confirm if the call names a known secret and `judging.secret_sites` does not cover where it goes."""
        if not has_secret_ref(invocation.args):
            return None
        reasons: list[Reason] = []
        for name in sorted(find_secret_names(invocation.args)):
            if judging.find_secret is not None and await judging.find_secret(name) is None:
                # An unknown name stays text, or makes the call fail.
                continue
            if (why := _find_objection(name, invocation, judging)) is not None:
                reasons.append(Reason("named_secret", why))
        if not reasons:
            return None
        return Opinion("secrets:named_secret", floor=Decision.CONFIRM, reasons=tuple(reasons))


def _find_objection(name: str, invocation: Invocation, judging: EvaluationContext) -> str | None:
    """Return why the call may not have the secret without approval; None if it may."""
    sites = judging.secret_sites.get(normalize_secret_name(name), ())
    effects = invocation.tool.effects
    named = [
        url
        for effect in effects
        if isinstance(effect, Send)
        for url in list_argument_paths(invocation.argument(effect))
    ]
    if not sites or any(isinstance(effect, Run) for effect in effects):
        places = ", ".join(make_visible(urls.find_url_place(url)) for url in named) or invocation.tool.name
        return f"it gives the secret {name!r} to {places}, which [secrets.sites] does not list for it"
    if named:
        return next((why for url in named if (why := _find_url_objection(name, url, sites)) is not None), None)
    # A tool that types into web pages checks the page's own address when it types.
    if any(isinstance(effect, Input) and effect.what == "page" for effect in effects):
        return None
    return (
        f"it gives the secret {name!r} to {invocation.tool.name}, which sends it to no site that [secrets.sites] lists"
    )


def _find_url_objection(name: str, url: str, sites: tuple[str, ...]) -> str | None:
    # Read as the call will be made: another reading could find another host.
    found = urls.evaluate_url(url)
    shown = make_visible(found.host)
    if not any(is_same_or_subdomain(found.host.removesuffix("."), site.lower()) for site in sites):
        return f"it sends the secret {name!r} to {shown}; [secrets.sites] lists {', '.join(sites)} for it"
    if found.scheme != "https" and not is_loopback(found.host):
        return f"it sends the secret {name!r} to {shown} over an unencrypted connection"
    return None
