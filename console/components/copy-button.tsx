// Copies a text, and says so.
import { useEffect, useState } from "preact/hooks";
import { LANGUAGES, type Language, type SnippetCall, snippet } from "../format/snippets.ts";
import { Button, Choices, named } from "./controls.tsx";

const SAID_MS = 1_500;

interface CopyProps {
  readonly text: string;
  /** What is copied, for readers of screens. */
  readonly what: string;
}

/** A button that puts a text on the clipboard. */
export function CopyButton({ text, what }: CopyProps) {
  const [said, setSaid] = useState<"Copy" | "Copied" | "Not copied">("Copy");
  useEffect(() => {
    if (said === "Copy") return;
    const timer = setTimeout(() => setSaid("Copy"), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = (): void => {
    copyText(text).then(
      (done) => setSaid(done ? "Copied" : "Not copied"),
      () => setSaid("Not copied"),
    );
  };
  return (
    <Button look="small" label={`${said} ${what}`} press={copy}>
      {said}
    </Button>
  );
}

/** Copies; on plain http, where there is no clipboard, through a field that is selected. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

/** A program or command, with a button that copies it. */
export function Snippet({ text, what }: CopyProps) {
  return (
    <div class="snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} what={what} />
    </div>
  );
}

const OPTIONS = named(LANGUAGES);

/** The call in the chosen language. */
export function Snippets({ call }: { readonly call: SnippetCall }) {
  const [language, setLanguage] = useState<Language>("curl");
  return (
    <div class="stack">
      <div>
        <Choices label="Language" options={OPTIONS} value={language} choose={setLanguage} />
      </div>
      <Snippet text={snippet(language, call)} what={`the call for ${language}`} />
    </div>
  );
}
