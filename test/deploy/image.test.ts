// The stages of the Dockerfile that build, carried out from the files that they copy and nothing
// else: what the image is given is a console that its service finds, and bundles of its packages.
// Packages are those of this folder; docker is not needed.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { bundleList } from "../../src/bundled-packages.ts";

const ROOT = join(import.meta.dirname, "../..");
const DOCKERFILE = readFileSync(join(ROOT, "Dockerfile"), "utf8").replace(/\\\n/g, " ");
const BUILT = "node_modules/.console";

/** The instructions of a stage by its name; "" = the last one, which is the image. */
function stage(name: string): readonly string[] {
  const stages = DOCKERFILE.split(/^FROM /m).slice(1);
  const found = name === "" ? stages.at(-1) : stages.find((text) => text.includes(`AS ${name}\n`));
  assert.ok(found !== undefined, `the Dockerfile has no stage ${name}`);
  return found.split("\n").filter((line) => /^(COPY|RUN) /.test(line));
}

/** What a stage takes from the folder of the build: sources and target of each COPY. */
function copiesOf(name: string): readonly (readonly string[])[] {
  return stage(name)
    .filter((line) => line.startsWith("COPY ") && !line.includes("--from="))
    .map((line) => line.split(/\s+/).slice(1));
}

test("the image carries what its own stage builds from the files that it copies", (t) => {
  const app = mkdtempSync(join(tmpdir(), "svc-image-"));
  t.after(() => rmSync(app, { recursive: true, force: true }));
  const ignored = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  for (const copied of copiesOf("console")) {
    const target = copied.at(-1) ?? "";
    for (const source of copied.slice(0, -1)) {
      assert.ok(ignored.includes(`!${source}`), `.dockerignore keeps ${source} from the build`);
      const to = target.endsWith("/") ? join(app, target, source) : join(app, target);
      cpSync(join(ROOT, source), to, { recursive: true });
    }
  }
  mkdirSync(join(app, "node_modules"));
  for (const name of readdirSync(join(ROOT, "node_modules")))
    if (!name.startsWith("."))
      symlinkSync(join(ROOT, "node_modules", name), join(app, "node_modules", name));
  for (const command of stage("console").filter((line) => line.startsWith("RUN node "))) {
    const ran = spawnSync(process.execPath, command.split(/\s+/).slice(2), {
      cwd: app,
      encoding: "utf8",
    });
    assert.equal(ran.status, 0, ran.stderr);
  }
  const page = readFileSync(join(app, BUILT, "index.html"), "utf8");
  const assets = [...page.matchAll(/assets\/([\w.-]+)/g)].map(([, name]) => name ?? "");
  assert.ok(assets.length >= 2, page);
  for (const name of assets) assert.ok(existsSync(join(app, BUILT, `${name}.br`)), name);
  assert.ok(bundleList(join(app, "node_modules")) !== null, "no bundles were built");
  for (const built of [BUILT, "node_modules/.packages"])
    assert.ok(
      stage("").includes(`COPY --from=console /app/${built} ${built}`),
      `the image does not take ${built}, which the stage built`,
    );
  // Without its sources a console that is there counts as built: nothing builds it in the image.
  assert.ok(!copiesOf("").some((copied) => copied.includes("console")));
});

test("the modules that the image compiles when it is made are there", () => {
  const [command = ""] = stage("").filter((line) => line.includes("await import("));
  const names = [...command.matchAll(/"([\w/-]+)"/g)].map(([, name]) => name ?? "");
  assert.ok(names.length >= 4, command);
  for (const name of names) assert.ok(existsSync(join(ROOT, `src/${name}.ts`)), name);
});
