/* A conversation as it goes on: what is said is sent to the API, and drawn as it is answered.
   Whatever comes in is text; parts of pages come from this gateway, written by its templates. */
"use strict";

const thread = document.getElementById("thread");
const answer = document.getElementById("answer");
const form = document.getElementById("say");
const stop = document.getElementById("stop");
const frames = document.getElementById("frames");
const MOST_FRAMES = 200;
const MOST_PAUSE = 10; // seconds between two tries
const FINAL = new Set([401, 403, 404, 410]); // refused, and so it will be when asked again

const csrf = () => JSON.parse(document.body.getAttribute("hx-headers:inherited"))["x-csrf-token"];
const here = () => thread.dataset.conversation;

const make = (name, kind, text) => {
  const node = document.createElement(name);
  if (kind) node.className = kind;
  if (text) node.textContent = text;
  return node;
};

/* The events of a stream, one after the other; the data of each is text. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const event = { name: "message", data: "" };
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) event.name = line.slice(7);
        if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      rest = rest.slice(end + 2);
      if (event.data) yield event;
    }
  }
}

/* Who speaks, and the place for the words. */
const speaker = (name, kind) => {
  const article = make("article", `said ${kind}`);
  const bubble = make("div", kind === "user" ? "asked" : "answered");
  const head = make("p", "quiet");
  head.append(kind === "user" ? "You" : make("strong", "", name));
  bubble.append(head);
  article.append(bubble);
  answer.append(article);
  return bubble;
};

class Drawn {
  constructor() {
    this.tools = new Map();
    this.bubble = null;
    this.words = null;
  }
  get place() {
    if (!this.bubble) this.bubble = speaker("Answer", "assistant");
    return this.bubble;
  }
  "text-delta"({ delta }) {
    if (!this.words) this.place.append((this.words = make("pre", "words")));
    this.words.append(delta);
  }
  "tool-call"({ id, name, label }) {
    const row = make("p", "tool", `${label || name}… `);
    row.append(make("span", "quiet", "running"));
    this.tools.set(id, { row, began: performance.now() });
    this.place.append(row);
    this.words = null;
  }
  "tool-result"({ id, status }) {
    const tool = this.tools.get(id);
    if (!tool) return;
    const took = ((performance.now() - tool.began) / 1000).toFixed(1);
    tool.row.lastChild.textContent = status === "ok" ? `✓ ${took} s` : `✗ ${status}`;
  }
  "approval-request"({ request_id: id }) {
    const card = make("div", "");
    card.dataset.ask = id;
    this.place.parentElement.append(card);
    return part(card, `/console/inbox/${encodeURIComponent(id)}/card`);
  }
  "approval-result"({ request_id: id, decision, by }) {
    const card = [...answer.querySelectorAll("[data-ask]")].find((one) => one.dataset.ask === id);
    if (card) return part(card, `/console/inbox/${encodeURIComponent(id)}/card`);
    this.place.append(make("p", "tool", `${decision} by ${by}`));
  }
  relay({ author, code }) {
    this.bubble = speaker(author, "assistant");
    if (code) this.bubble.append(make("p", "state failed", code));
    this.words = null;
  }
  error({ code, message, hint }) {
    this.place.append(make("p", "state failed", code));
    say(`${message} ${hint || ""}`);
  }
}

/* A part of a page, written by a template of this gateway. */
const part = async (place, path) => {
  const reply = await fetch(path, { headers: { "hx-request": "true" } });
  if (!reply.ok) return;
  place.innerHTML = await reply.text();
  htmx.process(place);
  dress(place);
};

const busy = (is) => {
  answer.setAttribute("aria-busy", String(is));
  if (!form) return;
  form.querySelector("button:not([type])").disabled = is;
  stop.hidden = !is;
};

const note = ({ name, data }) => {
  frames.append(`${name} ${JSON.stringify(data)}\n`);
  while (frames.childNodes.length > MOST_FRAMES) frames.firstChild.remove();
};

const arrived = (id) => {
  if (!id || id === here()) return;
  thread.dataset.conversation = id;
  history.replaceState(null, "", `/console/chat/${encodeURIComponent(id)}`);
};

const later = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

const reread = async () => {
  if (!here()) return;
  await part(thread, `/console/chat/${encodeURIComponent(here())}/thread`);
  answer.replaceChildren();
  attend();
};

/* Ask for a stream, and draw it until its end; `begun` is told that there is one. */
const draw = async (method, path, { page, conversation, begun } = {}) => {
  const headers = { "x-csrf-token": csrf() };
  if (page) headers["content-type"] = "application/json";
  if (conversation) headers["x-conversation-id"] = conversation;
  busy(true);
  try {
    const reply = await fetch(path, { method, headers, body: page && JSON.stringify(page) });
    arrived(reply.headers.get("x-conversation-id"));
    if (!reply.ok) {
      const { code, message, hint } = (({ error, ...rest }) => ({ ...rest, ...error }))(await reply.json());
      say(`${message} ${hint || ""} (${code})`);
      return FINAL.has(reply.status) ? "refused" : "later";
    }
    if (begun) begun();
    const drawn = new Drawn();
    for await (const { name, data: text } of eventsOf(reply.body)) {
      const data = JSON.parse(text);
      note({ name, data });
      if (name in Drawn.prototype) await drawn[name](data);
    }
    return "read";
  } catch (broken) {
    if (broken.name !== "AbortError") say("The stream broke off; what was said is kept.");
    return "broken";
  } finally {
    busy(false);
  }
};

const send = async () => {
  const content = form.elements.content.value;
  if (!content.trim()) return;
  say("");
  speaker("", "user").append(make("pre", "words", content));
  form.elements.content.value = "";
  const page = { content, client_message_id: crypto.randomUUID() };
  if (form.elements.agent.value) page.agent = form.elements.agent.value;
  await draw("POST", "/message", { page, conversation: here() });
  await reread();
};

/* Read the last answer along: it goes on after an approval, or was being given when this opened. */
let pause = 0;  // seconds before it is tried again
const follow = async () => {
  if (!here() || answer.getAttribute("aria-busy") === "true") return;
  watching.abort();
  const shown = [...thread.querySelectorAll("article")];
  const asked = shown.findLastIndex((one) => one.classList.contains("user"));
  const begun = () => {
    for (const one of shown.slice(asked + 1)) one.hidden = true;
  };
  const came = await draw("GET", `/conversations/${encodeURIComponent(here())}/answer`, { begun });
  pause = came === "refused" ? Infinity : Math.min(pause + 1, MOST_PAUSE);
  await reread();
};

/* What the thread says is not over: an answer that goes on is read along, and the run of one that
   waits is watched, since somebody may answer it elsewhere: one at most, and none while nobody can
   see the page, since a browser has few connections for all its pages of one host. */
let watching = new AbortController();
const attend = () => {
  watching.abort();
  watching = new AbortController();
  if (document.hidden) return;
  const { signal } = watching;
  if (thread.querySelector("[data-goes-on]")) {
    if (pause < Infinity) later(pause).then(() => signal.aborted || follow());
    return;
  }
  pause = 0;
  const waits = [...thread.querySelectorAll("[data-waits]")].pop();
  if (waits) watch(waits, signal);
};

let told = ""; // what was watched when something had changed
const watch = async (one, signal) => {
  const { waits: run, mark } = one.dataset;
  const path = `/console/live/runs/${encodeURIComponent(run)}?mark=${encodeURIComponent(mark)}`;
  const isLast = one === [...thread.querySelectorAll("article")].pop();
  if (path === told) await later(MOST_PAUSE);  // it was read again, and is as it was
  for (let tried = 1; !signal.aborted; tried = Math.min(tried + 1, MOST_PAUSE)) {
    try {
      const reply = await fetch(path, { signal });
      if (FINAL.has(reply.status)) return;
      if (reply.ok) {
        for await (const { name } of eventsOf(reply.body)) {
          if (name === "message") continue;  // the picture of the run is for its own page
          if (signal.aborted) return;
          told = path;
          await (isLast ? follow() : reread());
          return;
        }
      }
    } catch {
      if (signal.aborted) return;  // the page went on to something else
    }
    await later(tried);
  }
};

const again = async (what) => {
  await draw("POST", `/conversations/${encodeURIComponent(here())}/${what}`);
  await reread();
};

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
  });
  stop.addEventListener("click", async () => {
    const path = `/console/chat/${encodeURIComponent(here())}/stop`;
    const reply = await fetch(path, { method: "POST", headers: { "x-csrf-token": csrf() } });
    say(reply.ok ? "The answer is being ended." : "It could not be ended.");
  });
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-again]");
  if (button) again(button.dataset.again);
});
/* What is shown has been seen. */
if ("unread" in thread.dataset) {
  fetch(`/conversations/${encodeURIComponent(here())}`, {
    method: "PATCH",
    headers: { "x-csrf-token": csrf(), "content-type": "application/json" },
    body: JSON.stringify({ unread: false }),
  });
}
document.body.addEventListener("decided", () => {
  pause = 0;
  follow();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) watching.abort();
  else if (answer.getAttribute("aria-busy") !== "true") attend();
});
attend();
