// What an element is to a person: its role, name, value and states.

const WIDGETS = new Set([
  "button", "link", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "combobox", "listbox",
  "textbox", "searchbox", "spinbutton", "slider", "treeitem", "gridcell",
]);
const INPUTS = {
  button: "button", submit: "button", reset: "button", image: "button", checkbox: "checkbox", radio: "radio", range: "slider",
  number: "spinbutton", search: "searchbox", file: "file", color: "color", date: "date", time: "time", month: "date", week: "date",
  "datetime-local": "date",
};
const HEADINGS = /^H[1-6]$/;
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

const look = ({ n }) => {
  const element = elementOf(n);
  return element ? describe(element) : null;
};

Object.assign(asked, { look });
