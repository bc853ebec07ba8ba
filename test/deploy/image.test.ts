// The stage of the Dockerfile that builds, carried out from the files that it copies and nothing
// else: what the image is given is the whole npm package. Packages are those of this folder; docker
// is not needed.
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
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const DOCKERFILE = readFileSync(join(ROOT, "Dockerfile"), "utf8").replace(/\\\n/g, " ");

/** The instructions of a stage by its name; "" = the last one, which is the image. */
function stage(name: string): readonly string[] {
  const stages = DOCKERFILE.split(/^FROM /m).slice(1);
  const found = name === "" ? stages.at(-1) : stages.find((text) => text.includes(`AS ${name}\n`));
  assert.ok(found !== undefined, `the Dockerfile has no stage ${name}`);
  return found.split("\n").filter((line) => /^(COPY|RUN) /.test(line));
}

/** Runs what a RUN says in a folder, with this Node first on the PATH. */
function run(line: string, cwd: string): void {
  const PATH = [dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const command = line.replace(/^RUN /, "");
  const ran = spawnSync("sh", ["-c", command], { cwd, env: { ...env, PATH }, encoding: "utf8" });
  assert.equal(ran.status, 0, `${command}\n${ran.stderr}`);
}

test("the image carries the package that its own stage builds from the files that it copies", (t) => {
  const app = mkdtempSync(join(tmpdir(), "svc-image-"));
  t.after(() => rmSync(app, { recursive: true, force: true }));
  const ignored = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  for (const line of stage("build").filter((each) => each.startsWith("COPY "))) {
    const copied = line.split(/\s+/).slice(1);
    const target = copied.at(-1) ?? "";
    for (const source of copied.slice(0, -1)) {
      assert.ok(ignored.includes(`!${source}`), `.dockerignore keeps ${source} from the build`);
      cpSync(join(ROOT, source), join(app, target === "./" ? source : target), { recursive: true });
    }
  }
  mkdirSync(join(app, "node_modules"));
  for (const name of readdirSync(join(ROOT, "node_modules")))
    if (!name.startsWith("."))
      symlinkSync(join(ROOT, "node_modules", name), join(app, "node_modules", name));
  const [install = "", build = "", ...more] = stage("build").filter((line) =>
    line.startsWith("RUN "),
  );
  assert.match(install, /^RUN npm install --omit=dev --ignore-scripts/);
  assert.deepEqual(more, []);
  run(build, app);
  assert.ok(stage("").includes("COPY --from=build /app/package ./"));
  const image = join(app, "package");
  // What the image does when it is made, without its users.
  const [prepare = "", compile = ""] = stage("").filter((line) => line.startsWith("RUN "));
  run(prepare.replace(/ && chown .*/, ""), image);
  run(`export XDG_CACHE_HOME=$PWD/.cache; ${compile.replace(/^RUN /, "")}`, image);
  for (const path of ["svc.yml", "dist/console/index.html", ".cache/svc/.compile-cache", ".svc"])
    assert.ok(existsSync(join(image, path)), path);
});
