// `/docs/errors`: every error code with its meaning and remedy, each with an anchor. A pure
// function of an instance's facts.
import { type ErrorEntry, errorEntries, statusText } from "./errors.ts";
import type { DocumentFacts } from "./facts.ts";
import { prose } from "./markdown.ts";

/** The document. */
export function errorsText({ hosted }: DocumentFacts): string {
  const entries = errorEntries(hosted !== null);
  const codes = [...new Set(entries.map((entry) => entry.code))];
  const sections = codes.map((code) =>
    section(
      code,
      entries.filter((entry) => entry.code === code),
    ),
  );
  return [hosted === null ? INTRODUCTION : `${INTRODUCTION}\n${MANAGEMENT}`, ...sections].join(
    "\n",
  );
}

const INTRODUCTION = `# Errors

Errors of JSON-RPC calls are JSON-RPC errors. Those of the service carry \`error.data.code\`, \`error.data.next_action\` and \`error.data.retryable\`. An error of a
provider passes unchanged, without these members and with HTTP status 200. What is retryable may be sent again unchanged after the seconds in \`Retry-After\`; in a
batch and on a WebSocket \`error.data.retry_after_ms\` tells the time.
`;

const MANAGEMENT = `The management API (\`/api/v1/…\`) answers \`{"error":{"code","message","next_action","docs_url"}}\`, with \`details\` where single fields are wrong.
`;

function section(code: string, entries: readonly ErrorEntry[]): string {
  return [`<a id="${code}"></a>\n\n## ${code}\n`, ...entries.map(paragraph)].join("\n");
}

function paragraph(entry: ErrorEntry): string {
  const { surface, status, rpcCode, retryable, meaning, nextAction } = entry;
  const where =
    surface === "json_rpc"
      ? `JSON-RPC (HTTP ${statusText(entry)}, error ${rpcCode})`
      : `Management API (HTTP ${status})`;
  return `**${where}.** ${prose(meaning)}

- Next action: ${prose(nextAction)}
- Retryable: ${retryable ? "yes, after `Retry-After`" : "no"}
`;
}
