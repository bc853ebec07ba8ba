// Reads the CPU profiles of ended processes and lists where their time was spent. Knows nothing of
// the profiled code.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "./child.ts";

interface Node {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    readonly lineNumber: number;
  };
}

interface Profile {
  readonly nodes: readonly Node[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

const SHOWN = 40;

/** The functions with the most self time in the profiles of a directory, idle time excluded. */
export function hottest(dir: string): string {
  const selfUs = new Map<string, number>();
  for (const file of readdirSync(dir).filter((name) => name.endsWith(".cpuprofile"))) {
    const { nodes, samples, timeDeltas } = parseProfile(
      JSON.parse(readFileSync(join(dir, file), "utf8")),
    );
    const names = new Map(nodes.map((node) => [node.id, nameOf(node)]));
    for (const [at, id] of samples.entries()) {
      const name = names.get(id) ?? "?";
      if (name !== "(idle)") selfUs.set(name, (selfUs.get(name) ?? 0) + (timeDeltas[at] ?? 0));
    }
  }
  const total = [...selfUs.values()].reduce((sum, us) => sum + us, 0);
  const lines = [...selfUs].toSorted(([, a], [, b]) => b - a).slice(0, SHOWN);
  return [
    "self time of this service, share of its busy time:",
    ...lines.map(([name, us]) => `  ${((us * 100) / total).toFixed(1).padStart(5)} %  ${name}`),
  ].join("\n");
}

function nameOf({ callFrame: { functionName, url, lineNumber } }: Node): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  return url === ""
    ? name
    : `${name}  ${url.replace(/^.*\/(?=(src|node_modules)\/)/, "")}:${lineNumber + 1}`;
}

function parseProfile(value: unknown): Profile {
  if (!isRecord(value) || !Array.isArray(value["nodes"])) throw new Error("not a CPU profile");
  return value as unknown as Profile;
}
