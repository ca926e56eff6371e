// The elements of a document: what each is called by number, what is in it, shadow trees with it, and whether it is seen.

const SKIPPED = new Set(["SCRIPT", "STYLE", "TEMPLATE", "NOSCRIPT", "HEAD", "META", "LINK", "TITLE", "BASE"]);
const STOPS = new Set(["SVG", "svg", "CANVAS", "VIDEO", "AUDIO", "OBJECT", "EMBED"]);

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

// A document that is still being read is looked at when its end is there, or after a while as it is.
const parsed = () => document.readyState !== "loading" || new Promise((done) => {
  document.addEventListener("DOMContentLoaded", done, { once: true });
  setTimeout(done, 2_000);
});

const elementAt = ({ n }) => elementOf(n);

Object.assign(asked, { numberOf, elementAt, meet, adopt });
