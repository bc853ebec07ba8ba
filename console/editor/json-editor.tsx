// A field for a JSON document with completion: it opens while a key or word is typed, and by
// Ctrl+Space. Arrows choose, Enter or Tab takes, Escape closes.
import type { RefObject } from "preact";
import { useId, useState } from "preact/hooks";
import { type Completion, completionsAt, type KnownKeys } from "./completions.ts";
import { type JsonPlace, lineOf, offsetOf, offsetsOf, placeAt } from "./json-place.ts";
import type { SchemaProblem } from "./schema-check.ts";

interface EditorProps {
  readonly label: string;
  readonly text: string;
  readonly change: (text: string) => void;
  readonly schema: unknown;
  readonly known: KnownKeys;
  readonly maxLength: number;
  readonly field: RefObject<HTMLTextAreaElement | null>;
}

/** Completions on show. */
interface Offer {
  readonly place: JsonPlace;
  readonly items: readonly Completion[];
  readonly chosen: number;
  /** Where they are shown: below the cursor, in columns and lines of the field. */
  readonly style: Readonly<Record<"--left" | "--top", string>>;
}

const ROWS = 24;

/** The field. */
export function JsonEditor(props: EditorProps) {
  const { label, text, change, field, maxLength } = props;
  const [offer, setOffer] = useState<Offer | null>(null);
  const list = useId();
  const takeAt = (at: number): void => {
    const item = offer?.items[at];
    if (offer === null || item === undefined || field.current === null) return;
    take(field.current, offer.place, item);
    setOffer(null);
  };
  return (
    <div class="json-editor">
      <textarea
        ref={field}
        class="input editor"
        rows={ROWS}
        wrap="off"
        spellcheck={false}
        autocapitalize="off"
        aria-label={label}
        aria-autocomplete="list"
        aria-describedby={`${list}-hint`}
        {...(offer === null
          ? {}
          : { "aria-controls": list, "aria-activedescendant": `${list}-${offer.chosen}` })}
        maxLength={maxLength}
        value={text}
        onInput={(event) => {
          change(event.currentTarget.value);
          setOffer(offerAt(props, event.currentTarget, false));
        }}
        onKeyDown={(event) => {
          if (event.key === " " && event.ctrlKey) {
            event.preventDefault();
            setOffer(offerAt(props, event.currentTarget, true));
          } else if (offer !== null) keyOf(event, offer, { setOffer, takeAt });
        }}
        onBlur={() => setOffer(null)}
        onClick={() => setOffer(null)}
        onScroll={() => setOffer(null)}
      />
      {offer === null ? null : <OfferList id={list} offer={offer} takeAt={takeAt} />}
      <p class="field-hint" id={`${list}-hint`}>
        Ctrl+Space shows what fits at the cursor.
      </p>
    </div>
  );
}

/** What fits at the cursor; null = nothing, or nothing was typed and nobody asked. */
function offerAt(
  { schema, known }: Pick<EditorProps, "schema" | "known">,
  { value, selectionStart, selectionEnd, scrollLeft, scrollTop }: HTMLTextAreaElement,
  isAsked: boolean,
): Offer | null {
  const place = selectionStart === selectionEnd ? placeAt(value, selectionStart) : null;
  if (place === null || (!isAsked && place.start === place.end)) return null;
  const items = completionsAt(schema, place, known);
  const isDone = items.length === 1 && items[0]?.label === place.typed && place.hasColon;
  if (items.length === 0 || isDone) return null;
  const { line, column } = lineOf(value, selectionStart);
  const style = {
    "--left": `calc(${column}ch - ${scrollLeft}px)`,
    "--top": `calc(${line}lh - ${scrollTop}px)`,
  };
  return { place, items, chosen: 0, style };
}

/** Puts a completion in as if it was typed, so that the browser can undo it. */
function take(field: HTMLTextAreaElement, { start, end }: JsonPlace, item: Completion): void {
  field.focus();
  field.setSelectionRange(start, end);
  document.execCommand("insertText", false, item.text);
  field.setSelectionRange(start + item.cursor, start + item.cursor);
}

interface OfferActions {
  readonly setOffer: (offer: Offer | null) => void;
  readonly takeAt: (at: number) => void;
}

function keyOf(event: KeyboardEvent, offer: Offer, { setOffer, takeAt }: OfferActions): void {
  const { items, chosen } = offer;
  const move = (by: number): void =>
    setOffer({ ...offer, chosen: (chosen + by + items.length) % items.length });
  switch (event.key) {
    case "ArrowDown":
      move(1);
      break;
    case "ArrowUp":
      move(-1);
      break;
    case "Enter":
    case "Tab":
      takeAt(chosen);
      break;
    case "Escape":
      setOffer(null);
      break;
    default:
      return;
  }
  event.preventDefault();
  event.stopPropagation();
}

interface ListProps {
  readonly id: string;
  readonly offer: Offer;
  readonly takeAt: (at: number) => void;
}

function OfferList({ id, offer, takeAt }: ListProps) {
  return (
    <div id={id} class="completions" role="listbox" aria-label="Completions" style={offer.style}>
      {offer.items.map(({ label, note }, at) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys
        <div
          key={label}
          id={`${id}-${at}`}
          role="option"
          tabIndex={-1}
          aria-selected={at === offer.chosen}
          // The field keeps the focus.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => takeAt(at)}
        >
          <code>{label}</code> <span>{note}</span>
        </div>
      ))}
    </div>
  );
}

interface ProblemsProps {
  readonly text: string;
  readonly problems: readonly SchemaProblem[];
  readonly field: RefObject<HTMLTextAreaElement | null>;
}

/** The problems, in the order of their lines. */
export function ProblemList({ text, problems, field }: ProblemsProps) {
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
