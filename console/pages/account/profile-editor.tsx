// The editor of a Custom profile: its document is checked and completed while it is typed, every
// provider is tested live, what differs from the saved one is shown, and earlier revisions return.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Failure, Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { type App, useApp } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import { Button, Notice, Select } from "../../components/controls.tsx";
import { DiffView } from "../../components/diff-view.tsx";
import { Badge } from "../../components/inline.tsx";
import { failureText } from "../../components/page-state.tsx";
import { JsonEditor, ProblemList } from "../../editor/json-editor.tsx";
import { checkDocument, type SchemaProblem } from "../../editor/schema-check.ts";
import { draftOf, hiddenProblems, providersOf, textOf } from "./profile-draft.ts";
import { RevisionsCard } from "./revisions-card.tsx";

type Profile = AnswerOf<"GET /api/v1/profiles/{slug}">;
type Rules = AnswerOf<"GET /api/v1/configuration-schema">;

interface EditorProps {
  readonly slug: string;
  /** Null = it is yet to be written. */
  readonly profile: Profile | null;
  readonly rules: Rules;
  readonly done: () => void;
}

/** What the last check or attempt to save came to. */
type Outcome =
  | { readonly kind: "none" }
  | { readonly kind: "busy" }
  | { readonly kind: "checked"; readonly document: unknown }
  | { readonly kind: "failed"; readonly failure: Failure; readonly document: unknown };

/** The editor, and what was before. */
export function ProfileEditor({ slug, profile, rules, done }: EditorProps) {
  const { client, toasts } = useApp();
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useState(() => firstText(profile, rules));
  const latest = useRef(text);
  latest.current = text;
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });
  const [base, setBase] = useState(profile?.revision ?? null);
  useEffect(() => setOutcome({ kind: "none" }), [text]);
  const draft = readDraft(text, profile, rules);
  const isReady = draft.why === null && draft.problems.length === 0 && outcome.kind !== "busy";
  const put = (dryRun: boolean): void => {
    const { document } = draft;
    setOutcome({ kind: "busy" });
    void putProfile(client, { slug, document, revision: base, dryRun }).then((result) => {
      const isCurrent = latest.current === text;
      if (result.kind === "failed")
        return setOutcome({ kind: "failed", failure: result.failure, document });
      // What was tested is no longer what stands here.
      if (isCurrent) setOutcome({ kind: "checked", document });
      if (dryRun) return;
      setBase(result.body.revision);
      // No secret that was saved stays on the page; what was typed meanwhile does.
      if (isCurrent) setText(draftOf(result.body));
      toasts.show("good", "The profile was saved and serves now.");
      done();
    });
  };
  const restore = (earlier: string, revision: number): void => {
    setText(earlier);
    field.current?.focus();
    field.current?.scrollIntoView({ block: "center" });
    toasts.show("good", `Revision ${revision} stands in the editor. Save it to serve it.`);
  };
  return (
    <>
      <Card
        title="Document"
        lead="Addresses and header values are never shown again. What is hidden stays as it is saved."
        actions={<Recipes rules={rules} choose={setText} />}
      >
        <div class="stack">
          <JsonEditor
            label="Document of the profile"
            text={text}
            change={setText}
            schema={rules.schema}
            known={{ chains: rules.chains.map(({ name }) => name) }}
            maxLength={rules.limits.max_document_bytes}
            field={field}
          />
          <Problems {...{ draft, text, field }} />
          <OutcomeNotice {...{ outcome, text, field }} />
          <p class="page-actions">
            <Button disabled={!isReady} press={() => put(true)}>
              Test the providers
            </Button>
            <Button look="primary" disabled={!isReady} press={() => put(false)}>
              Save
            </Button>
          </p>
        </div>
      </Card>
      {profile === null ? null : (
        <>
          <Card title="Difference" lead={`Between revision ${profile.revision} and the editor`}>
            <DiffView
              before={draftOf(profile)}
              after={draft.text}
              label="Difference to what is saved"
            />
          </Card>
          <RevisionsCard saved={profile} restore={restore} />
        </>
      )}
    </>
  );
}

/** What stands in the editor. */
interface Draft {
  readonly document: unknown;
  /** As it is compared with what is saved. */
  readonly text: string;
  /** Why it is no JSON; null = it is. */
  readonly why: string | null;
  readonly problems: readonly SchemaProblem[];
}

function readDraft(text: string, saved: Profile | null, rules: Rules): Draft {
  try {
    const document: unknown = JSON.parse(text);
    const problems = [...checkDocument(rules.schema, document), ...hiddenProblems(document, saved)];
    return { document, text: textOf(document), why: null, problems };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { document: null, text, why, problems: [] };
  }
}

function firstText(profile: Profile | null, rules: Rules): string {
  return profile === null
    ? textOf(rules.workload_recipes[0]?.document ?? { chains: {} })
    : draftOf(profile);
}

interface Put {
  readonly slug: string;
  readonly document: unknown;
  /** The revision that is replaced; null = there is none. */
  readonly revision: number | null;
  readonly dryRun: boolean;
}

function putProfile(
  client: App["client"],
  { slug, document, revision, dryRun }: Put,
): Promise<Result<Profile>> {
  const query = `keep_hidden=true${dryRun ? "&dry_run=true" : ""}`;
  const path = `/api/v1/profiles/${encodeURIComponent(slug)}?${query}`;
  const headers = revision === null ? {} : { "if-match": `"${revision}"` };
  return client.request<Profile>("PUT", path, { body: document, headers });
}

interface RecipesProps {
  readonly rules: Rules;
  readonly choose: (text: string) => void;
}

function Recipes({ rules: { workload_recipes: recipes }, choose }: RecipesProps) {
  return (
    <Select
      label="Begin with a document for a workload"
      hidesName
      value=""
      options={[
        { value: "", label: "Begin with…" },
        ...recipes.map(({ id, purpose }) => ({ value: id, label: id, title: purpose })),
      ]}
      choose={(chosen) => {
        const recipe = recipes.find(({ id }) => id === chosen);
        if (recipe !== undefined) choose(textOf(recipe.document));
      }}
    />
  );
}

interface FieldProps {
  readonly text: string;
  readonly field: RefObject<HTMLTextAreaElement | null>;
}

function Problems(props: FieldProps & { readonly draft: Draft }) {
  const { why, problems } = props.draft;
  if (why !== null) return <Notice tone="bad">Not valid JSON: {why}</Notice>;
  if (problems.length === 0) return null;
  return (
    <Notice tone="warn">
      <ProblemList text={props.text} field={props.field} problems={problems} />
    </Notice>
  );
}

function OutcomeNotice(props: FieldProps & { readonly outcome: Outcome }) {
  const { outcome } = props;
  switch (outcome.kind) {
    case "none":
      return null;
    case "busy":
      return <Notice>Asking every provider</Notice>;
    case "checked":
      return (
        <Notice tone="good">
          Every provider answered as it should.
          <Tested document={outcome.document} failed={[]} />
        </Notice>
      );
    case "failed":
      return <FailureNotice {...props} {...outcome} />;
  }
}

interface FailureProps extends FieldProps {
  readonly failure: Failure;
  readonly document: unknown;
}

function FailureNotice({ failure, document, text, field }: FailureProps) {
  const { details, code } = failure;
  // The service names chains by their usual name, the document perhaps by another one.
  const paths = providersOf(document).map(({ path }) => path);
  const isNamed = details.every((path) => paths.includes(path));
  return (
    <Notice tone="bad">
      {code === "revision_conflict"
        ? "Somebody saved another revision meanwhile. Compare below, load the page again, and save."
        : failureText(failure)}
      {code === "provider_check_failed" && isNamed ? (
        <Tested document={document} failed={details} />
      ) : (
        <ProblemList
          {...{ text, field }}
          problems={details.map((path) => ({ path, message: "was refused" }))}
        />
      )}
    </Notice>
  );
}

interface TestedProps {
  readonly document: unknown;
  /** Paths of the providers that failed. */
  readonly failed: readonly string[];
}

/** How each provider did when it was asked. */
function Tested({ document, failed }: TestedProps) {
  return (
    <ul class="tested" aria-label="Providers that were tested">
      {providersOf(document).map(({ chain, path, provider }) => (
        <li key={path}>
          <Badge tone={failed.includes(path) ? "bad" : "good"}>
            {failed.includes(path) ? "failed" : "answers"}
          </Badge>{" "}
          <bdi>{String(provider["name"])}</bdi> <span class="small">{chain}</span>{" "}
          <code>{path}</code>
        </li>
      ))}
    </ul>
  );
}
