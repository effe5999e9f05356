// Verifies a card with the JavaScript SDK: node cards_js.mjs CARD.json JWKS.json
// Prints `valid`, or what the SDK raised; exit code 0 or 1.

import { verifyAgentCardSignature } from '@a2a-js/sdk';
import * as jose from 'jose';
import { readFileSync } from 'node:fs';

const [card, set] = process.argv.slice(2, 4).map((file) => JSON.parse(readFileSync(file, 'utf8')));
console.debug = () => {};

const verify = verifyAgentCardSignature(async (kid) => {
  const key = set.keys.find((one) => one.kid === kid);
  if (!key) throw new Error(`no key ${kid}`);
  return jose.importJWK(key, key.alg);
});

try {
  await verify(card);
  console.log('valid');
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
  process.exitCode = 1;
}
