// Legacy forms: each names what to send instead, and refusals of version 2 say their type.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  LEGACY_FORM_NAMES,
  LEGACY_FORMS,
  legacyFormGone,
  withErrorType,
} from "../../../src/core/faults/legacy-form.ts";
import { FAULTS, fault } from "../../../src/core/faults/rpc-fault.ts";

test("a form that is switched off is refused with its name and what to send instead", () => {
  for (const name of LEGACY_FORM_NAMES) {
    const refusal = legacyFormGone(name);
    assert.equal(refusal.code, "gone");
    assert.match(JSON.stringify(refusal), new RegExp(`"form":"${name}"`));
    assert.ok(JSON.stringify(refusal).includes(LEGACY_FORMS[name].instead), name);
  }
});

test("a refusal of version 2 carries its type beside the code, and loses nothing", () => {
  for (const code of Object.keys(FAULTS) as (keyof typeof FAULTS)[]) {
    const plain = fault(code, "no", { details: { kept: true } });
    const { details, ...rest } = withErrorType(plain);
    const { details: _, ...before } = plain;
    assert.deepEqual(rest, before);
    assert.equal(details?.["kept"], true);
    assert.match(String(details?.["error_type"]), /^[a-z_]+_error$/, code);
  }
  assert.equal(withErrorType(fault("forbidden", "no")).details?.["error_type"], "permission_error");
});
