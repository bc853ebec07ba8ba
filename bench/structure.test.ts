// The measures of the structure count what their words say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { codeLines, mirrorsIn } from "./structure.ts";

test("lines of code leave out blank lines and comments", () => {
  assert.equal(
    codeLines("// one\n\nconst a = 1; // two\n/** three\n * four */\n/* five */\nf();"),
    2,
  );
});

test("an interface with its one class or maker beside it is a mirror", () => {
  const port = "export interface Clock {\n  now(): number;\n}\n";
  assert.deepEqual(mirrorsIn(port), []);
  assert.deepEqual(mirrorsIn(`${port}class SystemClock implements Clock {}\n`), ["Clock"]);
  const maker = "export function createClock(\n  zone: string,\n): Clock {\n  return zone;\n}\n";
  assert.deepEqual(mirrorsIn(port + maker), ["Clock"]);
});
