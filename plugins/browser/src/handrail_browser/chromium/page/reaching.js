// Bringing an element to where it can be clicked.

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
const scrolledTo = () => [scrollX, scrollY];
const reveal = ({ n }) => { elementOf(n)?.scrollIntoView({ block: "center", behavior: "instant" }); return true; };

Object.assign(asked, { ready, through, scroll, scrolledTo, reveal });
