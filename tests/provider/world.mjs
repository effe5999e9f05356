// The parts of the provider run: certificates, provider, agent, gateway, callers.

import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { request as plain } from "node:http";
import { Agent, request as secure } from "node:https";
import { createServer as listen } from "node:net";
import { SignJWT, calculateJwkThumbprint, exportJWK, generateKeyPair } from "jose";

export const AUDIENCE = "https://gateway.example";
const PATIENCE = 30_000;

// Waits until `condition` gives something; looks again after each turn of 20 ms.
export async function until(what, condition, patience = PATIENCE) {
  const end = Date.now() + patience;
  while (Date.now() < end) {
    const found = await condition();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error(`waited ${patience / 1000} s in vain: ${what}`);
}

export async function freePort() {
  const probe = listen();
  await new Promise((done) => probe.listen(0, "127.0.0.1", done));
  const { port } = probe.address();
  await new Promise((done) => probe.close(done));
  return port;
}

// An authority, a certificate for the servers, and two for clients.
export function makeCertificates(folder) {
  const openssl = (...args) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority");
  writeFileSync(`${folder}/names`, "subjectAltName=DNS:localhost,DNS:gateway.example\n");
  for (const name of ["server", "client", "other"]) {
    openssl("req", ...key, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", `/CN=${name}`);
    openssl(
      "x509", "-req", "-in", `${name}.csr`, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
      "-days", "2", "-extfile", "names", "-out", `${name}.pem`,
    );
  }
}

export async function makeSigningKey(folder, name) {
  const { privateKey } = await generateKeyPair("ES256", { extractable: true });
  const jwk = await exportJWK(privateKey);
  jwk.kid = await calculateJwkThumbprint(jwk);
  writeFileSync(`${folder}/${name}.jwk`, JSON.stringify({ ...jwk, use: "sig", alg: "ES256" }), { mode: 0o600 });
}

// A process whose output goes to a file.
class Process {
  constructor(folder, name, command, args, env = {}) {
    const log = openSync(`${folder}/${name}.log`, "a");
    this.log = `${folder}/${name}.log`;
    this.child = spawn(command, args, { stdio: ["ignore", log, log], env: { ...process.env, ...env } });
    this.ended = new Promise((done) => this.child.once("exit", done));
  }

  async stop(signal = "SIGTERM") {
    this.child.kill(signal);
    await this.ended;
  }
}

// What is sent, in one exchange on a connection of its own.
function exchange(send, options, body) {
  return new Promise((done, failed) => {
    const asked = send({ agent: false, ...options }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", failed);
      response.on("end", () =>
        done({
          status: response.statusCode,
          headers: response.headers,
          body: Buffer.concat(parts).toString(),
        }),
      );
    });
    asked.on("error", failed);
    asked.setTimeout(20_000, () => asked.destroy(new Error("no reply within 20 s")));
    asked.end(body);
  });
}

export class Provider {
  constructor(folder, port) {
    Object.assign(this, { folder, port, issuer: `https://localhost:${port}` });
    this.ca = readFileSync(`${folder}/ca.pem`);
  }

  // Starts it, or starts it anew, with these keys; the first one signs.
  async start(...keys) {
    if (this.process) await this.kill();
    const program = new URL("provider.mjs", import.meta.url).pathname;
    const args = [program, this.folder, String(this.port), keys.join(",")];
    this.process = new Process(this.folder, "provider", process.execPath, args);
    await until("the provider", () => this.get("/counts").then(() => true, () => false));
  }

  async kill() {
    await this.process?.stop("SIGKILL");
    this.process = undefined;
  }

  get(path) {
    return exchange(secure, { port: this.port, host: "localhost", path, ca: this.ca });
  }

  async counts() {
    return JSON.parse((await this.get("/counts")).body);
  }

  // An access token by the client credentials of `client`.
  async token(client, { proof, certificate, resource = AUDIENCE, scope = "a2a.agent" } = {}) {
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      authorization: `Basic ${Buffer.from(`${client}:secret-of-${client}`).toString("base64")}`,
    };
    if (proof) headers.dpop = await proof.for("POST", `${this.issuer}/token`);
    const answer = await exchange(
      secure,
      {
        method: "POST", port: this.port, host: "localhost", path: "/token", ca: this.ca, headers,
        ...(certificate && certificateOf(this.folder, certificate)),
      },
      new URLSearchParams({ grant_type: "client_credentials", scope, resource }).toString(),
    );
    const token = JSON.parse(answer.body).access_token;
    if (!token) throw new Error(`the provider gives no token: ${answer.status} ${answer.body}`);
    return token;
  }
}

const certificateOf = (folder, name) => ({
  cert: readFileSync(`${folder}/${name}.pem`),
  key: readFileSync(`${folder}/${name}.key`),
});

// A key of a client's own, and proofs with it (RFC 9449 section 4.2).
export class Proofs {
  static async make() {
    const made = new Proofs();
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    made.key = privateKey;
    made.jwk = await exportJWK(publicKey);
    return made;
  }

  async for(method, url, token, nonce) {
    const claims = { jti: randomUUID(), htm: method, htu: url };
    if (nonce) claims.nonce = nonce;
    if (token) {
      const digest = await crypto.subtle.digest("SHA-256", Buffer.from(token));
      claims.ath = Buffer.from(digest).toString("base64url");
    }
    return new SignJWT(claims)
      .setProtectedHeader({ typ: "dpop+jwt", alg: "ES256", jwk: this.jwk })
      .setIssuedAt()
      .sign(this.key);
  }
}

// An agent that answers every message, and counts.
export class CountingAgent {
  static async start() {
    const made = new CountingAgent();
    made.executions = 0;
    made.server = createServer((request, response) => {
      if (request.method !== "POST") {
        // Its card, which the gateway asks for by itself.
        response.writeHead(404).end();
        return;
      }
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => {
        made.executions += 1;
        const { id } = JSON.parse(Buffer.concat(parts).toString());
        const message = { messageId: "a-1", role: "ROLE_AGENT", parts: [{ text: "hello" }] };
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { message } }));
      });
    });
    await new Promise((done) => made.server.listen(0, "127.0.0.1", done));
    made.port = made.server.address().port;
    return made;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }
}

export class Gateway {
  constructor(program, folder) {
    Object.assign(this, { program, folder, ca: readFileSync(`${folder}/ca.pem`) });
    this.connections = new Agent({ keepAlive: true, maxSockets: 16 });
  }

  async start(provider, agent) {
    this.port = await freePort();
    this.admin = await freePort();
    writeFileSync(`${this.folder}/policy.yaml`, POLICY);
    writeFileSync(`${this.folder}/gateway.yaml`, configuration(this, provider, agent));
    this.process = new Process(this.folder, "gateway", this.program, [
      "run", "--config", `${this.folder}/gateway.yaml`, "--grace", "2",
    ]);
    await until("the gateway", () => this.metrics().then(() => true, () => false));
  }

  stop() {
    this.connections.destroy();
    return this.process?.stop();
  }

  async metrics() {
    return (await exchange(plain, { host: "127.0.0.1", port: this.admin, path: "/metrics" })).body;
  }

  async ready() {
    return exchange(plain, { host: "127.0.0.1", port: this.admin, path: "/readyz" });
  }

  // Has the issuer's keys fetched now, as an operator does.
  async refresh() {
    const answer = await exchange(plain, {
      method: "POST", socketPath: `${this.folder}/admin.sock`, host: "localhost",
      path: "/admin/v1/issuers/real/refresh", headers: { "content-type": "application/json" },
    });
    if (answer.status !== 200) throw new Error(`no refresh: ${answer.status} ${answer.body}`);
  }

  // Sends a message under `authorization`.
  call(authorization, { proof, certificate } = {}) {
    const body = JSON.stringify({
      jsonrpc: "2.0", id: 1, method: "SendMessage",
      params: { message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "hello" }] } },
    });
    return exchange(
      secure,
      {
        method: "POST", port: this.port, host: "localhost", path: "/agents/hello", ca: this.ca,
        servername: "gateway.example", agent: certificate ? false : this.connections,
        headers: {
          host: "gateway.example", "content-type": "application/json", "a2a-version": "1.0",
          authorization, ...(proof && { dpop: proof }),
        },
        ...(certificate && certificateOf(this.folder, certificate)),
      },
      body,
    );
  }
}

// Where callers think that the agent is.
export const AGENT_URL = `${AUDIENCE}/agents/hello`;

const POLICY = `version: 1
policy: provider
rules:
  - id: hello
    allow: {agents: [hello], operations: [messages], skills: [hello]}
    grant: agent
`;

const configuration = (gateway, provider, agent) => `version: 1
listeners:
  - name: public
    bind: 127.0.0.1:${gateway.port}
    public_url: ${AUDIENCE}
    tls: {certificates: [{cert: server.pem, key: server.key}]}
    client_ca: {file: ca.pem, mode: optional}
admin: {bind: "127.0.0.1:${gateway.admin}", socket: admin.sock}
issuers:
  - name: real
    issuer: ${provider.issuer}
    audiences: [${AUDIENCE}]
    keys: {discovery: openid, ca: ca.pem, loopback: true, refresh: 60s, stale: 70s}
    dpop: {nonce: false}
    grants: [{path: [scope], form: space_string, map: {a2a.agent: agent, a2a.full: full}}]
agents:
  - name: hello
    route: {path: /agents/hello}
    publish: true
    backend: {url: "http://127.0.0.1:${agent.port}"}
    interfaces: [{binding: JSONRPC, version: "1.0"}]
    skills: [hello]
policies: {files: [policy.yaml]}
audit: {journal: {dir: journal}}
`;
