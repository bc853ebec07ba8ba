// `npm test -- test/clients/installs.ts`: what SKILL.md says to install comes from the npm registry
// into an empty folder, and pays. No part of `npm test`: it unpacks tens of thousands of files of
// others, which change with the registry and not with us.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { MPPX_COMMAND } from "../../src/core/billing/payment.ts";
import { startPaidService } from "../fakes/paid-service.ts";
import { inFolder, programsIn, runProgram } from "../fakes/skill-programs.ts";

const NPM_OPTIONS = ["--no-audit", "--no-fund", "--fetch-retry-mintimeout=1000"];

test("what SKILL.md says to install can be installed by itself, and pays", async (t) => {
  const fixture = await startPaidService(({ rails }) => [rails.tempo, rails.evm, rails.session]);
  t.after(() => fixture.close());
  const { text } = await fixture.service.get("/SKILL.md");
  // Of several programs that need the same packages, the last.
  const programs = new Map(programsIn(text).map((it) => [it.packages.join(" "), it]));
  assert.equal(programs.size, 2);
  await inFolder(async (cache) => {
    const env = { ...process.env, npm_config_cache: cache };
    try {
      const told = await Promise.all(
        [...programs.values()].map((program) =>
          inFolder(async (cwd) => {
            const words = ["install", ...NPM_OPTIONS, ...program.packages];
            await promisify(execFile)("npm", words, { cwd, env });
            return runProgram(program, cwd, fixture.chains);
          }),
        ),
      );
      assert.deepEqual(told.map((it) => it.slice(0, 3)).sort(), ["200", "201"], told.join("\n"));
      const [npx = "", ...words] = MPPX_COMMAND.split(" ");
      const { stdout } = await promisify(execFile)(npx, [...words, "--version"], {
        cwd: cache,
        env,
      });
      assert.match(MPPX_COMMAND, new RegExp(`mppx@${stdout.trim()} `));
    } catch (error) {
      if (!isOffline(error)) throw error;
      t.skip("NOT TESTED: the npm registry cannot be reached");
    }
  });
});

/** Whether npm failed because it found no way to the registry. */
function isOffline(error: unknown): boolean {
  return /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT)\b/.test(
    error instanceof Error && "stderr" in error ? String(error.stderr) : "",
  );
}
