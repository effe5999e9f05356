// Receipts for gRPC agents made with grpc-js; see receipts.mjs.
//
//   const guard = grpcReceipts(makeGate({ gateway, agent, log }));
//   const server = new Server({ interceptors: [guard.interceptor] });
//   server.addService(guard.watched(A2AService), implementation);
//
// Its interceptor comes first, and each service is added by `watched`, which keeps the bytes that
// messages were read from: a call of another service is refused.

import { ResponderBuilder, ServerInterceptingCall, ServerListenerBuilder, status } from "@grpc/grpc-js";
import { HEADER, Refused } from "./receipts.mjs";

const CODES = {
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  413: status.RESOURCE_EXHAUSTED,
  503: status.UNAVAILABLE,
};

/** `open` are whole method names that need no assertion, such as those of health checks. */
export function grpcReceipts(gate, open = []) {
  const bytes = new WeakMap();
  const free = new Set(open);

  function watched(service) {
    const methods = Object.entries(service).map(([name, method]) => {
      const requestDeserialize = (raw) => {
        const message = method.requestDeserialize(raw);
        bytes.set(message, raw);
        return message;
      };
      return [name, { ...method, requestDeserialize }];
    });
    return Object.fromEntries(methods);
  }

  async function admit(path, message, tokens) {
    const raw = bytes.get(message);
    if (raw === undefined) throw new Refused(403, "a service that is not watched");
    if (raw.length > gate.maxBody) throw new Refused(413, "the message is too large");
    // What was asserted is the frame: no compression, four bytes of length, the message.
    const head = Buffer.alloc(5);
    head.writeUInt32BE(raw.length, 1);
    const body = Buffer.concat([head, raw]);
    gate.write(await gate.judge({ method: "POST", target: path, body, tokens }));
  }

  function interceptor(method, call) {
    if (free.has(method.path)) return new ServerInterceptingCall(call);
    let tokens = [];
    const refuse = (error) => {
      const known = error instanceof Refused;
      const code = known ? CODES[error.status] : status.INTERNAL;
      call.sendStatus({ code, details: known ? error.message : "the receipt failed" });
    };
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => {
        tokens = metadata.get(HEADER);
        // A stream of requests may act before its first message; A2A has none.
        if (method.requestStream) refuse(new Refused(403, "a stream of requests"));
        else next(metadata);
      })
      .withOnReceiveMessage((message, next) => {
        admit(method.path, message, tokens).then(() => next(message), refuse);
      })
      .build();
    const responder = new ResponderBuilder().withStart((next) => next(listener)).build();
    return new ServerInterceptingCall(call, responder);
  }

  return { interceptor, watched };
}
