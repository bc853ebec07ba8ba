// The contract as a table: complete, unambiguous, and binding for handlers before anything runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { API_FAULTS, apiFault } from "../../src/core/faults/api-fault.ts";
import { createRoutes } from "../../src/web/api/routes.ts";
import { type CONTRACT, OPERATIONS } from "../../src/web/contract/contract.ts";
import { type ApiHandler, isIdempotent } from "../../src/web/contract/operation.ts";

test("no two operations share a method and path, and every path parameter has a schema", () => {
  assert.equal(new Set(OPERATIONS.map((it) => `${it.method} ${it.path}`)).size, OPERATIONS.length);
  for (const { id, path, params } of OPERATIONS) {
    const named = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name);
    assert.deepEqual(Object.keys(params?.shape ?? {}), named, id);
    assert.match(id, /^[a-z][A-Za-z]+$/);
  }
});

test("every operation says what it does, who may ask and what it answers", () => {
  for (const it of OPERATIONS) {
    assert.match(it.summary, /^[A-Z].*[^.]$/, it.id);
    assert.match(it.description, /\.$/, it.id);
    assert.ok(it.auth.length > 0, it.id);
    assert.ok(it.method !== "GET" || (it.body === undefined && isIdempotent(it)), it.id);
    assert.equal(new Set(it.faults).size, it.faults.length, `${it.id} names a fault twice`);
    if (it.servedBy !== "pages")
      assert.ok(it.faults.includes("internal") && it.faults.includes("unavailable"), it.id);
    if (it.body !== undefined)
      assert.ok(it.faults.includes("invalid_field") && it.faults.includes("body_too_large"), it.id);
  }
  const used = new Set<string>(OPERATIONS.flatMap((it) => it.faults));
  assert.deepEqual(
    Object.keys(API_FAULTS).filter((it) => !used.has(it)),
    ["method_not_allowed", "gone"],
    "the other codes are answered by some operation",
  );
});

test("every schema renders as JSON Schema, and no two components share an id", () => {
  const components = new Map<string, string>();
  for (const it of OPERATIONS) {
    const schemas = [
      it.params,
      it.query,
      it.body,
      ...Object.values(it.answers).map((answer) => answer.schema),
    ];
    for (const schema of schemas) {
      if (schema === undefined || schema === null) continue;
      const { $defs = {} } = z.toJSONSchema(schema, { io: "input" });
      for (const [id, definition] of Object.entries($defs)) {
        const text = JSON.stringify(definition);
        assert.equal(components.get(id) ?? text, text, `two components have the id ${id}`);
        components.set(id, text);
      }
    }
  }
  assert.ok(components.size > 10);
});

test("fixed segments win over parameters, and prototypes have no routes", () => {
  const routeOf = createRoutes(OPERATIONS);
  assert.equal(routeOf("/api/v1/keys/current")?.operations.get("GET")?.id, "getCurrentKey");
  assert.equal(routeOf("/api/v1/keys/current/")?.operations.get("GET")?.id, "getCurrentKey");
  assert.deepEqual(routeOf("/api/v1/keys/key_1%2f2")?.params, { id: "key_1/2" });
  assert.equal(routeOf("/api/v1/keys/%ff")?.params, null);
  for (const path of [
    "",
    "/",
    "//",
    "/api/v1/keys//",
    "/api/v1/keys//rotate",
    "/__proto__",
    "/constructor",
    "/api/v1/accounts",
  ])
    assert.equal(routeOf(path), undefined, path);
});

test("a handler that answers what its row does not declare does not compile", () => {
  type Rotate = typeof CONTRACT.rotateKey;
  type Delete = typeof CONTRACT.deleteKey;
  type Current = typeof CONTRACT.getCurrentKey;
  const handlers = [
    // @ts-expect-error: key_limit is not declared for it
    (() => apiFault("key_limit", "no")) satisfies ApiHandler<Rotate>,
    // @ts-expect-error: 201 is not declared for it
    (() => ({ kind: "answer", status: 201, body: null })) satisfies ApiHandler<Delete>,
    // @ts-expect-error: a body is not declared for it
    (() => ({ kind: "answer", status: 204, body: {} })) satisfies ApiHandler<Delete>,
    // @ts-expect-error: its caller has a key, and is no agent
    (({ caller }) => apiFault("unauthorized", caller.agent.id)) satisfies ApiHandler<Current>,
    (() => apiFault("not_found", "no")) satisfies ApiHandler<Rotate>,
    (() => ({ kind: "answer", status: 204, body: null })) satisfies ApiHandler<Delete>,
  ];
  assert.equal(handlers.length, 6);
});
