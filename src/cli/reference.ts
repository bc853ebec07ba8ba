// The reference of the command line as Markdown, rendered from the table of commands.
import type { CliCommand, Commands } from "./command.ts";
import { listed, optionName, usageLine } from "./usage.ts";

const INTRODUCTION = `# Command line

Rendered from the table in \`src/cli/commands.ts\`; change it there and run \`npm run docs\`.

\`svc\` is the command of an installed package. In a clone of the repository it is \`node bin/svc.mjs\`, in the container image \`node bin/svc.mjs\` in \`/app\`. Each command prints its help with \`--help\`. A line without a command, or one that begins with an option, is \`svc serve\`.
`;

/** Renders the reference. */
export function commandReference(commands: Commands): string {
  const sections = Object.entries(listed(commands)).map(([name, each]) => section(name, each));
  return `${INTRODUCTION}\n${sections.join("\n")}`;
}

function section(name: string, command: CliCommand): string {
  const { does = "", options = {}, notes = [] } = command;
  const rows = Object.entries(options).map(
    ([key, { value, meaning }]) =>
      `| \`${optionName(key, value).replaceAll("|", "\\|")}\` | ${escaped(meaning)} |`,
  );
  const table = rows.length === 0 ? [] : ["| Option | Meaning |", "|---|---|", ...rows];
  const usage = `\`\`\`\n${usageLine(name, command)}\n\`\`\``;
  const parts = [`## svc ${name}`, does, usage, table.join("\n"), ...notes];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function escaped(text: string): string {
  return text.replace(/[|*_]/g, "\\$&");
}
