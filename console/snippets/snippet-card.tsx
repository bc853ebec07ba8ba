// A call as programs to copy, one language at a time.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Choices } from "../components/card.tsx";
import { Snippet } from "../components/copy-button.tsx";
import { LANGUAGES, type Language, type SnippetCall, snippet } from "./snippets.ts";

const OPTIONS = LANGUAGES.map((value) => ({ value, label: value }));

/** The call in the chosen language. */
export function Snippets({ call }: { readonly call: SnippetCall }): JSX.Element {
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
