// What fields hold, and putting something into them.

const ticks = (element) => element.type === "checkbox" || element.type === "radio";
const held = (element) => {
  if (element.tagName === "SELECT") return Array.from(element.selectedOptions, (each) => each.index).join();
  return ticks(element) ? String(element.checked) : element.value;
};
const UNWRITTEN = ["checkbox", "radio", "button", "submit", "file", "image", "reset"];
const writable = (element) =>
  element.isContentEditable || ((element.tagName === "TEXTAREA" || (element.tagName === "INPUT" && !UNWRITTEN.includes(element.type))) && !element.readOnly && !disabled(element));
// True while keys go to this text field: one that deletes is sent to nothing else.
const takesKeys = (element) => {
  let at = element.ownerDocument.activeElement;
  while (at && shadowOf(at)?.activeElement) at = shadowOf(at).activeElement;
  return !!at && writable(at) && (within(element, at) || (at.isContentEditable && within(at, element)));
};
const focused = ({ n }) => {
  const element = elementOf(n);
  return !!element && takesKeys(element);
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
  if (!("value" in element) || element.tagName === "SELECT" || UNWRITTEN.includes(element.type)) {
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

Object.assign(asked, { clear, focused, set, filled, choose, chosen, fileField, focus });
