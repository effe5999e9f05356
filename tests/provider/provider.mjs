// An OpenID provider of the real kind, with everything that tokens for agents need: client
// credentials, JWT access tokens for a resource (RFC 9068, 8707), DPoP (RFC 9449), tokens bound to
// a client certificate (RFC 8705).
//
//   node provider.mjs FOLDER PORT SIGNING_KEY[,PUBLISHED_KEY...]
//
// FOLDER has server.pem, server.key, ca.pem, and the keys as NAME.jwk. It prints `ready` when it
// listens, and counts what is asked for at /counts.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import Provider from "oidc-provider";

const [folder, port, keys] = process.argv.slice(2);
const read = (name) => readFileSync(`${folder}/${name}`, "utf8");
const issuer = `https://localhost:${port}`;
const audience = "https://gateway.example";

const client = (id, more = {}) => ({
  client_id: id,
  client_secret: `secret-of-${id}`,
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  id_token_signed_response_alg: "ES256",
  ...more,
});

const provider = new Provider(issuer, {
  clients: [
    client("plain"),
    client("dpop", { dpop_bound_access_tokens: true }),
    client("mtls", { tls_client_certificate_bound_access_tokens: true }),
  ],
  scopes: ["a2a.agent", "a2a.full"],
  // The first key signs.
  jwks: { keys: keys.split(",").map((name) => JSON.parse(read(`${name}.jwk`))) },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    dPoP: { enabled: true },
    mTLS: {
      enabled: true,
      certificateBoundAccessTokens: true,
      getCertificate: (context) => context.socket.getPeerX509Certificate(),
    },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        audience: resource,
        scope: "a2a.agent a2a.full",
        accessTokenTTL: 600,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
      defaultResource: () => audience,
    },
  },
});

const counts = { jwks: 0, discovery: 0 };
const serve = provider.callback();
const server = createServer(
  {
    cert: read("server.pem"),
    key: read("server.key"),
    ca: read("ca.pem"),
    requestCert: true,
    rejectUnauthorized: false,
  },
  (request, response) => {
    if (request.url === "/counts") {
      response.end(JSON.stringify(counts));
      return;
    }
    if (request.url === "/jwks") counts.jwks += 1;
    if (request.url.startsWith("/.well-known/")) counts.discovery += 1;
    serve(request, response);
  },
);
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
