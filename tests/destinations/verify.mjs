// Verifies messages with the libraries of npm. Usage: node verify.mjs < messages.json
// It reads a list of {"secret", "body", "headers"}, and prints for each message which of the
// libraries hold it for genuine. PATH_OF_MODULES is where they are installed.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.PATH_OF_MODULES}/`);
const standard = require('standardwebhooks');
const svix = require('svix');
const libraries = {
  standardwebhooks: [standard.Webhook, standard.WebhookVerificationError],
  svix: [svix.Webhook, svix.WebhookVerificationError],
};

const verifies = ([Webhook, Refused], { secret, body, headers }) => {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
};

const messages = JSON.parse(readFileSync(0, 'utf8'));
const holds = (message) => Object.keys(libraries).filter((name) => verifies(libraries[name], message));
console.log(JSON.stringify(messages.map(holds)));
