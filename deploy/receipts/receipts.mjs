// Receipts for Express agents: refuses what did not come through the gateway, writes down what did.
//
//   import { receipts } from "./receipts.mjs";
//   app.use(await receipts({
//     gateway: "https://agents.example.com", agent: "my-agent", log: "receipts.jsonl",
//   }));
//
// It does what receipts.py does, whose first lines say what that is. It comes before everything that
// reads bodies, and leaves the body in `req.body`: a value where it is JSON, else a Buffer. What is
// asserted is in `req.portcullis`. `gate: makeGate({...})` in place of the rest shares log and memory with
// receipts_grpc.mjs. Needs `npm install jose`.

import { createHash } from "node:crypto";
import { openSync, readFileSync, writeSync } from "node:fs";
import { createLocalJWKSet, createRemoteJWKSet, errors, jwtVerify } from "jose";

export const HEADER = "portcullis-assertion";
const TYPE = "portcullis-assertion+jwt";
// A signed JWT and nothing beside it, whatever a decoder makes of the comma that servers put between
// the values of two header lines.
const ONE_TOKEN = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;
const WELL_KNOWN = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
// Seconds: difference of clocks, longest life of an assertion.
const LEEWAY = 5;
const LIFETIME = 60;
const MAX_SEEN = 100_000;
const SAID = ["iss", "aud", "sub", "issuer", "client_id", "act", "grant", "skill", "rule"];

export class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");

function keySet(place) {
  if (!/^https?:\/\//.test(place)) return createLocalJWKSet(JSON.parse(readFileSync(place, "utf8")));
  const times = { timeoutDuration: 5_000, cooldownDuration: 30_000, cacheMaxAge: 600_000 };
  return createRemoteJWKSet(new URL(place), times);
}

// The whole body; requests of A2A are small.
function read(request, bound) {
  return new Promise((resolve, reject) => {
    const pieces = [];
    let length = 0;
    request.on("data", (piece) => {
      length += piece.length;
      if (length <= bound) pieces.push(piece);
      else pieces.length = 0;
    });
    request.on("end", () => {
      if (length > bound) reject(new Refused(413, "the body is too large"));
      else resolve(Buffer.concat(pieces));
    });
    request.on("error", () => reject(new Refused(400, "the caller left")));
  });
}

/** Judges requests, and writes receipts. Options as for `receipts`, but for `public`. */
export function makeGate(options) {
  const { gateway, agent, log, mode = "enforce", maxBody = 10 << 20 } = options;
  if (!["enforce", "log"].includes(mode)) throw new Error("mode is `enforce` or `log`");
  const keys = keySet(options.keys ?? `${gateway}/.well-known/jwks.json`);
  const seen = new Map();
  const file = openSync(log, "a", 0o600);

  // Takes each assertion once.
  function once({ jti, exp }) {
    const now = Date.now() / 1000;
    if (seen.size >= MAX_SEEN) {
      for (const [old, end] of seen) if (end + LEEWAY <= now) seen.delete(old);
    }
    if (seen.has(jti)) throw new Refused(403, "an assertion that was used before");
    if (seen.size >= MAX_SEEN) throw new Refused(503, "too many assertions to remember");
    seen.set(jti, exp);
  }

  // What the request's assertion says.
  async function verified({ method, target, tokens }, digest) {
    if (tokens.length === 0) throw new Refused(401, "no assertion");
    if (tokens.length > 1) throw new Refused(403, "more than one assertion");
    if (!ONE_TOKEN.test(tokens[0])) throw new Refused(403, "not one assertion");
    let said;
    try {
      ({ payload: said } = await jwtVerify(tokens[0], keys, {
        // One algorithm, whatever the header says.
        algorithms: ["EdDSA"],
        typ: TYPE,
        issuer: gateway,
        audience: agent,
        clockTolerance: LEEWAY,
        maxTokenAge: LIFETIME,
        requiredClaims: ["iss", "aud", "sub", "jti", "iat", "exp"],
      }));
    } catch (error) {
      const ours = error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout);
      const generic = error.constructor === errors.JOSEError;
      if (!ours || generic) throw new Refused(503, "the gateway's keys are not there");
      throw new Refused(403, `bad assertion: ${error.code}`);
    }
    if (said.aud !== agent) throw new Refused(403, "an assertion for several agents");
    if (said.exp - said.iat > LIFETIME) throw new Refused(403, "an assertion that lives too long");
    if (said.body_sha256 !== digest) throw new Refused(403, "an assertion for another body");
    if (said.target_sha256 !== hash(`${method} ${target}`)) {
      throw new Refused(403, "an assertion for another target");
    }
    once(said);
    return said;
  }

  // What there is to write about a request; throws `Refused`. `target` is path and query as they
  // came, `tokens` are all values of the header.
  async function judge({ method, target, body, tokens }) {
    const digest = hash(body);
    let said = {};
    let assertion = "valid";
    try {
      said = await verified({ method, target, tokens }, digest);
    } catch (error) {
      if (mode === "enforce" || !(error instanceof Refused)) throw error;
      assertion = error.message;
    }
    return { method, target, digest, said, assertion };
  }

  // Writes the receipt of what was judged, before the agent sees it.
  function write({ method, target, digest, said, assertion }) {
    const receipt = {
      v: 1,
      time: new Date().toISOString(),
      request_id: said.request_id ?? null,
      jti: said.jti ?? null,
      assertion,
      ...Object.fromEntries(SAID.filter((name) => name in said).map((name) => [name, said[name]])),
      method,
      path: target.split("?")[0],
      body_sha256: digest,
    };
    try {
      writeSync(file, `${JSON.stringify(receipt)}\n`);
    } catch {
      if (mode === "enforce") throw new Refused(503, "the receipt cannot be written");
    }
  }

  return { judge, write, maxBody };
}

export async function receipts(options) {
  const gate = options.gate ?? makeGate(options);
  const open = new Set(options.public ?? WELL_KNOWN);

  return async (request, answer, next) => {
    const target = request.originalUrl;
    if (["GET", "HEAD"].includes(request.method) && open.has(target.split("?")[0])) return next();
    try {
      const body = await read(request, gate.maxBody);
      const tokens = request.headersDistinct[HEADER] ?? [];
      const judged = await gate.judge({ method: request.method, target, body, tokens });
      if (body.length > 0) {
        const json = /[/+]json\b/i.test(request.headers["content-type"] ?? "");
        try {
          request.body = json ? JSON.parse(body.toString("utf8")) : body;
        } catch {
          throw new Refused(400, "the body is no JSON");
        }
      }
      request.portcullis = judged.said;
      gate.write(judged);
    } catch (error) {
      if (!(error instanceof Refused)) return next(error);
      answer.set("cache-control", "no-store");
      return answer.status(error.status).json({ error: error.message });
    }
    return next();
  };
}
