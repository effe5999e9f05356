// The official JavaScript client, told what to do line by line.
//
// Orders and answers are those of tests/agents/python/client_check.py.

import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";
import { SendMessageRequest, taskStateToJSON } from "@a2a-js/sdk";
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import { GrpcTransportFactory } from "@a2a-js/sdk/client/grpc";

const PATIENCE = 20_000;
const legacyCompat = { enabled: true };
const resolver = new DefaultAgentCardResolver({ legacyCompat });

// The card as a stranger gets it. A 0.3 client says no version, all newer ones say theirs.
async function rawCard(base, version) {
  const headers = version === "0.3" ? {} : { "A2A-Version": version };
  const answer = await fetch(`${base}/.well-known/agent-card.json`, { headers });
  if (!answer.ok) throw new Error(`card: HTTP ${answer.status}`);
  return answer.text();
}

// The card as a client sees it that knows this version and this binding alone.
async function discover(base, version, binding) {
  const raw = JSON.parse(await rawCard(base, version));
  if (version === "0.3") delete raw.supportedInterfaces;
  const card = resolver.normalizeAgentCard(raw);
  card.supportedInterfaces = card.supportedInterfaces.filter(
    (i) => i.protocolBinding === binding && i.protocolVersion.startsWith(version),
  );
  if (card.supportedInterfaces.length === 0) {
    throw new Error(`the card offers no ${binding} ${version}`);
  }
  return card;
}

// What a call's events said, gathered.
class Answer {
  kinds = [];
  texts = [];
  task = null;
  context = null;
  state = null;

  ofTask(task) {
    this.task = task.id;
    this.context = task.contextId;
    this.state = taskStateToJSON(task.status.state);
  }

  ofArtifact(artifact) {
    const texts = (artifact?.parts ?? []).filter((part) => part.content?.$case === "text");
    this.texts.push(...texts.map((part) => part.content.value));
  }

  ofResult(result) {
    if ("messageId" in result) {
      this.kinds.push("message");
      return;
    }
    this.kinds.push("task");
    this.ofTask(result);
    result.artifacts.forEach((artifact) => this.ofArtifact(artifact));
  }

  ofEvent({ payload: { $case: kind, value } }) {
    if (kind === "task" || kind === "message") {
      this.ofResult(value);
      return;
    }
    this.kinds.push(kind === "statusUpdate" ? "status_update" : "artifact_update");
    this.task = value.taskId;
    this.context = value.contextId;
    if (kind === "statusUpdate") this.state = taskStateToJSON(value.status.state);
    else this.ofArtifact(value.artifact);
  }

  told() {
    const { texts, ...rest } = this;
    return { ...rest, text: texts.join(" ") };
  }
}

function request(order) {
  const hook = order.url && { taskPushNotificationConfig: { url: order.url } };
  return SendMessageRequest.fromJSON({
    message: {
      messageId: randomUUID(),
      role: "ROLE_USER",
      parts: [{ text: order.text ?? "hi" }],
      taskId: order.task ?? "",
      contextId: order.context ?? "",
    },
    configuration: hook || undefined,
  });
}

// Cancels the task once it is watched; gives its last state as the watcher saw it.
async function watch(client, id, options) {
  const seen = new Answer();
  let canceling;
  for await (const event of client.resubscribeTask({ id, tenant: "" }, options)) {
    seen.ofEvent(event);
    canceling ??= client.cancelTask({ id, tenant: "", metadata: undefined }, options);
  }
  await canceling;
  return seen.state;
}

async function stream(order, client, options, answer) {
  let watching;
  for await (const event of client.sendMessageStream(request(order), options)) {
    answer.ofEvent(event);
    if (order.watch && answer.state === "TASK_STATE_WORKING") {
      watching ??= watch(client, answer.task, options);
    }
  }
  if (order.watch) answer.watched = (await watching) ?? null;
}

const listed = (configs) => configs.map(({ taskId: task, id, url }) => ({ task, id, url }));

async function push(order, client, options) {
  const taskId = order.task;
  const named = { tenant: "", taskId, id: order.config };
  switch (order.do) {
    case "push-create": {
      const asked = { tenant: "", taskId, id: "hook", url: order.url, token: "" };
      return listed([await client.createTaskPushNotificationConfig(asked, options)]);
    }
    case "push-get":
      return listed([await client.getTaskPushNotificationConfig(named, options)]);
    case "push-list": {
      const asked = { tenant: "", taskId, pageSize: 0, pageToken: "" };
      return listed((await client.listTaskPushNotificationConfig(asked, options)).configs);
    }
    default:
      await client.deleteTaskPushNotificationConfig(named, options);
      return [];
  }
}

// Does what the order says with the official client.
async function call(order, client, options) {
  const answer = new Answer();
  const id = order.task;
  const tenant = "";
  switch (order.do) {
    case "send":
      if (order.streaming) await stream(order, client, options, answer);
      else answer.ofResult(await client.sendMessage(request(order), options));
      break;
    case "get":
      answer.ofTask(await client.getTask({ id, tenant }, options));
      break;
    case "list": {
      const asked = { tenant, contextId: order.context, status: 0, pageToken: "" };
      const { tasks } = await client.listTasks(asked, options);
      answer.listed = tasks.map((task) => ({ task: task.id, context: task.contextId }));
      break;
    }
    case "cancel":
      answer.ofTask(await client.cancelTask({ id, tenant, metadata: undefined }, options));
      break;
    case "subscribe":
      for await (const event of client.resubscribeTask({ id, tenant }, options)) {
        answer.ofEvent(event);
      }
      break;
    case "extended": {
      const told = await client.getAgentCard(options);
      answer.listed = told.skills.map((skill) => ({ skill: skill.id }));
      answer.urls = told.supportedInterfaces.map((i) => i.url);
      break;
    }
    default:
      answer.listed = await push(order, client, options);
  }
  const { listed: told, ...rest } = answer.told();
  return told ? { ...rest, told } : rest;
}

async function obey(order) {
  if (order.do === "card") {
    const raw = await rawCard(order.base, "1.0");
    const card = resolver.normalizeAgentCard(JSON.parse(raw));
    return { raw, urls: card.supportedInterfaces.map((i) => i.url) };
  }
  const posted = [];
  const fetchImpl = (url, init) => {
    posted.push(String(url));
    return fetch(url, init);
  };
  const { base, version, binding = "JSONRPC" } = order;
  try {
    const card = await discover(base, version, binding);
    if (binding === "GRPC") posted.push(card.supportedInterfaces[0].url);
    const transports = {
      JSONRPC: () => new JsonRpcTransportFactory({ fetchImpl, legacyCompat }),
      "HTTP+JSON": () => new RestTransportFactory({ fetchImpl, legacyCompat }),
      GRPC: () => new GrpcTransportFactory({ legacyCompat }),
    };
    const factory = new ClientFactory(
      ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
        cardResolver: resolver,
        transports: [transports[binding]()],
        preferredTransports: [binding],
      }),
    );
    const client = await factory.createFromAgentCard(card);
    const bearer = order.token ? { Authorization: `Bearer ${order.token}` } : {};
    const options = { serviceParameters: bearer, signal: AbortSignal.timeout(PATIENCE) };
    const answer = await call(order, client, options);
    return { ...answer, posted };
  } catch (error) {
    return { error: { type: error.constructor.name, text: String(error.message) }, posted };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await obey(JSON.parse(line))));
}
