// Receipts for Express agents: refuses what did not come through the gateway, writes down what did.
//
//   import { receipts } from "./receipts.mjs";
//   app.use(await receipts({
//     gateway: "https://agents.example.com", agent: "my-agent", log: "receipts.jsonl",
//   }));
//
// It does what receipts.py does, whose first lines say what that is. It comes before everything that
// reads bodies, and leaves the body in `req.body`: a value where it is JSON, else a Buffer. What is
// asserted is in `req.portcullis`. gRPC is not covered. Needs `npm install jose`.

import { createHash } from "node:crypto";
import { openSync, readFileSync, writeSync } from "node:fs";
import { createLocalJWKSet, createRemoteJWKSet, errors, jwtVerify } from "jose";

const HEADER = "portcullis-assertion";
const TYPE = "portcullis-assertion+jwt";
const WELL_KNOWN = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
// Seconds: difference of clocks, longest life of an assertion.
const LEEWAY = 5;
const LIFETIME = 60;
const MAX_SEEN = 100_000;
const SAID = ["iss", "aud", "sub", "issuer", "client_id", "act", "grant", "skill", "rule"];

class Refused extends Error {
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

export async function receipts(options) {
  const { gateway, agent, log, mode = "enforce", maxBody = 10 << 20 } = options;
  if (!["enforce", "log"].includes(mode)) throw new Error("mode is `enforce` or `log`");
  const keys = keySet(options.keys ?? `${gateway}/.well-known/jwks.json`);
  const open = new Set(options.public ?? WELL_KNOWN);
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
  async function verified(request, digest) {
    const tokens = request.headersDistinct[HEADER] ?? [];
    if (tokens.length === 0) throw new Refused(401, "no assertion");
    if (tokens.length > 1) throw new Refused(403, "more than one assertion");
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
    if (said.target_sha256 !== hash(`${request.method} ${request.originalUrl}`)) {
      throw new Refused(403, "an assertion for another target");
    }
    once(said);
    return said;
  }

  return async (request, answer, next) => {
    const [path] = request.originalUrl.split("?");
    if (["GET", "HEAD"].includes(request.method) && open.has(path)) return next();
    try {
      const body = await read(request, maxBody);
      const digest = hash(body);
      let said = {};
      let assertion = "valid";
      try {
        said = await verified(request, digest);
      } catch (error) {
        if (mode === "enforce" || !(error instanceof Refused)) throw error;
        assertion = error.message;
      }
      if (body.length > 0) {
        const json = /[/+]json\b/i.test(request.headers["content-type"] ?? "");
        try {
          request.body = json ? JSON.parse(body.toString("utf8")) : body;
        } catch {
          throw new Refused(400, "the body is no JSON");
        }
      }
      request.portcullis = said;
      const receipt = {
        v: 1,
        time: new Date().toISOString(),
        request_id: said.request_id ?? null,
        jti: said.jti ?? null,
        assertion,
        ...Object.fromEntries(SAID.filter((name) => name in said).map((name) => [name, said[name]])),
        method: request.method,
        path,
        body_sha256: digest,
      };
      try {
        writeSync(file, `${JSON.stringify(receipt)}\n`);
      } catch {
        if (mode === "enforce") throw new Refused(503, "the receipt cannot be written");
      }
    } catch (error) {
      if (!(error instanceof Refused)) return next(error);
      answer.set("cache-control", "no-store");
      return answer.status(error.status).json({ error: error.message });
    }
    return next();
  };
}
