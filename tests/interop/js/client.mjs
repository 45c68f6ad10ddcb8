// Drives every operation of A2A with the SDK for JavaScript against a gateway, in one binding.
//
//   node client.mjs URL TOKEN BINDING RECEIVER
//
// URL is where the agent of examples/a2a_sut is, BINDING is JSONRPC or HTTP+JSON, RECEIVER a URL that
// notifications may be sent to. It prints a line for each operation and ends with 1 if one failed.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import * as a2a from "@a2a-js/sdk";
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";

console.debug = () => {}; // the SDK tells each signature that does not hold
const [url, token, binding, receiver] = process.argv.slice(2);

// Only the version with the agent's answer is looked at, in the JSON of the protocol.
const task = (value) => a2a.Task.toJSON(value);
const event = (value) => a2a.StreamResponse.toJSON(value);
const authorised = (input, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${token}`);
  return fetch(input, { ...init, headers });
};
const message = (prefix, more = {}) =>
  a2a.SendMessageRequest.fromJSON({
    message: {
      messageId: `${prefix}-${randomUUID()}`,
      role: "ROLE_USER",
      parts: [{ text: "hello" }],
      ...more,
    },
  });
const sent = async (request) => {
  const answer = await client.sendMessage(request);
  return "status" in answer ? task(answer) : a2a.Message.toJSON(answer);
};
const refused = async (work, name) => {
  await assert.rejects(work, (error) => {
    assert.equal(error.name, name, `${error.name}: ${error.message}`);
    return true;
  });
};

const options = { fetchImpl: authorised };
const factories = {
  JSONRPC: new JsonRpcTransportFactory(options),
  "HTTP+JSON": new RestTransportFactory(options),
};
const card = await new DefaultAgentCardResolver().resolve(`${url}/`); // a folder: the path of a card is relative to it
const keys = (await (await fetch(new URL("/.well-known/jwks.json", url))).json()).keys;
const client = await new ClientFactory({
  transports: [factories[binding]],
  preferredTransports: [binding],
}).createFromAgentCard(card);

const operations = {
  async "the card is verified"() {
    const find = async (kid) => keys.find((key) => key.kid === kid);
    await a2a.verifyAgentCardSignature(find)(card);
    const changed = { ...card, name: "other" };
    await assert.rejects(a2a.verifyAgentCardSignature(find)(changed));
  },
  async SendMessage() {
    const done = await sent(message("tck-complete-task"));
    assert.equal(done.status.state, "TASK_STATE_COMPLETED");
    assert.equal(done.artifacts[0].parts[0].text, "Hello from TCK");
  },
  async "SendMessage: data and files"() {
    const data = await sent(message("tck-artifact-data"));
    assert.deepEqual(data.artifacts[0].parts[0].data, { key: "value", count: 42 });
    const file = await sent(message("tck-artifact-file"));
    assert.equal(Buffer.from(file.artifacts[0].parts[0].raw, "base64").toString(), "tck");
  },
  async "SendMessage: a message"() {
    const answer = await sent(message("tck-message-response"));
    assert.equal(answer.parts[0].text, "Direct message response");
  },
  async "SendMessage: input required, then more"() {
    const waiting = await sent(message("tck-input-required"));
    assert.equal(waiting.status.state, "TASK_STATE_INPUT_REQUIRED");
    const done = await sent(message("tck-complete-task", { taskId: waiting.id }));
    assert.equal(done.status.state, "TASK_STATE_COMPLETED");
    assert.equal(done.id, waiting.id);
  },
  async SendStreamingMessage() {
    const events = [];
    for await (const each of client.sendMessageStream(message("tck-stream-artifact-chunked"))) {
      events.push(event(each));
    }
    assert.ok(events[0].task, "a stream begins with its task");
    const last = events.at(-1);
    assert.equal((last.statusUpdate ?? last.task).status.state, "TASK_STATE_COMPLETED");
    const text = events.flatMap((each) => each.artifactUpdate?.artifact.parts ?? []);
    assert.equal(text.map((part) => part.text).join(""), "chunk-1 chunk-2");
  },
  async GetTask() {
    const done = await sent(message("tck-complete-task"));
    const found = task(await client.getTask(a2a.GetTaskRequest.fromJSON({ id: done.id })));
    assert.equal(found.status.state, "TASK_STATE_COMPLETED");
    const unknown = client.getTask(a2a.GetTaskRequest.fromJSON({ id: randomUUID() }));
    await refused(unknown, "TaskNotFoundError");
  },
  async ListTasks() {
    const done = await sent(message("tck-complete-task"));
    const wanted = a2a.ListTasksRequest.fromJSON({ contextId: done.contextId, pageSize: 10 });
    const page = await client.listTasks(wanted);
    assert.deepEqual(page.tasks.map((each) => each.id), [done.id]);
    assert.equal(page.nextPageToken, "");
  },
  async CancelTask() {
    const waiting = await sent(message("tck-input-required"));
    const ended = await client.cancelTask(a2a.CancelTaskRequest.fromJSON({ id: waiting.id }));
    assert.equal(task(ended).status.state, "TASK_STATE_CANCELED");
    const again = client.cancelTask(a2a.CancelTaskRequest.fromJSON({ id: waiting.id }));
    await refused(again, "TaskNotCancelableError");
  },
  async SubscribeToTask() {
    const stream = client.sendMessageStream(message("test-resubscribe-message-id"));
    const { id } = event((await stream.next()).value).task;
    const events = [];
    const wanted = a2a.SubscribeToTaskRequest.fromJSON({ id });
    for await (const each of client.resubscribeTask(wanted)) events.push(event(each));
    assert.ok(events[0].task);
    const last = events.at(-1);
    assert.equal((last.statusUpdate ?? last.task).status.state, "TASK_STATE_COMPLETED");
    await stream.return();
  },
  async "push notification configs"() {
    const waiting = await sent(message("tck-input-required"));
    const config = { taskId: waiting.id, url: receiver, token: "t" };
    const asked = a2a.TaskPushNotificationConfig.fromJSON(config);
    const made = await client.createTaskPushNotificationConfig(asked);
    assert.equal(made.url, receiver);
    const one = { taskId: waiting.id, id: made.id };
    const get = () =>
      client.getTaskPushNotificationConfig(a2a.GetTaskPushNotificationConfigRequest.fromJSON(one));
    assert.equal((await get()).url, receiver);
    const all = a2a.ListTaskPushNotificationConfigsRequest.fromJSON({ taskId: waiting.id });
    assert.equal((await client.listTaskPushNotificationConfig(all)).configs.length, 1);
    const end = a2a.DeleteTaskPushNotificationConfigRequest.fromJSON(one);
    await client.deleteTaskPushNotificationConfig(end);
    await refused(get(), "TaskNotFoundError");
  },
  async GetExtendedAgentCard() {
    const extended = await client.getAgentCard();
    const terms = extended.capabilities.extensions.find((each) => each.uri.includes(":terms:"));
    assert.ok(terms.params.agents.some((agent) => agent.name === "tck"));
  },
};

let failed = 0;
for (const [name, work] of Object.entries(operations)) {
  try {
    await work();
    console.log(`ok    ${binding}  ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${binding}  ${name}: ${error.message}`);
  }
}
process.exit(failed ? 1 : 0);
