"use strict";
(() => {
  const token = sessionStorage.getItem("handrail-token") || "";
  const at = (id) => document.getElementById(id);
  const state = { sessions: new Map(), questions: [], stops: [], selected: null, view: "live", ahead: 0 };
  const HISTORY_S = 1200;
  const LONGEST = 160;

  // Everything that is shown goes through here, as text and never as HTML. What has no form of its own, or would turn the text around it, is
  // shown by its number.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
  const shown = (value) => String(value).replace(UNSEEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
  const json = (value) => JSON.stringify(value, null, 2);

  function el(tag, given = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (value === undefined || value === null || value === false) continue;
      if (name === "text") made.textContent = shown(value);
      else if (name === "class") made.className = value;
      else if (name === "on") for (const [event, act] of Object.entries(value)) made.addEventListener(event, act);
      else if (name === "value") made.value = value;
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }
  const button = (text, act, given = {}) => el("button", { type: "button", text, on: { click: act }, ...given });
  const badge = (text, kind = "") => el("span", { class: `badge ${kind}`, text });

  // Asking the server

  const headers = () => ({ authorization: `Bearer ${token}` });
  async function get(path) {
    const answer = await fetch(path, { headers: headers() });
    if (!answer.ok) throw new Error(await reason(answer));
    return answer;
  }
  async function send(path, body) {
    const answer = await fetch(path, {
      method: "POST", headers: { ...headers(), "content-type": "application/json" }, body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await reason(answer));
    return answer.json();
  }
  async function reason(answer) {
    if (answer.status === 401) return "this link is no longer good: open the one that the console printed last";
    try {
      const told = await answer.json();
      return told.hint ? `${told.error} (${told.hint})` : told.error;
    } catch {
      return `the console answered ${answer.status}`;
    }
  }
  let noticeTimer = 0;
  function notice(text) {
    at("notice").textContent = shown(text);
    at("notice").hidden = false;
    clearTimeout(noticeTimer);
    noticeTimer = setTimeout(() => { at("notice").hidden = true; }, 6000);
  }
  const told = (act) => (...args) => act(...args).catch((error) => notice(error.message));

  // What goes on

  async function follow() {
    for (;;) {
      try {
        await listen();
      } catch (error) {
        // The console has ended, or the connection has: it is tried again. One that was started anew has another token.
        if (!(error instanceof TypeError)) notice(error.message);
      }
      at("link").textContent = "not connected";
      at("link").classList.remove("on");
      await new Promise((go) => setTimeout(go, HISTORY_S));
    }
  }
  async function listen() {
    const answer = await get("/live");
    state.sessions.clear();
    at("link").textContent = "connected";
    at("link").classList.add("on");
    renderSessions();
    await eachLine(answer, heard, settle);
  }
  async function eachLine(answer, take, taken = () => null) {
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      lines.forEach((line) => take(JSON.parse(line)));
      taken();
    }
  }
  const changed = { sessions: false, calls: new Set() };
  function heard(line) {
    switch (line.kind) {
      case "session": {
        const known = state.sessions.get(line.session);
        state.sessions.set(line.session, { about: line, calls: known ? known.calls : new Map() });
        changed.sessions = true;
        break;
      }
      case "call":
        keep(state.sessions.get(line.session)?.calls, line);
        changed.calls.add(line.session);
        break;
      case "over":
        state.sessions.delete(line.session);
        changed.sessions = true;
        break;
      case "questions":
        state.ahead = line.now - Date.now() / 1000;
        renderQuestions(line.questions);
        changed.sessions = true;
        break;
      case "stops":
        state.stops = line.stops;
        renderStops();
        break;
    }
  }
  // So many of a session's calls are in the page; those before are in the history.
  const MOST_CALLS = 200;
  function keep(calls, call) {
    if (!calls) return;
    calls.set(call.key, call);
    while (calls.size > MOST_CALLS) calls.delete(calls.keys().next().value);
  }
  function settle() {
    if (changed.sessions || changed.calls.size) renderSessions();
    changed.sessions = false;
    changed.calls.clear();
  }

  // Sessions

  const when = (value) => {
    const date = typeof value === "number" ? new Date(value * 1000) : new Date(value);
    return Number.isNaN(date.getTime()) ? "" : date.toLocaleString([], { dateStyle: "short", timeStyle: "medium" });
  };
  const folder = (about) => (about.workspace && about.workspace[0] ? String(about.workspace[0]).split("/").pop() || "/" : "");
  function renderSessions() {
    if (!state.sessions.has(state.selected)) state.selected = [...state.sessions.keys()].pop() || null;
    const list = [...state.sessions.values()].reverse().map(({ about, calls }) => {
      const waits = state.questions.filter((question) => question.session === about.session).length;
      return el("button", {
        type: "button", class: "pick", "aria-pressed": String(about.session === state.selected), "data-session": about.session,
        on: { click: () => { state.selected = about.session; renderSessions(); } },
      },
      el("span", { class: "row spread" }, el("strong", { text: folder(about) || about.session }), waits ? badge(`${waits} waiting`, "warn") : badge("running", "good")),
      el("span", { class: "small", text: `${about.session}, process ${about.pid}` }),
      el("span", { class: "small", text: `${calls.size} calls${about.desktop ? `, desktop ${about.desktop.name}` : ""}` }));
    });
    const focused = at("sessions").contains(document.activeElement) ? document.activeElement.dataset.session : null;
    at("sessions").replaceChildren(...(list.length ? list : [el("p", { class: "empty", text: "No session is running." })]));
    // Who goes through the page by keys stays where they are.
    if (focused) list.find((each) => each.dataset.session === focused)?.focus({ preventScroll: true });
    renderSession();
  }

  // One session that runs

  const panel = { session: null, screen: null, calls: null, cards: new Map() };
  function renderSession() {
    const session = state.sessions.get(state.selected);
    if (!session) {
      panel.session = null;
      stopScreen();
      at("session").replaceChildren(el("p", { class: "empty", text: "What an agent does is shown here as soon as one runs: handrail serve, run, session, or Python." }));
      return;
    }
    const hasDesktop = Boolean(session.about.desktop);
    if (panel.session !== session.about.session || Boolean(panel.screen) !== hasDesktop) {
      stopScreen();
      panel.session = session.about.session;
      panel.cards.clear();
      panel.calls = el("div", { id: "calls" });
      panel.screen = hasDesktop ? screenCard(session.about) : null;
      at("session").replaceChildren(...[panel.screen, el("h2", { text: "Calls, newest first" }), panel.calls].filter(Boolean));
    }
    renderCalls(panel.calls, panel.cards, [...session.calls.values()].reverse());
  }
  function renderCalls(place, cards, calls) {
    if (!calls.length) {
      place.replaceChildren(el("p", { class: "empty", text: "No call yet." }));
      return;
    }
    let focused = null;
    const wanted = calls.map((call) => {
      const text = JSON.stringify(call);
      const known = cards.get(call.key);
      if (known && known.text === text) return known.card;
      const card = callCard(call, Boolean(known && known.card.open));
      if (known && known.card.contains(document.activeElement)) focused = card;
      cards.set(call.key, { text, card });
      return card;
    });
    wanted.forEach((card, number) => {
      if (place.children[number] !== card) place.insertBefore(card, place.children[number] || null);
    });
    while (place.children.length > wanted.length) place.lastChild.remove();
    if (focused) focused.querySelector("summary").focus({ preventScroll: true });
    const keys = new Set(calls.map((call) => call.key));
    for (const key of cards.keys()) if (!keys.has(key)) cards.delete(key);
  }

  // One call

  const STATUS = { success: "good", error: "bad", denied: "bad", cancelled: "warn", timeout: "bad", unfinished: "warn" };
  const DECISION = { allow: "good", confirm: "warn", deny: "bad" };
  const EFFECT = { confirmed: "good", unverified: "warn" };
  function callCard(call, open = false) {
    const args = Object.keys(call.args || {}).length ? JSON.stringify(call.args) : "";
    const result = call.result && typeof call.result === "object" ? call.result : {};
    const effect = typeof result.effect === "string" ? result.effect : null;
    const badges = [
      call.decision ? badge(call.decision, DECISION[call.decision] || "") : null,
      effect ? badge(effect, EFFECT[effect] || "") : null,
      badge(call.status === "unfinished" ? "running" : call.status, STATUS[call.status] || ""),
    ];
    const body = el("div", { class: "body" });
    const card = el("details", { class: "call", "data-call": call.call_id, "data-status": call.status },
      el("summary", {},
        el("span", { class: "what" }, el("span", { class: "tool", text: call.tool }), " ", el("bdi", { class: "args", text: args.length > LONGEST ? `${args.slice(0, LONGEST)}…` : args })),
        el("span", { class: "row" }, badges)),
      body);
    const fill = () => { if (card.open && !body.firstChild) body.append(...callBody(call, result)); };
    card.addEventListener("toggle", fill);
    card.open = open;
    fill();
    return card;
  }
  function callBody(call, result) {
    const facts = [
      ["Began", when(call.at)],
      ["Took", call.duration_ms === null || call.duration_ms === undefined ? "" : `${call.duration_ms} ms`],
      ["Verdict", [call.decision, call.route ? `on the ${call.route}` : ""].filter(Boolean).join(", ")],
      ["Rule", call.rule || ""],
      ["Reasons", (call.reasons || []).join("; ")],
      ["Effect", textOf(result.effect)],
      ["Evidence", textOf(result.evidence)],
      ["Changed by", (call.changed_by || []).join(", ")],
      ["Part of", call.parent || ""],
    ].filter(([, value]) => value);
    return [
      el("dl", {}, facts.flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })])),
      el("pre", { text: json(call.args || {}), "aria-label": "Arguments" }),
      call.before ? el("pre", { text: `Before it was changed:\n${json(call.before)}` }) : null,
      call.status === "unfinished" ? el("pre", { class: "tail", "aria-label": "What it has put out", role: "log", "aria-live": "off", text: tail.texts.get(call.call_id) || "", hidden: !tail.texts.get(call.call_id) }) : null,
      call.result === null ? null : el("pre", { class: "result", text: json(call.result), "aria-label": "Result" }),
      call.picture ? keptPicture(call) : null,
    ].filter(Boolean);
  }
  const textOf = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : json(value));
  function keptPicture(call) {
    const image = el("img", { class: "shot", alt: "The screen, as the agent saw it" });
    get(`/sessions/${call.session}/pictures/${encodeURIComponent(call.picture)}`)
      .then((answer) => answer.blob())
      .then((blob) => showBlob(image, blob))
      .catch((error) => image.replaceWith(el("p", { class: "small", text: error.message })));
    return image;
  }
  function showBlob(image, blob) {
    const address = URL.createObjectURL(blob);
    const done = () => URL.revokeObjectURL(address);
    image.addEventListener("load", done, { once: true });
    image.addEventListener("error", done, { once: true });
    image.src = address;
  }

  // What running calls put out: of the one session that is looked at, and only while a call of it runs.

  const tail = { session: null, stop: null, texts: new Map(), opened: null };
  function followOutput() {
    const session = state.view === "live" && !document.hidden ? state.sessions.get(state.selected) : null;
    const runs = session && [...session.calls.values()].some((call) => call.status === "unfinished");
    const wanted = runs ? session.about.session : null;
    if (wanted === tail.session) return;
    if (tail.stop) tail.stop.abort();
    Object.assign(tail, { session: wanted, stop: null });
    tail.texts.clear();
    if (!wanted) return;
    tail.stop = new AbortController();
    listenToOutput(wanted, tail.stop).catch(() => null).finally(() => { if (tail.session === wanted) tail.session = null; });
  }
  setInterval(followOutput, 500);
  async function listenToOutput(session, stop) {
    const answer = await fetch(`/sessions/${session}/output`, { headers: headers(), signal: stop.signal });
    if (!answer.ok) return;
    await eachLine(answer, ({ calls }) => {
      for (const [id, text] of Object.entries(calls)) {
        tail.texts.set(id, text);
        showOutput(session, id);
      }
    });
  }
  function showOutput(session, id) {
    const card = panel.session === session ? [...panel.calls.children].find((each) => each.dataset.call === id) : null;
    if (!card || card.dataset.status !== "unfinished") return;
    const text = shown(tail.texts.get(id));
    if (tail.opened !== card.dataset.call) {
      tail.opened = card.dataset.call;
      card.open = true;
    }
    const place = card.querySelector("pre.tail");
    if (!place || place.textContent === text) return;
    const below = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
    place.textContent = text;
    place.hidden = !text;
    if (below) place.scrollTop = place.scrollHeight;
  }

  // Questions

  const asked = new Map();
  // What is under the finger may have become another question: for a moment none that came, or moved up, can be pressed.
  const HOLD_MS = 700;
  function enable(card, yes) {
    card.querySelectorAll("button").forEach((each) => { each.disabled = !yes; });
  }
  function hold(cards) {
    for (const card of cards) {
      const held = String(performance.now());
      card.dataset.held = held;
      enable(card, false);
      setTimeout(() => { if (card.dataset.held === held && !card.dataset.answered) enable(card, true); }, HOLD_MS);
    }
  }
  function over(card) {
    card.remove();
    hold(at("questions").children);
  }
  const keyOf = (question) => `${question.session} ${question.id}`;
  function renderQuestions(questions) {
    const open = new Set(questions.map(keyOf));
    for (const [key, card] of asked) {
      if (open.has(key)) continue;
      if (!card.dataset.answered) notice("A question was answered elsewhere, or is over.");
      over(card);
      asked.delete(key);
    }
    for (const question of questions) {
      if (asked.has(keyOf(question))) continue;
      const card = question.questions ? wordsCard(question) : callQuestionCard(question);
      asked.set(keyOf(question), card);
      at("questions").append(card);
      hold([card]);
    }
    state.questions = questions;
    document.title = questions.length ? `(${questions.length}) Handrail console` : "Handrail console";
  }
  // Each is answered once; what became of it is told where it was asked.
  function questionCard(question, title) {
    const number = el("h3", { text: title, id: `question-${question.session}-${question.id}` });
    const card = el("article", { class: "card ask", "data-question": question.id, "data-session": question.session, "aria-labelledby": number.id });
    const left = el("span", { class: "small left" });
    const folder_ = state.sessions.get(question.session);
    const where = `${folder_ ? `${folder(folder_.about)}, ` : ""}session ${question.session}`;
    card.append(el("div", { class: "row spread" }, number, el("span", { class: "small", text: where })), left);
    const answer = told(async (path, given) => {
      card.dataset.answered = "yes";
      enable(card, false);
      try {
        const { session, id, call_hash } = question;
        await send(path, { session, id, call_hash, ...given });
        over(card);
      } catch (error) {
        delete card.dataset.answered;
        enable(card, true);
        throw error;
      }
    });
    const tick = () => {
      const seconds = Math.max(0, Math.round(question.expires - Date.now() / 1000 - state.ahead));
      left.textContent = `Open for ${seconds >= 120 ? `${Math.round(seconds / 60)} minutes` : `${seconds} s`}${question.questions ? "." : "; without an answer it is a no."}`;
      if (card.isConnected || !card.dataset.seen) setTimeout(tick, 1000);
      if (card.isConnected) card.dataset.seen = "yes";
    };
    tick();
    return { card, answer };
  }
  function wordsCard(question) {
    const { card, answer } = questionCard(question, "The agent asks you something");
    const fields = question.questions.map((each, number) => wordsField(each, `${question.session}-${question.id}-${number}`));
    card.append(
      el("p", { class: "small", text: "What you answer is told to the model. What you leave empty stays open." }),
      ...fields.map(({ field }) => field),
      el("div", { class: "row gap answers" },
        button("Answer", () => answer("/reply", { replies: fields.map(({ reply }) => reply()) }), { class: "main reply" }),
        button("Do not answer", () => answer("/reply", { replies: null }), { class: "danger decline" })),
    );
    return card;
  }
  function wordsField(asked, name) {
    const own = asked.kind === "yes_no" ? null
      : el(asked.kind === "text" ? "textarea" : "input", { "aria-label": asked.kind === "text" ? "Your answer" : "Or in your own words", placeholder: asked.kind === "text" ? "" : "Or in your own words", autocomplete: "off", maxlength: "10000", class: "own", rows: asked.kind === "text" ? 2 : null });
    const labels = asked.kind === "yes_no" ? ["Yes", "No"] : asked.options || [];
    const boxes = labels.map((label) => ({ label, box: el("input", { type: asked.several ? "checkbox" : "radio", name }) }));
    const reply = () => {
      const words = own && own.value.trim() ? own.value : null;
      const taken = boxes.filter(({ box }) => box.checked).map(({ label }) => label);
      if (asked.kind === "yes_no") return taken.length ? taken[0] === "Yes" : null;
      if (!asked.several) return words ?? taken[0] ?? null;
      const all = words ? [...taken, words] : taken;
      return all.length ? all : null;
    };
    const field = el("fieldset", {}, el("legend", { class: "asked", text: asked.question }),
      boxes.map(({ label, box }) => el("label", { class: "option" }, box, el("bdi", { text: label }))), own);
    return { field, reply };
  }
  function callQuestionCard(question) {
    const { card, answer: send_ } = questionCard(question, `${question.tool} waits for your yes`);
    const answer = (choice, more = {}) => send_("/answer", { choice, ...more });
    const feedback = el("input", { placeholder: "Why not: told to the agent", "aria-label": "Feedback" });
    const grants = question.grants.length ? el("select", { "aria-label": "What is allowed from now on" },
      question.grants.map((label, number) => el("option", { value: String(number), text: label }))) : null;
    const lasting = ["session", "always"].filter((choice) => question.choices.includes(choice) && grants);
    const editor = el("div", { hidden: true });
    const edit = question.choices.includes("edit")
      ? button("Edit", () => {
        if (!editor.firstChild) editor.append(argumentsForm(question, (args) => answer("edit", { args })));
        editor.hidden = !editor.hidden;
      }, { class: "edit" }) : null;
    card.append(
      el("pre", { class: "asked wide", text: question.text }),
      el("pre", { class: "asked narrow", text: question.narrow }),
      el("div", { class: "row gap answers" },
        button("Approve", () => answer("once"), { class: "main approve" }), edit,
        button("Deny", () => answer("deny", feedback.value ? { feedback: feedback.value } : {}), { class: "danger deny" })),
      el("div", { class: "row gap" }, feedback),
      ...(lasting.length ? [el("div", { class: "row gap" }, grants, lasting.map((choice) =>
        button(choice === "session" ? "Yes, this session" : "Yes, always", () => answer(choice, { grant: Number(grants.value) }))))] : []),
      editor,
    );
    return card;
  }
  function argumentsForm(question, done) {
    // Texts are written as they are, anything else as JSON.
    const fields = Object.entries(question.args).map(([name, value]) => {
      const plain = typeof value === "string";
      const rows = Math.min(10, Math.max(1, (plain ? value : json(value)).split("\n").length));
      const input = el("textarea", { rows, spellcheck: "false", "data-argument": name });
      input.value = plain ? value : json(value);
      return { name, plain, input };
    });
    const whole = el("textarea", { rows: 8, spellcheck: "false", "aria-label": "All arguments as JSON" });
    const form = el("div", {}, fields.map(({ name, plain, input }) => el("label", { class: "field" }, el("span", { text: plain ? name : `${name} (JSON)` }), input)));
    const all = el("div", { hidden: true, class: "gap" }, whole);
    const read = () => Object.fromEntries(fields.map(({ name, plain, input }) => [name, plain ? input.value : JSON.parse(input.value)]));
    const toggle = button("As JSON", () => {
      try {
        if (all.hidden) whole.value = json(read());
        form.hidden = all.hidden;
        all.hidden = !all.hidden;
        toggle.setAttribute("aria-pressed", String(!all.hidden));
      } catch (error) { notice(`This is no JSON: ${error.message}`); }
    }, { "aria-pressed": "false" });
    const go = button("Do it with these", () => {
      try {
        done(all.hidden ? read() : JSON.parse(whole.value));
      } catch (error) { notice(`This is no JSON: ${error.message}`); }
    }, { class: "main edited" });
    return el("div", { class: "gap" }, el("p", { class: "small", text: "The changed call is judged anew." }), form, all, el("div", { class: "row gap" }, go, toggle));
  }

  // Stop

  function renderStops() {
    const stopped = state.stops;
    at("stopped").hidden = !stopped.length;
    at("stopped-what").textContent = shown(stopped.includes("every") ? "Every agent is stopped." : `Stopped: ${stopped.join(", ")}.`);
    at("stop").disabled = stopped.includes("every");
  }
  at("stop").addEventListener("click", told(() => send("/stops", { action: "stop" })));
  at("resume").addEventListener("click", told(() => send("/stops", { action: "resume" })));

  // The live picture, and a person's hands on it

  const live = { timer: 0, place: null, taken: false };
  function stopScreen() {
    clearTimeout(live.timer);
    Object.assign(live, { timer: 0, place: null, taken: false });
    panel.screen = null;
  }
  function screenCard(about) {
    const id = about.session;
    const image = el("img", { class: "screen", alt: "The desktop now", tabindex: "0", draggable: "false" });
    const told_ = el("span", { class: "small", text: "" });
    let queue = Promise.resolve();
    // One after the other, in the order they were made.
    const act = (args) => {
      queue = queue.then(async () => {
        const result = await send("/control", { session: id, args });
        told_.textContent = shown(result.status === "success" ? result.description : result.error.message);
      }).catch((error) => notice(error.message));
      return queue;
    };
    const point = (event) => {
      const box = image.getBoundingClientRect();
      const { x, y, width, height } = live.place;
      return {
        x: Math.round(x + (event.clientX - box.left) / box.width * (width - 1)),
        y: Math.round(y + (event.clientY - box.top) / box.height * (height - 1)),
      };
    };
    const ready = () => live.taken && live.place;
    let turned = 0;
    const hands = el("div", { hidden: true });
    const right = button("Right click", () => right.setAttribute("aria-pressed", String(right.getAttribute("aria-pressed") !== "true")), { "aria-pressed": "false" });
    image.addEventListener("click", (event) => {
      if (!ready()) return;
      image.focus({ preventScroll: true });
      act({ action: right.getAttribute("aria-pressed") === "true" ? "right_click" : "click", ...point(event) });
      right.setAttribute("aria-pressed", "false");
    });
    image.addEventListener("contextmenu", (event) => {
      if (!ready()) return;
      event.preventDefault();
      act({ action: "right_click", ...point(event) });
    });
    image.addEventListener("wheel", (event) => {
      if (!ready()) return;
      event.preventDefault();
      turned += event.deltaY;
      const notches = Math.trunc(turned / 60);
      if (notches) act({ action: "scroll", amount: Math.max(-20, Math.min(20, notches)), ...point(event) });
      turned -= notches * 60;
    }, { passive: false });
    image.addEventListener("keydown", (event) => {
      const args = ready() ? keyed(event) : null;
      if (!args) return;
      event.preventDefault();
      act(args);
    });
    const text = el("input", { placeholder: "Text to type", "aria-label": "Text to type", autocomplete: "off", autocapitalize: "off", id: "type-text" });
    const keys = el("input", { placeholder: "Keys, such as ctrl+s", "aria-label": "Keys to press", autocomplete: "off", autocapitalize: "off", id: "press-keys" });
    const press = (chord) => () => act({ action: "key_combo", keys: chord });
    hands.append(
      el("div", { class: "row gap" }, text, button("Type", () => { if (text.value) act({ action: "type", text: text.value }); text.value = ""; }, { id: "type" })),
      el("div", { class: "row gap" }, keys, button("Press", () => { if (keys.value) press(keys.value)(); keys.value = ""; }, { id: "press" })),
      el("div", { class: "row gap" }, right, button("Enter", press("enter")), button("Tab", press("tab")), button("Esc", press("escape")),
        button("Scroll up", () => act({ action: "scroll", amount: -3 })), button("Scroll down", () => act({ action: "scroll", amount: 3 }))),
    );
    const take = button("Take over", () => {
      live.taken = !live.taken;
      take.setAttribute("aria-pressed", String(live.taken));
      take.textContent = live.taken ? "Let go" : "Take over";
      image.classList.toggle("taken", live.taken);
      hands.hidden = !live.taken;
    }, { id: "take", "aria-pressed": "false" });
    const stopOne = button("Stop this desktop", told(() => send("/stops", { action: "stop", desktop: about.desktop.switch })), { class: "danger" });
    const card = el("div", { class: "card" },
      el("div", { class: "row spread" }, el("h3", { text: `Desktop ${about.desktop.name}` }), el("div", { class: "row" }, take, stopOne)),
      el("div", { class: "gap" }, image), told_, hands);
    const look = async () => {
      let pause = 700;
      if (!document.hidden && state.view === "live") {
        try {
          const answer = await get(`/sessions/${id}/screen`);
          live.place = JSON.parse(answer.headers.get("handrail-screen"));
          showBlob(image, await answer.blob());
          card.dataset.seen = "yes";
        } catch (error) {
          told_.textContent = shown(error.message);
          pause = 3000;
        }
      }
      if (panel.session === id && card.isConnected) live.timer = setTimeout(look, pause);
    };
    live.timer = setTimeout(look, 0);
    return card;
  }
  const NAMED = {
    Enter: "enter", Tab: "tab", Escape: "escape", Backspace: "backspace", Delete: "delete", ArrowLeft: "left", ArrowRight: "right",
    ArrowUp: "up", ArrowDown: "down", Home: "home", End: "end", PageUp: "pageup", PageDown: "pagedown", " ": "space",
  };
  function keyed(event) {
    if (["Control", "Shift", "Alt", "Meta"].includes(event.key) || event.isComposing) return null;
    const held = [event.ctrlKey && "ctrl", event.altKey && "alt", event.metaKey && "super"].filter(Boolean);
    if (!held.length && event.key.length === 1) return { action: "type", text: event.key };
    const name = NAMED[event.key] || (event.key.length === 1 || /^F[0-9]+$/.test(event.key) ? event.key.toLowerCase() : null);
    if (!name) return null;
    if (event.shiftKey) held.push("shift");
    return { action: "key_combo", keys: [...held, name].join("+") };
  }

  // Past sessions, step by step

  const LISTED = 50;
  async function loadPast(before = null) {
    const sessions = await (await get(before ? `/sessions?before=${before}` : "/sessions")).json();
    const list = sessions.map((about) => el("button", {
      type: "button", class: "pick", "aria-pressed": "false", "data-session": about.session,
      on: { click: told(() => replay(about.session)) },
    },
    el("span", { class: "row spread" }, el("strong", { text: when(about.at) || about.session }), about.running ? badge("running", "good") : null),
    el("span", { class: "small", text: `${about.exact ? "" : "about "}${about.calls} calls in ${folder(about) || "no folder"}` }),
    el("span", { class: "small", text: about.tools.join(", ") })));
    const older = sessions.length === LISTED ? button("Earlier sessions", told(() => loadPast(sessions[sessions.length - 1].session)), { id: "older" }) : null;
    const newer = before ? button("Newest sessions", told(() => loadPast())) : null;
    at("past").replaceChildren(...[newer, ...(list.length ? list : [el("p", { class: "empty", text: "There are no records." })]), older].filter(Boolean));
    if (!at("replay").firstChild) at("replay").append(el("p", { class: "empty", text: "Choose a session: its calls are shown step by step." }));
  }
  // One page of calls at a time, the newest first; `pages` leads back to those after it.
  async function replay(id, pages = [""]) {
    const before = pages[pages.length - 1];
    const session = await (await get(`/sessions/${id}${before ? `?before=${before}` : ""}`)).json();
    at("past").querySelectorAll(".pick").forEach((each) => each.setAttribute("aria-pressed", String(each.dataset.session === id)));
    // They are told apart by their place: a call may be recorded twice under one id.
    const calls = session.calls.map((call, key) => ({ key, ...call }));
    if (!calls.length) {
      at("replay").replaceChildren(el("p", { class: "empty", text: "This session made no call." }));
      return;
    }
    let step = 0;
    let timer = 0;
    const place = el("div");
    const count = el("strong", { id: "step" });
    const slider = el("input", { type: "range", min: "1", max: String(calls.length), value: "1", "aria-label": "Step" });
    const go = (number) => {
      step = Math.max(0, Math.min(calls.length - 1, number));
      slider.value = String(step + 1);
      count.textContent = `${step + 1} of ${calls.length}`;
      place.replaceChildren(callCard(calls[step], true));
      if (step === calls.length - 1) pause();
    };
    const pause = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; };
    const play = button("Play", () => {
      if (timer) { pause(); return; }
      if (step === calls.length - 1) go(0);
      if (calls.length < 2) return;
      play.textContent = "Pause";
      timer = setInterval(() => { if (place.isConnected) go(step + 1); else pause(); }, 1500);
    });
    slider.addEventListener("input", () => go(Number(slider.value) - 1));
    const all = el("div");
    at("replay").replaceChildren(
      el("div", { class: "card" },
        el("div", { class: "row spread" }, el("h3", { text: `Session ${id}` }), count),
        el("div", { class: "steps gap" }, slider),
        el("div", { class: "row gap" }, button("Back", () => go(step - 1), { id: "back" }), play, button("Next", () => go(step + 1), { id: "next" })),
        el("div", { class: "row gap" },
          session.before ? button("Earlier calls", told(() => replay(id, [...pages, session.before])), { id: "earlier" }) : null,
          pages.length > 1 ? button("Later calls", told(() => replay(id, pages.slice(0, -1))), { id: "later" }) : null)),
      place, el("h2", { class: "gap", text: session.before || pages.length > 1 ? "Calls of this page" : "All calls" }), all);
    renderCalls(all, new Map(), calls);
    go(0);
  }

  // Calls that changed files, and undoing them

  const STEP = { delete: "is deleted", create: "is put back", restore: "is restored", mode: "gets its mode back", replace: "is replaced", keep: "is as it was" };
  async function loadUndo() {
    const plans = await (await get("/undo")).json();
    at("undoable").replaceChildren(...(plans.length ? plans.map(undoCard) : [el("p", { class: "empty", text: "No call has changed files." })]));
  }
  function undoCard(plan) {
    const again = (more) => told(async () => {
      const result = await send("/undo", { call: plan.call, ...more });
      notice(result.status === "success" ? `${plan.call} is undone` : result.error.message);
      await loadUndo();
    });
    const undo = (text, more, given) => {
      // A first press says what a second one does.
      const pressed = button(text, () => {
        if (pressed.dataset.sure) { again(more)(); return; }
        pressed.dataset.sure = "yes";
        pressed.textContent = "Press again to undo";
      }, given);
      return pressed;
    };
    const diff = el("pre", { hidden: true, "aria-label": "What would change" });
    const showDiff = button("Show what would change", told(async () => {
      diff.textContent = shown((await (await get(`/undo/diff?call=${encodeURIComponent(plan.call)}`)).json()).diff);
      diff.hidden = false;
    }));
    const stands = plan.paths.some((path) => path.conflict || path.lost);
    const badges = [plan.undone ? badge("undone", "good") : null, plan.running ? badge("running", "warn") : null, stands ? badge("changed since, or lost", "warn") : null];
    return el("details", { class: "call", "data-undo": plan.call },
      el("summary", {},
        el("span", { class: "what" }, el("span", { class: "tool", text: plan.tool }), " ", el("bdi", { class: "args", text: plan.what })),
        el("span", { class: "row" }, badge(`${plan.count} ${plan.count === 1 ? "path" : "paths"}`), badges)),
      el("div", { class: "body" },
        el("dl", {}, [["Call", plan.call], ["Began", when(plan.at)]].flatMap(([name, value]) => [el("dt", { text: name }), el("dd", { text: value })])),
        el("ul", {}, plan.paths.map((path) => el("li", {}, el("bdi", { text: path.path }), el("span", { text: ` ${path.lost || path.conflict || STEP[path.step]}` })))),
        plan.count > plan.paths.length ? el("p", { class: "small", text: `and ${plan.count - plan.paths.length} more` }) : null,
        (plan.notes || []).map((note) => el("p", { class: "small", text: note })),
        el("div", { class: "row gap" }, showDiff,
          stands ? undo("Undo the rest", { skip_changed: true }) : undo("Undo", {}, { class: "danger" }),
          stands ? undo("Undo all of it", { force: true }, { class: "danger" }) : null),
        diff));
  }

  function show(view) {
    state.view = view;
    for (const name of ["live", "history", "undo"]) {
      at(name).hidden = name !== view;
      at(`show-${name}`).setAttribute("aria-pressed", String(name === view));
    }
    if (view === "history") told(() => loadPast())();
    if (view === "undo") told(loadUndo)();
  }
  at("show-live").addEventListener("click", () => show("live"));
  at("show-history").addEventListener("click", () => show("history"));
  at("show-undo").addEventListener("click", () => show("undo"));

  renderSessions();
  follow();
})();
