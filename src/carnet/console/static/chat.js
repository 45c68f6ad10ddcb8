/* A conversation as it goes on: what is said is sent to the API, and drawn as it is answered.
   Whatever comes in is text; parts of pages come from this gateway, written by its templates. */
"use strict";

const thread = document.getElementById("thread");
const answer = document.getElementById("answer");
const form = document.getElementById("say");
const stop = document.getElementById("stop");
const frames = document.getElementById("frames");
const MOST_FRAMES = 200;

const csrf = () => JSON.parse(document.body.getAttribute("hx-headers:inherited"))["x-csrf-token"];
const here = () => thread.dataset.conversation;

const make = (name, kind, text) => {
  const node = document.createElement(name);
  if (kind) node.className = kind;
  if (text) node.textContent = text;
  return node;
};

/* The events of a stream, one after the other. */
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
      if (event.data) yield { name: event.name, data: JSON.parse(event.data) };
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

const reread = async () => {
  if (!here()) return;
  await part(thread, `/console/chat/${encodeURIComponent(here())}/thread`);
  answer.replaceChildren();
};

/* Ask for a stream, and draw it until its end. True if there was one. */
const draw = async (method, path, { page, conversation } = {}) => {
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
      return reply.status === 409 ? "busy" : "refused";
    }
    const drawn = new Drawn();
    for await (const event of eventsOf(reply.body)) {
      note(event);
      if (event.name in Drawn.prototype) await drawn[event.name](event.data);
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
const follow = async () => {
  if (!here() || answer.getAttribute("aria-busy") === "true") return;
  const path = `/conversations/${encodeURIComponent(here())}/answer`;
  const shown = [...thread.querySelectorAll("article")];
  const asked = shown.findLastIndex((one) => one.classList.contains("user"));
  for (const one of shown.slice(asked + 1)) one.hidden = true;
  for (let tried = 0; tried < 30; tried += 1) {
    if ((await draw("GET", path)) !== "busy") break;
    await new Promise((later) => setTimeout(later, 1000));
  }
  await reread();
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
document.body.addEventListener("decided", follow);
if ("answering" in thread.dataset) follow();
