// What is asked of a document, from a world of its own that scripts of the page cannot reach. Evaluates to an object of functions.
(() => {
  const WIDGETS = new Set([
    "button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "combobox", "listbox",
    "textbox", "searchbox", "spinbutton", "slider", "treeitem", "gridcell",
  ]);
  const INPUTS = {
    button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio", range: "slider",
    number: "spinbutton", search: "searchbox", file: "file", color: "color", date: "date", time: "time", month: "date", week: "date",
    "datetime-local": "date",
  };
  const SKIPPED = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "META", "LINK", "TITLE", "BASE"]);
  const USED = "a, button, input, select, summary, textarea, [tabindex], [onclick], [contenteditable]";
  // Nothing in them is used by itself.
  const ATOMS = new Set(["A", "AREA", "BUTTON", "INPUT", "OPTION", "SELECT", "SUMMARY", "TEXTAREA"]);
  const STOPS = new Set(["SVG", "svg", "CANVAS", "VIDEO", "AUDIO", "OBJECT", "EMBED"]);
  const HEADINGS = /^H[1-6]$/;
  // Whose the document is, whatever its address: one that a page wrote into a frame is the page's.
  const origin = self.origin;
  const known = new Map();
  const numbers = new WeakMap();
  let next = 1;

  const numberOf = (element) => {
    let number = numbers.get(element);
    if (number === undefined) {
      number = next++;
      numbers.set(element, number);
      known.set(number, new WeakRef(element));
    }
    return number;
  };
  const elementOf = (number) => {
    const element = known.get(number)?.deref();
    return element?.isConnected ? element : null;
  };
  const squeezed = (text, most) => {
    // A text of a megabyte is not gone through for its first words.
    const found = (text || "").slice(0, most * 8).replace(/\s+/g, " ").trim();
    return found.length > most ? found.slice(0, most - 1) + "…" : found;
  };
  const parentOf = (element) => element.assignedSlot || element.parentElement || element.getRootNode()?.host || null;
  // Roots of closed shadow trees, as we were given them, and who may hold one that we have not asked about.
  const closed = new WeakMap();
  const met = new WeakSet();
  const shadowOf = (element) => element.shadowRoot || closed.get(element) || null;
  const HOSTS = /^(ARTICLE|ASIDE|BLOCKQUOTE|DIV|FOOTER|H[1-6]|HEADER|MAIN|NAV|P|SECTION|SPAN)$/;
  const MOST_STRANGERS = 200;
  const strangers = () => {
    const found = [];
    for (const root of [document, ...allRoots()]) {
      for (const each of root.querySelectorAll("*")) {
        if (found.length >= MOST_STRANGERS) return found;
        if (shadowOf(each) || met.has(each)) continue;
        // Of what may hold one: an element of the page's own, or a box that takes room with nothing in it.
        if (each.tagName.includes("-") || (!each.firstElementChild && HOSTS.test(each.tagName) && each.clientHeight > 7 && !each.textContent)) found.push(each);
      }
    }
    return found;
  };
  const meet = () => {
    const found = strangers();
    for (const each of found) met.add(each);
    return found;
  };
  const adopt = (host, root) => { closed.set(host, root); };
  const childrenOf = (element) => {
    const shadow = shadowOf(element);
    if (shadow) return shadow.childNodes;
    if (element.tagName === "SLOT") {
      const given = element.assignedNodes();
      return given.length ? given : element.childNodes;
    }
    return element.childNodes;
  };
  const hidden = (element) => !element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: false });

  // The label of a box that is not seen is what a person uses in its place.
  const standsFor = (element) => {
    const field = element.tagName === "LABEL" ? element.control : null;
    if (!field || !["checkbox", "radio", "file"].includes(field.type)) return null;
    return !field.checkVisibility() || (hidden(field) && field.type !== "file") ? field : null;
  };
  const editing = (element) => element.hasAttribute("contenteditable") && element.isContentEditable && !element.parentElement?.isContentEditable;
  const roleOf = (element) => {
    const given = (element.getAttribute("role") || "").trim().split(/\s+/)[0];
    if (given && given !== "presentation" && given !== "none") return given;
    switch (element.tagName) {
      case "A": return element.hasAttribute("href") ? "link" : "generic";
      case "AREA": return "link";
      case "BUTTON": return "button";
      case "SUMMARY": return "button";
      case "INPUT": return INPUTS[element.type] || "textbox";
      case "TEXTAREA": return "textbox";
      case "SELECT": return element.multiple || element.size > 1 ? "listbox" : "combobox";
      case "OPTION": return "option";
      case "IMG": return "image";
      case "IFRAME": case "FRAME": return "frame";
      case "TR": return "row";
      case "LABEL": return standsFor(element) ? INPUTS[element.control.type] : "generic";
      default: return HEADINGS.test(element.tagName) ? "heading" : editing(element) ? "textbox" : "generic";
    }
  };
  const textOf = (element, most) => squeezed(element.innerText ?? element.textContent, most);
  const spoken = (element, most) => {
    // A picture in a button is its name.
    const own = textOf(element, most);
    if (/[\p{L}\p{N}]/u.test(own)) return own;
    // A sign alone, as a cross, says less than what it is titled.
    if (own) return squeezed(element.title, most) || own;
    for (const each of element.querySelectorAll("img[alt], svg title, [aria-label]")) {
      const said = squeezed(each.getAttribute("alt") || each.getAttribute("aria-label") || each.textContent, most);
      if (said) return said;
    }
    return "";
  };
  const byIds = (element, attribute, most) => {
    const ids = (element.getAttribute(attribute) || "").split(/\s+/).filter(Boolean);
    const root = element.getRootNode();
    return squeezed(ids.map((id) => root.getElementById?.(id)?.textContent || "").join(" "), most);
  };
  const labelsOf = (element, most) =>
    squeezed(Array.from(element.labels || [], (label) => {
      const copy = label.cloneNode(true);
      for (const each of copy.querySelectorAll("input, select, textarea, script, style")) each.remove();
      return copy.textContent;
    }).join(" "), most);
  const nameOf = (element, role, most = 120) => {
    const labelled = byIds(element, "aria-labelledby", most) || squeezed(element.getAttribute("aria-label"), most);
    if (labelled) return labelled;
    if ("labels" in element) {
      const labels = labelsOf(element, most);
      if (labels && element.tagName !== "BUTTON") return labels;
    }
    if (element.tagName === "INPUT" && ["submit", "button", "reset"].includes(element.type)) {
      return squeezed(element.value, most) || { submit: "Submit", reset: "Reset" }[element.type] || "";
    }
    if (element.tagName === "IMG" || element.type === "image") return squeezed(element.alt || element.title, most);
    if (["INPUT", "TEXTAREA", "SELECT", "IFRAME"].includes(element.tagName) || role === "textbox") {
      return squeezed(element.getAttribute("placeholder") || element.title || element.getAttribute("name"), most);
    }
    // A list is not called by what it holds.
    return (role === "listbox" ? "" : spoken(element, most)) || squeezed(element.title, most);
  };
  const secret = (element) => element.tagName === "INPUT" && (element.type === "password" || /password|one-time-code|cc-(number|csc)/.test(element.autocomplete || ""));
  const valueOf = (element) => {
    if (standsFor(element)) return valueOf(element.control);
    if (secret(element)) return element.value ? "•••" : "";
    if (element.tagName === "SELECT") return Array.from(element.selectedOptions, (each) => squeezed(each.label, 60)).join(", ");
    if (element.tagName === "INPUT" && element.type === "file") return Array.from(element.files || [], (each) => each.name).join(", ");
    if (element.tagName === "INPUT" && ["checkbox", "radio", "submit", "button", "reset", "image"].includes(element.type)) return null;
    if (element.tagName === "INPUT" || element.tagName === "TEXTAREA") return element.value;
    if (element.isContentEditable) return element.innerText;
    return element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow");
  };
  const disabled = (element) => element.matches(":disabled") || parentsMatch(element, '[aria-disabled="true"], [inert]');
  const parentsMatch = (element, selector) => {
    for (let each = element; each; each = parentOf(each)) if (each.matches?.(selector)) return true;
    return false;
  };
  const statesOf = (element) => {
    if (standsFor(element)) return statesOf(element.control);
    const states = [];
    const aria = (name) => element.getAttribute(`aria-${name}`);
    if (disabled(element)) states.push("disabled");
    if (element.type === "checkbox" || element.type === "radio" ? element.checked : aria("checked") === "true") states.push("checked");
    if (aria("checked") === "mixed" || element.indeterminate) states.push("mixed");
    if (aria("selected") === "true") states.push("selected");
    if (aria("pressed") === "true") states.push("pressed");
    if (aria("current") && aria("current") !== "false") states.push("current");
    const open = aria("expanded") ?? (element.tagName === "SUMMARY" ? String(element.parentElement?.open ?? false) : null);
    if (open === "true") states.push("expanded");
    if (open === "false") states.push("collapsed");
    if (element.required || aria("required") === "true") states.push("required");
    if (element.readOnly === true && /textbox|searchbox|spinbutton/.test(roleOf(element))) states.push("readonly");
    if (secret(element)) states.push("password");
    if (aria("invalid") === "true" || (element.willValidate && element.value && !element.validity.valid)) states.push("invalid");
    if (element.getRootNode().activeElement === element) states.push("focused");
    return states;
  };
  const interactive = (element, role) => {
    switch (element.tagName) {
      case "A": case "AREA": if (element.hasAttribute("href")) return true; break;
      case "INPUT": return element.type !== "hidden";
      case "BUTTON": case "SELECT": case "TEXTAREA": case "SUMMARY": return true;
      case "OPTION": case "BODY": case "HTML": return false;
      case "LABEL": return standsFor(element) !== null;
    }
    if (WIDGETS.has(role) || element.hasAttribute("onclick")) return true;
    if (element.isContentEditable) return !element.parentElement?.isContentEditable;
    if (element.hasAttribute("tabindex") && element.tabIndex >= 0) return true;
    return false;
  };
  const points = (element) => {
    // A box with a hand over it is clicked, whatever it calls itself; what is in it only inherits the hand.
    if (getComputedStyle(element).cursor !== "pointer") return false;
    const above = parentOf(element);
    return !above || getComputedStyle(above).cursor !== "pointer";
  };
  // What stands around an element tells it from others that are called the same.
  const contextOf = (element) => {
    for (let each = parentOf(element), steps = 0; each && steps < 12; each = parentOf(each), steps++) {
      const role = each.getAttribute("role");
      if (each.tagName === "TR" || role === "row" || each.tagName === "LI" || role === "listitem" || each.tagName === "ARTICLE") {
        const cell = each.querySelector("th, td, [role=rowheader], [role=gridcell], [role=cell], h1, h2, h3, h4, h5, h6");
        const text = squeezed((cell && cell.textContent.trim() ? cell : each).textContent, 60);
        if (text) return text;
      }
      if (each.tagName === "FORM" || each.tagName === "DIALOG" || each.tagName === "NAV" || role === "dialog") {
        return each.getAttribute("aria-label") || each.id || each.getAttribute("name") || each.tagName.toLowerCase();
      }
    }
    return "";
  };
  const printOf = (element, role, name) =>
    [role, name, element.tagName, element.id || "", element.getAttribute("name") || "", element.type || "", contextOf(element)].join("\u001f");

  const describe = (element, role = roleOf(element)) => {
    const name = nameOf(element, role);
    const box = element.getBoundingClientRect();
    const shown = { n: numberOf(element), role, name, print: printOf(element, role, name), states: statesOf(element),
      box: [Math.round(box.x), Math.round(box.y), Math.round(box.width), Math.round(box.height)] };
    const value = valueOf(element);
    if (value !== null && value !== undefined && value !== "") shown.value = squeezed(value, 200);
    if (element.tagName === "SELECT") shown.options = Array.from(element.options).slice(0, 12).map((each) => squeezed(each.label, 40));
    if (element.tagName === "SELECT" && element.options.length > 12) shown.more = element.options.length - 12;
    if (element.tagName === "A" && element.href) shown.url = element.getAttribute("href").slice(0, 300);
    if (HEADINGS.test(element.tagName)) shown.level = Number(element.tagName[1]);
    return shown;
  };

  // All elements that are seen, in order; `visit` gives false to leave out what is inside one.
  const walk = (root, visit, until) => {
    const stack = [[root, 0]];
    let seen = 0;
    while (stack.length) {
      if ((++seen & 1023) === 0 && performance.now() > until) return false;
      const [node, depth] = stack.pop();
      if (node.nodeType === 3) { visit(node, depth); continue; }
      if (node.nodeType !== 1 || SKIPPED.has(node.tagName)) continue;
      const into = visit(node, depth);
      if (into === false) continue;
      const children = childrenOf(node);
      for (let at = children.length - 1; at >= 0; at--) stack.push([children[at], depth + 1]);
    }
    return true;
  };
  const rootOf = (selector) => (selector ? first(selector) : document.body || document.documentElement);
  const first = (selector) => {
    const found = document.querySelector(selector);
    if (found) return found;
    return allRoots().map((root) => root.querySelector(selector)).find(Boolean) || null;
  };
  const allRoots = () => {
    const roots = [];
    const look = (root) => {
      for (const each of root.querySelectorAll("*")) {
        const shadow = shadowOf(each);
        if (shadow) { roots.push(shadow); look(shadow); }
      }
    };
    look(document);
    return roots;
  };
  const allOf = (selector) => [document, ...allRoots()].flatMap((root) => Array.from(root.querySelectorAll(selector)));

  // Names of things that are used as a whole: their text is not told twice.
  const said = new WeakMap();
  const toldAbove = (node, text) => {
    for (let each = node.parentElement, steps = 0; each && steps < 6; each = parentOf(each), steps++) {
      if (said.get(each)?.includes(text)) return true;
    }
    return false;
  };
  const snapshot = ({ all, selector, most, skip, ms }) => {
    const root = rootOf(selector);
    if (!root) return { missing: true };
    const until = performance.now() + ms;
    const lines = [];
    let passed = 0, total = 0;
    const prints = new Map();
    // Beyond what is asked for, things are only counted.
    const add = (make) => {
      total++;
      if (passed < skip) { passed++; return; }
      if (lines.length >= most) return;
      const line = make();
      if (line.print !== undefined) {
        line.nth = prints.get(line.print) || 0;
        prints.set(line.print, line.nth + 1);
      }
      lines.push(line);
    };
    const whole = walk(root, (node) => {
      if (node.nodeType === 3) {
        if (!all) return true;
        const text = squeezed(node.data, 300);
        if (text && node.parentElement && !hidden(node.parentElement) && !toldAbove(node, text)) add(() => ({ text }));
        return true;
      }
      if (!node.checkVisibility()) return false;
      if (node.tagName === "IFRAME" || node.tagName === "FRAME") { add(() => ({ ...describe(node), frame: true })); return false; }
      const role = roleOf(node);
      if (interactive(node, role) || (node.childElementCount < 20 && points(node))) {
        if (!hidden(node) || node.type === "file") {
          add(() => describe(node, role === "generic" ? "clickable" : role));
          // What a button is made of is its name; a row, a list or a box that is used as a whole may hold others that are, too.
          if (ATOMS.has(node.tagName) || node.isContentEditable) return false;
          if (all) said.set(node, nameOf(node, role));
          return true;
        }
      } else if (all && tiny(node) && !node.querySelector(USED)) {
        // Nobody would read it.
        return false;
      } else if (role === "heading" && !hidden(node)) {
        add(() => describe(node, role));
        return !!node.querySelector("a, button");
      } else if (role === "image" && all) {
        const said = nameOf(node, role);
        if (said) add(() => ({ role, name: said }));
      }
      return !STOPS.has(node.tagName);
    }, until);
    for (const line of lines) if (line.print !== undefined) line.of = prints.get(line.print);
    return { lines, total, whole, strangers: strangers().length, scroll: [Math.round(scrollX), Math.round(scrollY), innerWidth, innerHeight, document.documentElement.scrollHeight] };
  };

  const candidates = (print, role, name) => {
    const same = [], alike = [];
    walk(document.body, (node) => {
      if (node.nodeType !== 1) return true;
      if (!node.checkVisibility()) return false;
      const found = roleOf(node);
      const is = interactive(node, found) ? (found === "generic" ? "clickable" : found) : found === "generic" && role === "clickable" && points(node) ? "clickable" : found;
      if (is === role) {
        const called = nameOf(node, is);
        if (printOf(node, is, called) === print) same.push(node);
        else if (called === name && alike.length < 5) alike.push(node);
      }
      return true;
    }, performance.now() + 3000);
    return { same, alike };
  };
  // The element with this number as long as it is what it was; else the one thing that has its fingerprint.
  const resolve = ({ n, print, role, name, nth, of }) => {
    const element = elementOf(n);
    if (element) {
      const now = role === "clickable" ? "clickable" : roleOf(element);
      const called = nameOf(element, now);
      if (now === role && called === name) return { n, origin };
      return { changed: describe(element, now) };
    }
    const { same, alike } = candidates(print, role, name);
    // As many as there were: the one in its place. Otherwise nobody knows which of them it was.
    if (same.length === of && same[nth]) return { n: numberOf(same[nth]), again: true, origin };
    return { candidates: [...same, ...alike].slice(0, 5).map((each) => describe(each, role)) };
  };
  const pick = ({ selector, text, role }) => {
    let found;
    try {
      found = selector ? allOf(selector) : [];
    } catch {
      return { invalid: true };
    }
    if (!selector) {
      const wanted = text.toLowerCase();
      const exact = [], partly = [];
      walk(document.body, (node) => {
        if (node.nodeType !== 1) return true;
        if (!node.checkVisibility()) return false;
        const is = roleOf(node);
        if (!(interactive(node, is) || points(node)) || (role && is !== role)) return true;
        const called = nameOf(node, is).toLowerCase();
        if (called === wanted) exact.push(node);
        else if (called.includes(wanted)) partly.push(node);
        return true;
      }, performance.now() + 3000);
      found = exact.length ? exact : partly;
    }
    const seen = found.filter((each) => each.checkVisibility() && !hidden(each));
    const list = seen.length ? seen : found;
    return { count: list.length, strangers: strangers().length, origin, found: list.slice(0, 5).map((each) => {
      const is = roleOf(each);
      return describe(each, is === "generic" ? "clickable" : is);
    }) };
  };

  const deepest = (x, y) => {
    let at = document.elementFromPoint(x, y);
    while (at && shadowOf(at)) {
      const inner = shadowOf(at).elementFromPoint(x, y);
      if (!inner || inner === at) break;
      at = inner;
    }
    return at;
  };
  const within = (outer, inner) => {
    for (let each = inner; each; each = parentOf(each)) if (each === outer) return true;
    return false;
  };
  const hits = (element, at) =>
    within(element, at) || (within(at, element) && at.tagName === "LABEL") || Array.from(element.labels || []).some((label) => within(label, at));
  const frameTurn = () => new Promise((done) => {
    const late = setTimeout(done, 50);
    requestAnimationFrame(() => { clearTimeout(late); done(); });
  });
  const spotOf = (element) => {
    const boxes = Array.from(element.getClientRects()).filter((box) => box.width > 0 && box.height > 0);
    for (const box of boxes) {
      const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth);
      const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
      if (right - left >= 1 && bottom - top >= 1) return [(left + right) / 2, (top + bottom) / 2];
    }
    return null;
  };
  // What holds a part of the page in place, as a bar at its top, covers another part in each of these.
  const PLACES = ["center", "end", "start"];
  const overIt = (at) => (at ? `${describe(at).role} ${JSON.stringify(describe(at).name.slice(0, 60))} lies over it` : "it is outside the window");
  // Where an element can be clicked, as soon as it is there, still, able and on top. `again`: how often it was found to be out of sight from outside.
  const ready = async ({ n, ms, enabled, editable, again }) => {
    const until = performance.now() + ms;
    let why = "", last = null, moves = 0;
    if (again) {
      elementOf(n)?.scrollIntoView({ block: PLACES[(again - 1) % 3], inline: "center", behavior: "instant" });
      await frameTurn();
    }
    do {
      const element = elementOf(n);
      if (!element) return { gone: true };
      if (!element.checkVisibility() || hidden(element)) why = "it is hidden";
      else if (enabled && disabled(element)) why = "it is disabled";
      else if (editable && element.readOnly === true) why = "it is read-only";
      else {
        let spot = spotOf(element);
        const box = element.getBoundingClientRect();
        if (!spot || box.top < 0 || box.bottom > innerHeight) {
          element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
          spot = spotOf(element);
        }
        const at = spot && deepest(spot[0], spot[1]);
        const place = spot && spot.map(Math.round).join();
        if (!spot) why = "it has no size or is outside the page";
        else if (!at || !hits(element, at)) {
          why = overIt(at);
          // It may be in a box that scrolls, or under what stays where it is.
          if (moves < PLACES.length) element.scrollIntoView({ block: PLACES[moves++], inline: "center", behavior: "instant" });
        } else if (place === last || (last === null && !moving(element))) {
          return { x: spot[0], y: spot[1] };
        } else why = "it moves";
        last = place;
      }
      await frameTurn();
    } while (performance.now() < until);
    return { why };
  };
  // Where a point of a frame is in the document that shows it, and what is in the way there.
  const through = ({ n, x, y }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    const wide = box.width / (element.offsetWidth || 1), tall = box.height / (element.offsetHeight || 1);
    const left = box.left + (element.clientLeft + parseFloat(style.paddingLeft) + x) * wide;
    const top = box.top + (element.clientTop + parseFloat(style.paddingTop) + y) * tall;
    const at = deepest(left, top);
    return { x: left, y: top, why: at === element ? null : overIt(at) };
  };
  const moving = (element) => {
    for (let each = element, steps = 0; each && steps < 8; each = parentOf(each), steps++) {
      if (each.getAnimations?.().some((animation) => animation.playState === "running")) return true;
    }
    return false;
  };

  // Where the document changes with nobody acting, and how often: what changes there during an action is no sign of it.
  const restless = new WeakMap();
  const OFTEN = 3, LATELY = 1_000, AFTERWARDS = 4_000, MOST_RECORDS = 200, MOST_FIELDS = 300;
  const idled = (records) => {
    const now = performance.now();
    // What comes late of an action is no habit yet.
    const late = watching && now - watching.ended < AFTERWARDS;
    for (const target of new Set(records.slice(0, MOST_RECORDS).map((each) => each.target))) {
      const was = restless.get(target);
      if (late && !(was?.times >= OFTEN)) continue;
      restless.set(target, { times: (was?.times || 0) + 1, last: now, gap: was ? now - was.last : Infinity, before: was ? was.gap : Infinity });
    }
  };
  // What changes in the document while something is done to it.
  let watching = null, acting = false;
  const changes = new MutationObserver((records) => {
    if (watching) witnessed(watching, records);
    if (!acting) idled(records);
  });
  const ALL = { subtree: true, childList: true, characterData: true, attributes: true };
  changes.observe(document, ALL);
  const byItself = (state, target) => {
    const known = restless.get(target);
    return known !== undefined && known.times >= OFTEN && state.began - known.last <= Math.max(3 * Math.min(known.gap, known.before), LATELY);
  };
  const witnessed = (state, records) => {
    for (const record of records) {
      const itself = byItself(state, record.target);
      const texts = itself ? state.itself : state.texts;
      if (itself) {
        if (acting) restless.get(record.target).last = performance.now();
      } else {
        state.count++;
        state.last = performance.now();
      }
      if (texts.length >= 6) continue;
      const nodes = record.type === "characterData" ? [record.target] : record.addedNodes;
      for (const node of nodes) {
        if (node.nodeType === 1 && SKIPPED.has(node.tagName)) continue;
        const shown = node.nodeType === 1 ? node : node.parentElement;
        const text = shown?.checkVisibility?.() ? squeezed(node.nodeType === 1 ? node.innerText : node.data, 120) : "";
        if (text && texts.length < 6) texts.push(text);
      }
    }
  };
  // A page may put another thing under the pointer once that is there: what would be pressed then hears nothing of it.
  const PRESSES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"];
  const pressed = (event) => {
    const state = watching;
    if (!state?.pressing || !event.isTrusted) return;
    if (state.missed === undefined) {
      const at = deepest(event.clientX, event.clientY);
      state.missed = !at || hits(state.target, at) || drawnAnew(state, at) ? null : describe(at);
    }
    if (!state.missed) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  // What was drawn anew meanwhile is the same thing to a person.
  const drawnAnew = (state, at) => {
    if (state.target.isConnected) return false;
    for (let each = at; each; each = parentOf(each)) if (each.tagName === state.target.tagName && nameOf(each, roleOf(each)) === state.called) return true;
    return false;
  };
  const ticks = (element) => element.type === "checkbox" || element.type === "radio";
  const held = (element) => {
    if (element.tagName === "SELECT") return Array.from(element.selectedOptions, (each) => each.index).join();
    return ticks(element) ? String(element.checked) : element.value;
  };
  // `n` is what is acted on; `filling` says that it is read back by itself, `pressing` that it is clicked.
  const watch = ({ n, filling, pressing }) => {
    if (!acting) idled(changes.takeRecords());
    acting = true;
    const roots = [document, ...allRoots()];
    for (const root of roots) changes.observe(root, ALL);
    const target = n ? elementOf(n) : null;
    if (pressing) for (const each of PRESSES) addEventListener(each, pressed, true);
    const fields = roots.flatMap((root) => Array.from(root.querySelectorAll("input, select, textarea"))).slice(0, MOST_FIELDS);
    const now = performance.now();
    watching = { pressing: pressing && target !== null, called: target && nameOf(target, roleOf(target)), count: 0, began: now, ended: now, last: now, texts: [], itself: [], target, focus: document.activeElement, scroll: [scrollX, scrollY],
      fields: fields.filter((each) => !(filling && each === target)).map((each) => [each, held(each)]) };
    return true;
  };
  const quiet = async ({ still, ms }) => {
    const state = watching;
    if (!state) return null;
    acting = true;
    const until = performance.now() + ms;
    await frameTurn();
    while (performance.now() - state.last < still && performance.now() < until) {
      await new Promise((done) => setTimeout(done, Math.max(1, still - (performance.now() - state.last))));
    }
    witnessed(state, changes.takeRecords());
    acting = false;
    state.pressing = false;
    state.ended = performance.now();
    return { settled: performance.now() - state.last >= still, ...told(state) };
  };
  const TAKES_TEXT = "textarea, input:not([type=button], [type=submit], [type=reset], [type=image], [type=checkbox], [type=radio], [type=file])";
  const told = (state) => {
    const focus = document.activeElement;
    const moved = focus && focus !== state.focus && focus !== document.body;
    // What is clicked gets the focus, whether it does anything or not; only of a field is that all there is to be had.
    const own = moved && state.target && (within(state.target, focus) || within(focus, state.target)) && !focus.matches(TAKES_TEXT) && !focus.isContentEditable;
    return {
      count: state.count, texts: state.texts, itself: state.itself, own: Boolean(own), missed: state.missed || null,
      focus: moved ? describe(focus) : null,
      fields: state.fields.filter(([each, was]) => each.isConnected && held(each) !== was).slice(0, 4).map(([each]) => ({ ...describe(each), ticked: ticks(each) ? each.checked : null })),
      scrolled: state.scroll[0] !== Math.round(scrollX) && state.scroll[0] !== scrollX || state.scroll[1] !== scrollY,
    };
  };

  const look = ({ n }) => {
    const element = elementOf(n);
    return element ? describe(element) : null;
  };
  // A value is put in as a person's typing would: by the setter that frameworks watch, with the events that they wait for.
  const clear = ({ n }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    element.focus({ preventScroll: true });
    if (element.isContentEditable) {
      const range = document.createRange();
      range.selectNodeContents(element);
      const selection = element.ownerDocument.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      return { editable: true };
    }
    if (!("value" in element) || element.tagName === "SELECT" || ["checkbox", "radio", "button", "submit", "file", "image", "reset"].includes(element.type)) {
      return { wrong: roleOf(element) };
    }
    if (["date", "time", "datetime-local", "month", "week", "color", "range"].includes(element.type)) return { set: true };
    element.select?.();
    return { editable: true };
  };
  const set = ({ n, value }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value").set.call(element, value);
    element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return { value: element.value };
  };
  const filled = ({ n, value }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    const now = element.isContentEditable ? element.innerText : element.value;
    // What is a paragraph or a break to rich text is for its own markup to say.
    const plain = (text) => (element.isContentEditable ? text.replace(/\u00a0/g, " ").replace(/\s*\n\s*/g, "\n") : text.replace(/\r\n?/g, "\n")).trim();
    const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();
    return { same: now === value || plain(now) === plain(value), formed: letters(now) === letters(value), shown: secret(element) ? "•••" : squeezed(now, 200), length: now.length };
  };
  const meant = (element, values) => {
    const options = Array.from(element.options);
    return values.map((value) => options.find((each) => each.value === value) || options.find((each) => squeezed(each.label, 400) === value.trim()));
  };
  const choose = ({ n, values }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    if (element.tagName !== "SELECT") return { wrong: roleOf(element) };
    const options = Array.from(element.options);
    const chosen = meant(element, values);
    if (chosen.some((each) => !each)) {
      return { missing: values.filter((_, at) => !chosen[at]), options: options.slice(0, 40).map((each) => squeezed(each.label, 60)) };
    }
    if (disabled(element)) return { disabled: "it" };
    if (chosen.some((each) => each.disabled || each.closest("optgroup")?.disabled)) return { disabled: "the choice" };
    if (chosen.length > 1 && !element.multiple) return { single: true };
    const before = held(element);
    element.focus({ preventScroll: true });
    if (element.multiple) for (const each of options) each.selected = chosen.includes(each);
    else chosen[0].selected = true;
    const changed = held(element) !== before;
    element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
    return { shown: valueOf(element), changed };
  };
  // Whether a list still has what was chosen, once the page has had its say.
  const chosen = ({ n, values }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    const wanted = new Set(meant(element, values));
    return { same: wanted.size === element.selectedOptions.length && Array.from(element.selectedOptions).every((each) => wanted.has(each)), shown: valueOf(element) };
  };
  // The file field that an element is, or is the label of.
  const fileField = ({ n }) => {
    const element = elementOf(n);
    if (!element) return { gone: true };
    const field = element.tagName === "LABEL" ? element.control : element;
    if (field?.tagName !== "INPUT" || field.type !== "file") return { wrong: roleOf(element) };
    return { n: numberOf(field), disabled: disabled(field), multiple: field.multiple, files: Array.from(field.files || [], (each) => each.name) };
  };
  const focus = ({ n }) => {
    const element = elementOf(n);
    if (!element) return false;
    element.focus({ preventScroll: false });
    return element.getRootNode().activeElement === element;
  };
  const scrolls = (element, across) => {
    const style = getComputedStyle(element);
    return across ? element.scrollWidth > element.clientWidth + 1 && /auto|scroll/.test(style.overflowX)
      : element.scrollHeight > element.clientHeight + 1 && /auto|scroll/.test(style.overflowY);
  };
  // What scrolls for an element; without one the page, or the box in its middle where an application has one in its place.
  const boxOf = (element, across) => {
    const whole = document.scrollingElement || document.documentElement;
    const fits = across ? whole.scrollWidth <= whole.clientWidth + 1 : whole.scrollHeight <= whole.clientHeight + 1;
    const from = element || (fits ? deepest(innerWidth / 2, innerHeight / 2) : null);
    for (let each = from; each; each = parentOf(each)) if (scrolls(each, across)) return each;
    return whole;
  };
  const scroll = ({ n, x, y, to }) => {
    const element = n ? elementOf(n) : null;
    if (n && !element) return { gone: true };
    if (element && to === "into") { element.scrollIntoView({ block: "center", behavior: "instant" }); return { moved: true }; }
    const box = boxOf(element, x !== 0);
    const before = [box.scrollLeft, box.scrollTop];
    if (to === "top" || to === "bottom") box.scrollTo({ top: to === "top" ? 0 : box.scrollHeight, behavior: "instant" });
    else box.scrollBy({ left: x * box.clientWidth, top: y * box.clientHeight, behavior: "instant" });
    return { moved: before[0] !== box.scrollLeft || before[1] !== box.scrollTop, at: Math.round(box.scrollTop), height: box.scrollHeight, view: box.clientHeight };
  };
  const waited = async ({ text, gone, selector, ms }) => {
    const met = () => {
      if (selector) {
        const found = allOf(selector).filter((each) => each.checkVisibility() && !hidden(each));
        if ((found.length > 0) === Boolean(gone)) return false;
        if (text == null) return true;
        return found.some((each) => (each.innerText || "").includes(text)) !== Boolean(gone);
      }
      // Of a frame that is not shown nothing is read.
      const shown = document.documentElement.checkVisibility() ? document.body?.innerText || "" : "";
      return (shown.includes(text) || allRoots().some((root) => Array.from(root.children).some((each) => (each.innerText || "").includes(text)))) !== Boolean(gone);
    };
    try {
      if (met()) return true;
    } catch {
      return { invalid: true };
    }
    return await new Promise((done) => {
      let queued = false;
      const end = (value) => { observer.disconnect(); clearInterval(often); clearTimeout(late); done(value); };
      const check = () => { queued = false; if (met()) end(true); };
      const observer = new MutationObserver(() => { if (!queued) { queued = true; requestAnimationFrame(check); } });
      observer.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
      // Transitions and values of fields change what is seen without changing the document.
      const often = setInterval(check, 200);
      const late = setTimeout(() => end(false), ms);
    });
  };

  // The page as it is seen, as markup; what is not seen is left out and counted.
  const VOID = new Set(["BR", "HR", "IMG", "INPUT", "WBR"]);
  const KEPT = ["href", "src", "alt", "role", "id", "class", "colspan", "rowspan", "start", "lang", "datetime", "aria-label", "aria-level"];
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
  const tiny = (element) => {
    const style = getComputedStyle(element);
    if (parseFloat(style.opacity) < 0.05 || parseFloat(style.fontSize) < 3) return true;
    if (/rect\(\s*[01]px,\s*[01]px,\s*[01]px,\s*[01]px\)|inset\((?:50|100)%\)/.test(style.clip + style.clipPath)) return true;
    if (parseFloat(style.textIndent) < -500) return true;
    const box = element.getBoundingClientRect();
    if (style.position === "absolute" || style.position === "fixed") {
      if (box.right + scrollX < -50 || box.bottom + scrollY < -50) return true;
    }
    if (/hidden|clip/.test(style.overflow) && (box.width <= 1 || box.height <= 1)) return true;
    const ink = style.color.match(/[\d.]+/g);
    return !!ink && ink.length > 3 && parseFloat(ink[3]) < 0.05 || sameInk(element, style);
  };
  const sameInk = (element, style) => {
    if (!Array.from(element.childNodes).some((each) => each.nodeType === 3 && each.data.trim())) return false;
    for (let each = element; each; each = parentOf(each)) {
      const own = each === element ? style : getComputedStyle(each);
      if (own.backgroundImage !== "none") return false;
      if (!/rgba\(.*,\s*0\)|transparent/.test(own.backgroundColor)) return own.backgroundColor === style.color;
    }
    return style.color === "rgb(255, 255, 255)";
  };
  const markup = ({ selector, most, ms }) => {
    const root = rootOf(selector);
    if (!root) return { missing: true };
    const until = performance.now() + ms;
    const out = [];
    let size = 0, unseen = 0, cut = false;
    const write = (text) => { out.push(text); size += text.length; };
    // Entries are nodes to be opened, or the text that closes one.
    const stack = [root];
    let steps = 0;
    while (stack.length) {
      if (size > most || ((++steps & 511) === 0 && performance.now() > until)) { cut = true; break; }
      const node = stack.pop();
      if (typeof node === "string") { write(node); continue; }
      if (node.nodeType === 3) {
        if (node.data.trim() && node.parentElement && hidden(node.parentElement)) unseen += node.data.trim().length;
        else write(escaped(node.data.slice(0, most)));
        continue;
      }
      if (node.nodeType !== 1 || SKIPPED.has(node.tagName)) continue;
      if (!node.checkVisibility() || tiny(node)) { unseen += squeezed(node.textContent, 100000).length; continue; }
      if (node.tagName === "IFRAME" || node.tagName === "FRAME") { write(`<section data-frame="${numberOf(node)}"></section>`); continue; }
      if (node.tagName === "INPUT" || node.tagName === "TEXTAREA" || node.tagName === "SELECT") {
        const value = valueOf(node);
        if (value && node.type !== "hidden") write(`<span>${escaped(squeezed(value, 300))}</span>`);
        continue;
      }
      if (STOPS.has(node.tagName)) continue;
      const name = node.tagName.includes("-") || node.tagName === "SLOT" ? "div" : node.tagName.toLowerCase();
      const given = KEPT.filter((each) => node.hasAttribute(each)).map((each) => ` ${each}="${escaped(each === "href" ? node.href?.toString() || "" : node.getAttribute(each))}"`).join("");
      write(`<${name}${given}>`);
      if (VOID.has(node.tagName)) continue;
      stack.push(`</${name}>`);
      const children = childrenOf(node);
      for (let at = children.length - 1; at >= 0; at--) stack.push(children[at]);
    }
    if (cut) while (stack.length) { const node = stack.pop(); if (typeof node === "string") write(node); }
    return { html: out.join(""), unseen, cut, strangers: strangers().length };
  };
  const here = () => ({ url: location.href, title: document.title.slice(0, 300), type: document.contentType, state: document.readyState, shown: document.visibilityState === "visible" });
  const download = ({ n }) => {
    const element = elementOf(n);
    const link = element?.closest?.("a[href]");
    return link ? link.href : null;
  };
  const elementAt = ({ n }) => elementOf(n);
  const scrolledTo = () => [scrollX, scrollY];
  const reveal = ({ n }) => { elementOf(n)?.scrollIntoView({ block: "center", behavior: "instant" }); return true; };
  // A document that is still being read is looked at when its end is there, or after a while as it is.
  const parsed = (look) => (args) => document.readyState !== "loading" ? look(args) : new Promise((done) => {
    document.addEventListener("DOMContentLoaded", done, { once: true });
    setTimeout(done, 2_000);
  }).then(() => look(args));
  return { meet, adopt, snapshot: parsed(snapshot), resolve, pick, ready, through, watch, quiet, look, clear, set, filled, choose, chosen, fileField, numberOf, focus, scroll, waited, markup: parsed(markup), here, download, elementAt, scrolledTo, reveal };
})()
