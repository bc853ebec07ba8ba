// What is wrong with a document in a field: each problem with its line, one click away.
import type { JSX, RefObject } from "preact";
import { lineOf, offsetOf, offsetsOf } from "./json-place.ts";
import type { SchemaProblem } from "./schema-check.ts";

interface ProblemsProps {
  readonly text: string;
  readonly problems: readonly SchemaProblem[];
  readonly field: RefObject<HTMLTextAreaElement | null>;
}

/** The problems, in the order of their lines. */
export function ProblemList({ text, problems, field }: ProblemsProps): JSX.Element | null {
  if (problems.length === 0) return null;
  const offsets = offsetsOf(text);
  const placed = problems
    .map((problem) => ({ ...problem, offset: offsetOf(offsets, problem.path) ?? 0 }))
    .sort((left, right) => left.offset - right.offset);
  return (
    <ul class="problems">
      {placed.map(({ path, message, offset }) => (
        <li key={`${path} ${message}`}>
          <button type="button" class="button-link" onClick={() => goTo(field, offset)}>
            Line {lineOf(text, offset).line}
          </button>{" "}
          <code>{path === "" ? "the document" : path}</code> {message}
        </li>
      ))}
    </ul>
  );
}

function goTo({ current }: RefObject<HTMLTextAreaElement | null>, offset: number): void {
  current?.focus();
  current?.setSelectionRange(offset, offset);
}
