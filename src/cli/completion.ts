// Scripts that complete command lines in bash, zsh and fish, written from the table of commands.
import type { CommandInput, Commands, Option } from "./command.ts";
import { inGroup, listed, operandsOf } from "./usage.ts";

/** What may stand behind the words of a command line that say what to do. */
interface Place {
  /** These words; empty = none yet. */
  readonly behind: string;
  readonly options: Readonly<Record<string, Option>>;
  /** Words that may follow, each with its meaning. */
  readonly words: Readonly<Record<string, string>>;
  readonly takesFile: boolean;
}

/** zsh runs the functions of bash. */
const LIKE_BASH = `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -Uz bashcompinit && bashcompinit
`;

/** Prints the script for the shell that the command names. */
export function printCompletion(commands: Commands, { operands: [shell] }: CommandInput): void {
  const places = placesOf(listed(commands));
  if (shell === "fish") return console.log(fish(places));
  console.log(`${shell === "zsh" ? LIKE_BASH : ""}${bash(places, groupsOf(commands))}`);
}

function placesOf(commands: Commands): readonly Place[] {
  const groups = groupsOf(commands);
  const single = Object.entries(commands).filter(([name]) => !name.includes(" "));
  const firsts = { ...meanings(Object.fromEntries(single), 0), ...namesOf(groups) };
  const none = { options: {}, takesFile: false };
  const { options = {} } = commands["serve"] ?? {};
  return [
    { behind: "", options, words: { ...firsts, help: "Explains a command" }, takesFile: false },
    { ...none, behind: "help", words: firsts },
    ...groups.map((group) => ({
      ...none,
      behind: group,
      words: meanings(inGroup(commands, group) ?? {}, group.length + 1),
    })),
    ...Object.entries(commands).map(([behind, command]) => ({
      behind,
      options: command.options ?? {},
      words: namesOf(operandsOf(command.operands).words),
      takesFile: command.operands?.includes("FILE") ?? false,
    })),
  ];
}

/** First words of commands that have two. */
function groupsOf(commands: Commands): readonly string[] {
  const pairs = Object.keys(commands).filter((name) => name.includes(" "));
  return [...new Set(pairs.map((name) => name.replace(/ .*/, "")))];
}

/** What commands do, in a sentence, by what follows the first characters of their names. */
function meanings(commands: Commands, from: number): Place["words"] {
  const firstSentence = (text: string): string => text.replace(/\. .*|\.$/s, "");
  return Object.fromEntries(
    Object.entries(commands).map(([name, { does = "" }]) => [
      name.slice(from),
      firstSentence(does),
    ]),
  );
}

function namesOf(words: readonly string[]): Place["words"] {
  return Object.fromEntries(words.map((word) => [word, ""]));
}

function bash(places: readonly Place[], groups: readonly string[]): string {
  const pairs = groups.map(
    (group) => `\n    ${group}) ((COMP_CWORD > 2)) && behind="$behind \${COMP_WORDS[2]}" ;;`,
  );
  return `_svc() {
  local word="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  local behind="\${COMP_WORDS[1]}" words="" files=""
  ((COMP_CWORD == 1)) && behind="" before=""
  case "$behind" in
    -*) behind=serve ;;${pairs.join("")}
  esac
  case "$behind:$before" in
${places.flatMap(bashCases).join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  local IFS=$'\\n'
  [ -z "$files" ] || COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _svc svc`;
}

function bashCases({ behind, options, words, takesFile }: Place): readonly string[] {
  const all = Object.entries(options);
  const behindThese = (those: typeof all): string =>
    those.map(([key]) => `"${behind}:--${key}"`).join(" | ");
  const files = behindThese(all.filter(([, { value }]) => value === "FILE"));
  const others = behindThese(all.filter(([, { value }]) => value !== null && value !== "FILE"));
  const choice = [...Object.keys(words), ...all.map(([key]) => `--${key}`), "--help"].join(" ");
  return [
    ...(files === "" ? [] : [`    ${files}) files=1 ;;`]),
    ...(others === "" ? [] : [`    ${others}) ;;`]),
    `    "${behind}:"*) words="${choice}"${takesFile ? " files=1" : ""} ;;`,
  ];
}

function fish(places: readonly Place[]): string {
  return ["complete -c svc -f", ...places.flatMap(fishLines)].join("\n");
}

function fishLines({ behind, options, words, takesFile }: Place): readonly string[] {
  const seen = behind.split(" ").map((word) => `__fish_seen_subcommand_from ${word}`);
  const following = Object.keys(words).join(" ");
  const open = following === "" ? [] : [`not __fish_seen_subcommand_from ${following}`];
  const condition = behind === "" ? "__fish_use_subcommand" : [...seen, ...open].join("; and ");
  const line = (rest: string, meaning: string): string =>
    `complete -c svc -n ${quoted(condition)} ${rest}${meaning === "" ? "" : ` -d ${quoted(meaning)}`}`;
  return [
    ...Object.entries(words).map(([word, meaning]) => line(`-a ${word}`, meaning)),
    ...Object.entries(options).map(([key, { value, meaning }]) =>
      line(`-l ${key}${takes(value)}`, meaning),
    ),
    line("-l help", "prints help"),
    ...(takesFile ? [line("-F", "")] : []),
  ];
}

/** How fish is told of the value of an option. */
function takes(value: string | null): string {
  if (value === null) return "";
  return value === "FILE" ? " -r -F" : " -x";
}

function quoted(text: string): string {
  return `'${text.replace(/['\\]/g, "\\$&")}'`;
}
