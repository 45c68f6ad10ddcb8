/* What the pages do by themselves: copy buttons, times, keys, the drawer, light and dark. */
"use strict";

const say = (text) => {
  const place = document.getElementById("notice");
  if (place) place.textContent = text;
};

const ago = (then) => {
  const seconds = Math.round((Date.now() - then) / 1000);
  if (seconds < -5) return `in ${span(-seconds)}`;
  return `${span(Math.max(seconds, 0))} ago`;
};

const span = (seconds) => {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
};

const dress = (root) => {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.textContent = ago(Date.parse(time.dateTime));
  }
  for (const each of root.querySelectorAll("[data-copy]")) {
    if (each.nextElementSibling && each.nextElementSibling.classList.contains("copy")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain copy";
    button.textContent = "copy";
    button.setAttribute("aria-label", `Copy ${each.textContent.trim().slice(0, 40)}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(each.textContent);
      say("Copied.");
    });
    each.after(button);
  }
};

/* The waterfall: which part of it is in view is drawn in its small map. */
customElements.define("run-waterfall", class extends HTMLElement {
  connectedCallback() {
    this.look = () => this.mark();
    addEventListener("scroll", this.look, { passive: true });
    addEventListener("resize", this.look, { passive: true });
    this.mark();
  }

  disconnectedCallback() {
    removeEventListener("scroll", this.look);
    removeEventListener("resize", this.look);
  }

  mark() {
    const view = this.querySelector(".minimap .view");
    const table = this.querySelector("table");
    if (!view || !table) return;
    const place = table.getBoundingClientRect();
    const high = place.height || 1;
    const top = Math.min(Math.max(-place.top / high, 0), 1);
    const end = Math.min(Math.max((innerHeight - place.top) / high, 0), 1);
    const whole = this.querySelector(".minimap").viewBox.baseVal.height;
    view.setAttribute("y", top * whole);
    view.setAttribute("height", Math.max(end - top, 0) * whole);
  }
});
customElements.define("chain-graph", class extends HTMLElement {});

/* Long JSON is folded until somebody opens it. */
customElements.define("json-view", class extends HTMLElement {
  connectedCallback() {
    const text = this.querySelector("pre");
    if (!text || text.textContent.length < 2000 || this.querySelector("details")) return;
    const fold = document.createElement("details");
    const title = document.createElement("summary");
    title.textContent = `${text.textContent.length} characters of JSON`;
    this.append(fold);
    fold.append(title, text);
  }
});

const theme = (wanted) => {
  if (wanted) document.documentElement.dataset.theme = wanted;
};

const switchTheme = () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  theme(now === "dark" ? "light" : "dark");
  localStorage.setItem("theme", document.documentElement.dataset.theme);
};

let opener = null;
const drawer = () => document.getElementById("drawer");
const closeDrawer = () => {
  if (drawer().hidden) return;
  drawer().hidden = true;
  drawer().replaceChildren();
  if (opener && opener.isConnected) opener.focus();
};

const step = (by) => {
  const rows = [...document.querySelectorAll(".rows tbody tr, .waterfall tbody tr")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const to = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
  const link = to.querySelector("a, button");
  if (link) link.focus();
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") closeDrawer();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const search = document.querySelector("[data-search]");
  if (event.key === "/" && search) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === "j") step(1);
  if (event.key === "k") step(-1);
});

/* The critical path alone: held by what stays when the picture is drawn anew. */
const toggleCritical = (button) => {
  const alone = document.getElementById("run-live").classList.toggle("only-critical");
  button.setAttribute("aria-pressed", String(alone));
};

/* Rings the hops whose answer has just come from the record. */
const ring = () => {
  for (const note of document.querySelectorAll("[data-ring]")) {
    for (const row of document.querySelectorAll(".waterfall tbody tr")) {
      if (row.dataset.turn === note.dataset.ring) row.classList.add("ringed");
    }
  }
};

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-switch]")) switchTheme();
  const critical = event.target.closest("[data-critical]");
  if (critical) toggleCritical(critical);
  if (event.target.closest("[data-close]")) closeDrawer();
  const menu = event.target.closest(".menu");
  if (menu) {
    const open = document.querySelector(".side").classList.toggle("open");
    menu.setAttribute("aria-expanded", String(open));
  }
  const asks = event.target.closest('[hx-target="#drawer"]');
  if (asks) opener = asks;
});

document.addEventListener("htmx:after:swap", () => {
  dress(document);
  ring();
  const decided = document.querySelector("[data-decided]");
  if (decided) {  // an answer was given: lists and conversations go on from it
    decided.removeAttribute("data-decided");
    document.body.dispatchEvent(new CustomEvent("decided"));
  }
  if (drawer() && drawer().childElementCount && drawer().hidden) {
    drawer().hidden = false;
    drawer().querySelector("[data-close]").focus();
  }
});

/* Closing a stream of ours aborts its reader, which nobody waits for any more: that end, known by
   the very object that says why, is no error. Whatever else is aborted is told as ever. */
const closed = new WeakSet();
document.addEventListener("htmx:sse:close", (event) => {
  const { signal } = event.detail.connection.abortController;
  if (signal.reason instanceof DOMException) closed.add(signal.reason);
});
window.addEventListener("unhandledrejection", (event) => {
  if (event.reason instanceof DOMException && closed.has(event.reason)) event.preventDefault();
});

theme(localStorage.getItem("theme"));
dress(document);
setInterval(() => dress(document), 30000);
