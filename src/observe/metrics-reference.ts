// The metrics reference as Markdown, rendered from the table of metrics.
import { METRICS, type Metric } from "./metrics.ts";

const INTRODUCTION = `# Metrics

Rendered from the table in \`src/observe/metrics.ts\`; change it there and run \`npm run docs\`.

\`GET /metrics\` answers in the text format of Prometheus. A metric of payments or of pay-per-call is there only where those are configured, and a value that is not known has no series: it is never 0. Labels are names of the configuration, methods of the method table, and the constants of the code.

The label \`provider\` is a public id to everybody but an operator, who asks with the operator token, at \`server.metrics_listen\`, or, without that setting, from this machine. With \`console.public: false\`, the default in production, only an operator is answered; others get 401.
`;

/** Renders the reference. */
export function metricsReference(): string {
  return `${INTRODUCTION}
| Metric | Type | Labels | Meaning |
|---|---|---|---|
${METRICS.map(row).join("\n")}
`;
}

function row({ name, type, labels, help }: Metric): string {
  const named = labels.map((label) => `\`${label}\``).join(", ");
  return `| \`${name}\` | ${type} | ${named} | ${help.replaceAll("|", "\\|")} |`;
}
