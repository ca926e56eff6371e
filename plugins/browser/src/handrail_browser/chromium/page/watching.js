// What changes in the document while something is done to it.

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

Object.assign(asked, { watch, quiet });
