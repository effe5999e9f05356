// A hello-world agent made with the official JavaScript SDK, with counters and a log of its own.
//
// Serves JSON-RPC, HTTP+JSON and gRPC in 1.0; with `--legacy` in 0.3 as well. Prints one line of JSON
// with its ports, then serves until it is stopped. With `--receipts GATEWAY AGENT LOG [KEYS MODE]` it takes calls
// with the gateway's assertion only, by deploy/receipts, which the suite puts beside `jose`. `/counters` and `/executions` are those of
// tests/agents/python/ledger.py.

import express from "express";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import {
  AgentCard,
  AGENT_CARD_PATH,
  TaskStatusUpdateEvent,
  TaskArtifactUpdateEvent,
} from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  InMemoryTaskStore,
} from "@a2a-js/sdk/server";
import {
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
  UserBuilder,
} from "@a2a-js/sdk/server/express";
import { A2AService, grpcService } from "@a2a-js/sdk/server/grpc";
import { LegacyA2AService, legacyGrpcService } from "@a2a-js/sdk/compat/v0_3/server/grpc";

const GREETING = "hello from the js agent";
const OPERATIONS = {
  sendMessage: "SendMessage",
  sendMessageStream: "SendStreamingMessage",
  getTask: "GetTask",
  listTasks: "ListTasks",
  cancelTask: "CancelTask",
  resubscribe: "SubscribeToTask",
  createTaskPushNotificationConfig: "CreateTaskPushNotificationConfig",
  getTaskPushNotificationConfig: "GetTaskPushNotificationConfig",
  listTaskPushNotificationConfigs: "ListTaskPushNotificationConfigs",
  deleteTaskPushNotificationConfig: "DeleteTaskPushNotificationConfig",
  getAuthenticatedExtendedAgentCard: "GetExtendedAgentCard",
};

const legacy = process.argv.includes("--legacy");
const counters = { requests: 0, executions: 0, cards: 0 };
const log = [];

// One entry; absent and empty values are left out, since parsers differ in that alone.
function note(op, what) {
  const said = Object.entries(what).filter(([, value]) => value && value.length !== 0);
  log.push({ op, ...Object.fromEntries(said) });
}

// The names in a request message.
function describe(params) {
  const { message } = params;
  if (message === undefined) {
    const { taskId, id, contextId: context, url: webhook } = params;
    return { task: taskId || id, context, webhook };
  }
  return {
    task: message.taskId,
    context: message.contextId,
    references: message.referenceTaskIds,
    skill: message.metadata?.skillId,
    webhook: params.configuration?.taskPushNotificationConfig?.url,
    tenant: params.tenant,
  };
}

// Greets; `ask` and `wait` do what they do in tests/agents/python/hello_agent.py.
class Hello {
  waiting = new Map();

  async execute({ taskId, contextId, task, userMessage }, bus) {
    counters.executions += 1;
    note("execute", { task: taskId, context: contextId });
    const status = (state) => ({ state, timestamp: new Date().toISOString() });
    const says = (state) => {
      const update = { taskId, contextId, status: status(state) };
      bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(update)));
    };
    const submitted = { state: 1, timestamp: new Date().toISOString(), message: undefined };
    const first = task ?? {
      id: taskId,
      contextId,
      status: submitted,
      artifacts: [],
      history: [userMessage],
      metadata: {},
    };
    // This SDK wants the task first, whenever an executor runs.
    bus.publish(AgentEvent.task(first));
    says("TASK_STATE_WORKING");
    const text = userMessage.parts[0]?.content?.value ?? "";
    if (text.startsWith("wait")) {
      await new Promise((canceled) => this.waiting.set(taskId, canceled));
      says("TASK_STATE_CANCELED");
    } else if (text.startsWith("ask")) {
      says("TASK_STATE_INPUT_REQUIRED");
    } else {
      const artifact = { artifactId: "greeting", name: "greeting", parts: [{ text: GREETING }] };
      const update = { taskId, contextId, artifact, append: false, lastChunk: true };
      bus.publish(AgentEvent.artifactUpdate(TaskArtifactUpdateEvent.fromJSON(update)));
      says("TASK_STATE_COMPLETED");
    }
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    note("cancel", { task: taskId });
    const canceled = this.waiting.get(taskId);
    if (canceled) {
      this.waiting.delete(taskId);
      canceled();
      return;
    }
    const update = { taskId, status: { state: "TASK_STATE_CANCELED" } };
    bus.publish(AgentEvent.statusUpdate(TaskStatusUpdateEvent.fromJSON(update)));
    bus.finished();
  }
}

// The handler, with every call in the log.
function watched(handler) {
  return new Proxy(handler, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return value;
      const operation = OPERATIONS[name];
      return (...given) => {
        if (operation) note(operation, describe(given[0] ?? {}));
        return value.apply(target, given);
      };
    },
  });
}

function card(base, rpcPort) {
  const places = [
    ["JSONRPC", `${base}/a2a/jsonrpc`],
    ["HTTP+JSON", `${base}/a2a/rest`],
    ["GRPC", `127.0.0.1:${rpcPort}`],
  ];
  const versions = legacy ? ["1.0", "0.3"] : ["1.0"];
  return AgentCard.fromJSON({
    name: "Hello",
    description: "Says hello",
    version: "1.0.0",
    capabilities: { streaming: true, pushNotifications: true, extendedAgentCard: true },
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    supportedInterfaces: places.flatMap(([protocolBinding, url]) =>
      versions.map((protocolVersion) => ({ url, protocolBinding, protocolVersion })),
    ),
    skills: [{ id: "hello", name: "hello", description: "Says hello", tags: ["hello"] }],
  });
}

const guard = process.argv.indexOf("--receipts");
let [overHttp, overRpc] = [null, null];
if (guard !== -1) {
  const [gateway, agent, log, keys, mode] = process.argv.slice(guard + 1);
  const { makeGate, receipts } = await import("./node_modules/.portcullis/receipts.mjs");
  const { grpcReceipts } = await import("./node_modules/.portcullis/receipts_grpc.mjs");
  const gate = makeGate({ gateway, agent, log, keys, mode });
  const open = ["/.well-known/agent-card.json", "/counters", "/executions"];
  [overHttp, overRpc] = [await receipts({ gate, public: open }), grpcReceipts(gate)];
}
const app = express();
const http = app.listen(0, "127.0.0.1");
const rpc = new Server({
  interceptors: [
    ...(overRpc ? [overRpc.interceptor] : []),
    (_method, call) => {
      counters.requests += 1;
      return call;
    },
  ],
});
await new Promise((ready) => http.once("listening", ready));
const rpcPort = await new Promise((ready, failed) =>
  rpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
    error ? failed(error) : ready(port),
  ),
);
const { port } = http.address();
const agentCard = card(`http://127.0.0.1:${port}`, rpcPort);
// A sender that sends nothing: what a webhook would get stays here.
const requestHandler = watched(
  new DefaultRequestHandler(
    agentCard,
    new InMemoryTaskStore(),
    new Hello(),
    undefined,
    new InMemoryPushNotificationStore(),
    { send: async () => {} },
    agentCard,
  ),
);
const options = {
  requestHandler,
  userBuilder: UserBuilder.noAuthentication,
  legacyCompat: { enabled: legacy },
};
if (overHttp) app.use(overHttp);
app.use("/a2a", (_request, _answer, next) => {
  counters.requests += 1;
  next();
});
app.get("/counters", (_request, answer) => answer.json(counters));
app.get("/executions", (request, answer) => {
  const entries = log.slice(Number(request.query.after ?? 0));
  answer.json({ requests: counters.requests, noted: log.length, entries });
});
app.use(`/${AGENT_CARD_PATH}`, (_request, _answer, next) => {
  counters.cards += 1;
  next();
});
app.use(
  `/${AGENT_CARD_PATH}`,
  agentCardHandler({ agentCardProvider: requestHandler, legacyCompat: { enabled: legacy } }),
);
app.use("/a2a/jsonrpc", jsonRpcHandler(options));
app.use("/a2a/rest", restHandler(options));
const { userBuilder } = options;
const service = overRpc ? overRpc.watched(A2AService) : A2AService;
rpc.addService(service, grpcService({ requestHandler, userBuilder }));
if (legacy) rpc.addService(LegacyA2AService, legacyGrpcService({ requestHandler, userBuilder }));
console.log(JSON.stringify({ port, grpc: rpcPort }));
