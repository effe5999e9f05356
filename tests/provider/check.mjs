// Tokens of a real provider at the gateway: discovery, rotation under load, outage, DPoP, mTLS.
//
//   node check.mjs GATEWAY_PROGRAM
//
// Every step that expects a refusal looks at the agent's own counter. Exit code 0: all steps passed.

import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AGENT_URL, CountingAgent, Gateway, Proofs, Provider, freePort, makeCertificates, makeSigningKey, until,
} from "./world.mjs";

const [program] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "portcullis-provider-"));
const secrets = [];
let failed = 0;

makeCertificates(folder);
for (const name of ["one", "two", "three"]) await makeSigningKey(folder, name);
const provider = new Provider(folder, await freePort());
const agent = await CountingAgent.start();
const gateway = new Gateway(program, folder);

const token = async (...args) => {
  const made = await provider.token(...args);
  secrets.push(made);
  return made;
};

// Runs one step; `check` throws what is wrong.
async function step(name, check) {
  try {
    await check();
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}

function equal(found, wanted, what) {
  if (found !== wanted) throw new Error(`${what}: ${found}, wanted ${wanted}`);
}

// The status of a call, and that the agent acted on it just when that is 200.
async function expect(status, authorization, more, error) {
  const before = agent.executions;
  const answer = await gateway.call(authorization, more);
  equal(answer.status, status, `status of ${answer.body}`);
  equal(agent.executions - before, status === 200 ? 1 : 0, "executions");
  if (error) {
    const challenge = answer.headers["www-authenticate"] ?? "";
    if (!challenge.includes(`error="${error}"`)) throw new Error(`challenge ${challenge}`);
  }
  return answer;
}

// Calls with a new token each, `lanes` at a time, while `during` goes on; what was refused.
async function load(lanes, during) {
  let going = true;
  let calls = 0;
  const refused = [];
  const lane = async () => {
    while (going) {
      const authorization = `Bearer ${await token("plain")}`;
      const answer = await gateway.call(authorization);
      calls += 1;
      if (answer.status !== 200) refused.push(`${answer.status} ${answer.body}`);
    }
  };
  const running = Array.from({ length: lanes }, lane);
  try {
    await during(() => calls);
  } finally {
    going = false;
    await Promise.all(running);
  }
  if (refused.length) throw new Error(`${refused.length} of ${calls} refused, such as ${refused[0]}`);
  return calls;
}

async function run() {
  await provider.start("one");
  await gateway.start(provider, agent);

  await step("an access token of the provider is accepted (discovery, strict)", async () => {
    await until("keys", async () => (await gateway.ready()).status === 200);
    await expect(200, `Bearer ${await token("plain")}`);
  });
  await step("a token for another resource is refused", async () => {
    const other = await token("plain", { resource: "https://other.example" });
    await expect(401, `Bearer ${other}`, {}, "invalid_token");
  });
  await step("a token without a scope of ours has no grant", async () => {
    await expect(403, `Bearer ${await token("plain", { scope: "" })}`, {}, "insufficient_scope");
  });

  const old = await token("plain");
  await step("rotation under load refuses no good token", async () => {
    // Published beside the old one first, then signing: as providers rotate.
    const calls = await load(4, async (calls) => {
      await until("calls", () => calls() > 20);
      await gateway.refresh();
      await until("more calls", () => calls() > 60);
    });
    await provider.start("one", "two");
    await gateway.refresh();
    await provider.start("two", "one");
    const more = await load(4, async (calls) => until("calls", () => calls() > 60));
    await expect(200, `Bearer ${old}`);
    console.log(`     ${calls + more} calls`);
  });
  await step("an unannounced key is found by the first token that it signed", async () => {
    const before = await provider.counts().then((counts) => counts.jwks);
    await provider.start("three", "two", "one");
    const news = `Bearer ${await token("plain")}`;
    // At most one fetch for an unknown kid in 30 s; the refreshes above were asked for.
    await until("the new key", async () => (await gateway.call(news)).status === 200, 40_000);
    const fetches = (await provider.counts()).jwks;
    if (fetches > 3) throw new Error(`${fetches} fetches (before: ${before})`);
  });
  await step("a removed key dies with the next fetch, for remembered tokens too", async () => {
    await expect(200, `Bearer ${old}`);
    await provider.start("three", "two");
    await gateway.refresh();
    await expect(401, `Bearer ${old}`, {}, "invalid_token");
  });

  await step("DPoP: a bound token needs a fresh proof by its key", async () => {
    const proofs = await Proofs.make();
    const bound = await token("dpop", { proof: proofs });
    const proof = await proofs.for("POST", AGENT_URL, bound);
    await expect(200, `DPoP ${bound}`, { proof });
    await expect(401, `DPoP ${bound}`, { proof }, "invalid_dpop_proof");
    await expect(401, `Bearer ${bound}`, {}, "invalid_token");
    const fresh = () => proofs.for("POST", AGENT_URL, bound);
    await expect(401, `Bearer ${bound}`, { proof: await fresh() }, "invalid_token");
    const stranger = await (await Proofs.make()).for("POST", AGENT_URL, bound);
    await expect(401, `DPoP ${bound}`, { proof: stranger }, "invalid_token");
    const elsewhere = await proofs.for("POST", `${AGENT_URL}/other`, bound);
    await expect(401, `DPoP ${bound}`, { proof: elsewhere }, "invalid_dpop_proof");
    await expect(200, `DPoP ${bound}`, { proof: await fresh() });
  });
  await step("mTLS: a bound token needs its certificate on the connection", async () => {
    const bound = await token("mtls", { certificate: "client" });
    await expect(200, `Bearer ${bound}`, { certificate: "client" });
    await expect(401, `Bearer ${bound}`, { certificate: "other" }, "invalid_token");
    await expect(401, `Bearer ${bound}`, {}, "invalid_token");
  });

  await step("an outage: known keys serve, until they are stale; then 503, and back", async () => {
    const known = `Bearer ${await token("plain")}`;
    await expect(200, known);
    await provider.kill();
    await expect(200, known);
    await until("the bound", async () => (await gateway.call(known)).status === 503, 130_000);
    const answer = await expect(503, known);
    if (!answer.headers["retry-after"]) throw new Error("no Retry-After");
    const { status, body } = await gateway.ready();
    if (status === 200 || !body.includes("real")) throw new Error(`ready: ${status} ${body}`);
    await provider.start("three", "two");
    await until("recovery", async () => (await gateway.call(known)).status === 200, 130_000);
  });

  await step("no token in what the gateway wrote", async () => {
    const metrics = await gateway.metrics();
    await gateway.stop();
    const files = readdirSync(join(folder, "journal"), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const places = files.map((entry) => join(entry.parentPath, entry.name));
    const written = [metrics, ...[...places, gateway.process.log].map((path) => readFileSync(path, "latin1"))];
    for (const secret of secrets) {
      for (const part of secret.split(".").slice(1)) {
        if (written.some((text) => text.includes(part))) throw new Error("a part of a token was written");
      }
    }
  });
}

try {
  await run();
} catch (error) {
  failed += 1;
  console.log(`FAIL ${error.stack}`);
} finally {
  await gateway.stop();
  await provider.kill();
  await agent.stop();
  if (failed) {
    for (const log of ["gateway.log", "provider.log"]) {
      console.log(`-- ${log}\n${readFileSync(join(folder, log), "utf8").slice(-4000)}`);
    }
  }
  rmSync(folder, { recursive: true, force: true });
}
console.log(failed ? `${failed} steps failed` : "all steps passed");
process.exit(failed ? 1 : 0);
