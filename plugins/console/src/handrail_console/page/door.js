"use strict";
(async () => {
  const given = location.hash.slice(1);
  if (given) {
    sessionStorage.setItem("handrail-token", given);
    // So that it stands in no history, and goes along with no copied address.
    history.replaceState(null, "", "/");
  }
  const token = sessionStorage.getItem("handrail-token");
  if (!token) return;
  const answer = await fetch("/page", { headers: { authorization: `Bearer ${token}` } });
  if (!answer.ok) {
    sessionStorage.removeItem("handrail-token");
    document.getElementById("door").textContent =
      "This link is no longer good: the console was started anew. Open the link that it printed last.";
    return;
  }
  const page = await answer.text();
  const html = { createHTML: (text) => text };
  const policy = window.trustedTypes ? trustedTypes.createPolicy("handrail-door", html) : html;
  document.open();
  document.write(policy.createHTML(page));
  document.close();
})();
