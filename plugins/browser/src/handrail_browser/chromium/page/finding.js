// What there is in a document, and which element of it is meant.

const USED = "a, button, input, select, summary, textarea, [tabindex], [onclick], [contenteditable]";
// Nothing in them is used by itself.
const ATOMS = new Set(["A", "AREA", "BUTTON", "INPUT", "OPTION", "SELECT", "SUMMARY", "TEXTAREA"]);
// Whose the document is, whatever its address: one that a page wrote into a frame is the page's.
const origin = self.origin;
// Names of things that are used as a whole: their text is not told twice.
const said = new WeakMap();
const toldAbove = (node, text) => {
  for (let each = node.parentElement, steps = 0; each && steps < 6; each = parentOf(each), steps++) {
    if (said.get(each)?.includes(text)) return true;
  }
  return false;
};
const snapshot = async ({ all, selector, most, skip, ms }) => {
  await parsed();
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

Object.assign(asked, { snapshot, resolve, pick });
