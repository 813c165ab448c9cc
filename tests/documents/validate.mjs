// Validates documents with the validators of others: of CSAF 2.0 BSI's library (its schema and all
// mandatory tests), of Thing Descriptions W3C's schema and the tests of the Thing Description
// Playground, of JSON Schemas and values Ajv. Each validator has to refuse broken documents, too.
//
//   node validate.mjs FOLDER
//
// FOLDER has the folders csaf, things, schemas and values; a schema and the list of its values have
// the same name.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as basic from '@secvisogram/csaf-validator-lib/basic.js';
import { mandatoryTest_6_1_8 } from '@secvisogram/csaf-validator-lib/mandatoryTests.js';
import validateStrict from '@secvisogram/csaf-validator-lib/validateStrict.js';
import playground from '@thing-description-playground/core';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const folder = process.argv[2];
const files = (kind) => readdirSync(join(folder, kind)).filter((name) => name.endsWith('.json')).sort();
const read = (kind, name) => JSON.parse(readFileSync(join(folder, kind, name), 'utf8'));

// Each answers a list of faults.
const csaf = async (document) => {
  const { tests, isValid } = await validateStrict([...Object.values(basic), mandatoryTest_6_1_8], document);
  const failed = tests.filter((test) => !test.isValid);
  const faults = failed.flatMap(({ name, errors }) => errors.map(({ instancePath, message }) => `${name}: ${instancePath} ${message}`));
  return isValid || faults.length > 0 ? faults : ['it is not valid'];
};

const thing = async (document) => {
  const said = [];
  // Contexts of JSON-LD would have to be fetched.
  const options = { checkDefaults: false, checkJsonLd: false, checkTmConformance: false };
  const result = await playground.tdValidator(JSON.stringify(document), (text) => said.push(String(text)), options);
  const { report, details } = result;
  const failed = Object.entries(details).filter(([, outcome]) => outcome !== null && outcome !== 'passed');
  const passed = [report.json, report.schema, report.additional].every((outcome) => outcome === 'passed');
  return passed && failed.length === 0 ? [] : [...failed.map(([name]) => name), ...said];
};

const compiled = (schema) => {
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
  addFormats(ajv);
  // An annotation that Thing Descriptions have, too.
  ajv.addKeyword({ keyword: 'unit', schemaType: 'string' });
  return ajv.compile(schema);
};

const values = (schema) => {
  const validate = compiled(schema);
  return (item) => (validate(item) ? [] : validate.errors.map(({ instancePath, message }) => `${instancePath}: ${message}`));
};

let failures = 0;
const check = (name, holds, detail = '') => {
  if (!holds) failures += 1;
  if (!holds) console.log(`FAIL ${name}: ${detail}`);
};

// valid KIND NAME FAULTS-OF DOCUMENT CHANGES: the document has no faults, and has one after each of
// the changes.
const valid = async (kind, name, faultsOf, document, changes) => {
  const faults = await faultsOf(document);
  check(`${kind}/${name}`, faults.length === 0, faults.join('; '));
  for (const [what, change] of Object.entries(changes)) {
    const broken = structuredClone(document);
    change(broken);
    check(`${kind}/${name}, broken: ${what}`, (await faultsOf(broken)).length > 0, 'the validator accepts it');
  }
};

const brokenCsaf = {
  'no title': ({ document }) => delete document.title,
  'a status that CSAF does not have': ({ document }) => (document.tracking.status = 'unfinished'),
  'a product that nothing names': ({ vulnerabilities: [one] }) => (one.product_status = { known_affected: ['PACKAGE-9999'] }),
  'a version without its history': ({ document }) => (document.tracking.version = '7.0.0'),
};
const brokenThing = {
  'no title': (thing) => delete thing.title,
  'no definition of its security': (thing) => (thing.security = ['nosec']),
  'a type that JSON does not have': (thing) => (thing.properties.temperature.type = 'celsius'),
  'an operation that nobody knows': (thing) => (thing.properties.temperature.forms[0].op = 'guess'),
};
const brokenValue = {
  'text as temperature': (item) => (item.values.temperature = 'warm'),
  'a temperature of no place on Earth': (item) => (item.values.temperature = 1e6),
  'no time': (item) => delete item.observedAt,
  'a time that is none': (item) => (item.receivedAt = 'soon'),
};

let documents = 0;
// A document takes long, so one is broken.
for (const [index, name] of files('csaf').entries()) {
  await valid('csaf', name, csaf, read('csaf', name), index === 0 ? brokenCsaf : {});
  documents += 1;
}
for (const name of files('things')) {
  await valid('things', name, thing, read('things', name), brokenThing);
  documents += 1;
}
for (const name of files('schemas')) {
  const schema = read('schemas', name);
  const faultsOf = values(schema);
  const items = read('values', name);
  check(`values/${name}`, items.length > 0, 'there are none');
  for (const [index, item] of items.entries()) {
    await valid('values', `${name}[${index}]`, async (value) => faultsOf(value), item, index === 0 ? brokenValue : {});
    documents += 1;
  }
  let refused = false;
  try {
    compiled({ ...schema, type: 'thing' });
  } catch {
    refused = true;
  }
  check(`schemas/${name}, broken: a type that JSON does not have`, refused, 'the validator accepts it');
}
console.log(`${documents} documents of ${folder}, ${failures} failures`);
process.exit(failures === 0 ? 0 : 1);
