// What is to be read in a document, and waiting for it.

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
const markup = async ({ selector, most, ms }) => {
  await parsed();
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
const here = () => ({ url: location.href, title: document.title.slice(0, 300), type: document.contentType, shown: document.visibilityState === "visible" });

Object.assign(asked, { waited, markup, here });
