// One Custom profile: its document in an editor that checks it while it is typed, a live test of
// every provider, the difference to what is saved, and what is saved now.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Failure, Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { type App, useApp } from "../../app/app.ts";
import type { PageProps } from "../../app/page.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, PageHead } from "../../components/card.tsx";
import { DiffView } from "../../components/diff-view.tsx";
import { failureText, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { draftOf, parseDraft, textOf } from "./profile-draft.ts";
import { checkDocument } from "./schema-check.ts";

type Profile = AnswerOf<"GET /api/v1/profiles/{slug}">;
type Rules = AnswerOf<"GET /api/v1/configuration-schema">;

const POLL_MS = 10_000;
const NOT_FOUND = 404;

/** The page. */
export function ProfilePage({ params }: PageProps): JSX.Element {
  const { client } = useApp();
  const { slug = "" } = params;
  const rules = useResource("configuration schema", 0, (signal) =>
    client.call("GET /api/v1/configuration-schema", {}, signal),
  );
  const saved = useResource(`profile ${slug}`, POLL_MS, () => savedProfile(client, slug));
  return (
    <>
      <PageHead title={slug} lead="Custom profile" />
      <Loaded resource={saved}>
        {({ profile }) => (
          <>
            {profile === null ? null : <SavedCard profile={profile} />}
            <Loaded resource={rules}>
              {(data) => (
                <Editor key={slug} {...{ slug, profile, rules: data }} done={saved.reload} />
              )}
            </Loaded>
          </>
        )}
      </Loaded>
    </>
  );
}

/** The profile, null inside = it is yet to be written. */
async function savedProfile(
  client: App["client"],
  slug: string,
): Promise<Result<{ readonly profile: Profile | null }>> {
  const result = await client.call("GET /api/v1/profiles/{slug}", { params: { slug } });
  if (result.kind === "ok") return { ...result, body: { profile: result.body } };
  const { failure } = result;
  return failure.kind === "refused" && failure.status === NOT_FOUND
    ? { kind: "ok", status: NOT_FOUND, body: { profile: null } }
    : result;
}

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
  | { readonly kind: "busy"; readonly words: string }
  | { readonly kind: "checked" }
  | { readonly kind: "failed"; readonly failure: Failure };

function Editor({ slug, profile, rules, done }: EditorProps): JSX.Element {
  const { client, toasts } = useApp();
  const [text, setText] = useState(() => firstText(profile, rules));
  const [outcome, setOutcome] = useState<Outcome>({ kind: "none" });
  const [base, setBase] = useState(profile?.revision ?? null);
  useEffect(() => setOutcome({ kind: "none" }), [text]);
  const read = parseDraft(text);
  const document = read.kind === "document" ? read.document : null;
  const problems = read.kind === "document" ? checkDocument(rules.schema, document) : [];
  const drafted = read.kind === "document" ? textOf(document) : text;
  const isWrong = read.kind === "wrong" || problems.length > 0;
  const put = (dryRun: boolean): void => {
    setOutcome({ kind: "busy", words: "Asking every provider" });
    void putProfile(client, { slug, document, revision: base, dryRun }).then((result) => {
      if (result.kind === "failed") return setOutcome({ kind: "failed", failure: result.failure });
      setOutcome({ kind: "checked" });
      if (dryRun) return;
      setBase(result.body.revision);
      toasts.show("good", "The profile was saved and serves now.");
      done();
    });
  };
  return (
    <>
      <Card
        title="Document"
        lead="Addresses and header values are never shown again: type them anew when you save."
        actions={<Recipes rules={rules} choose={setText} />}
      >
        <div class="stack">
          <textarea
            class="input editor"
            rows={24}
            spellcheck={false}
            aria-label="Document of the profile"
            maxLength={rules.limits.max_document_bytes}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <Problems read={read} problems={problems} />
          <OutcomeNotice outcome={outcome} />
          <p class="page-actions">
            <button
              type="button"
              class="button"
              disabled={isWrong || outcome.kind === "busy"}
              onClick={() => put(true)}
            >
              Test the providers
            </button>
            <button
              type="button"
              class="button button-primary"
              disabled={isWrong || outcome.kind === "busy"}
              onClick={() => put(false)}
            >
              Save
            </button>
          </p>
        </div>
      </Card>
      {profile === null ? null : (
        <Card
          title="Difference"
          lead={`Between revision ${profile.revision} and what stands in the editor`}
        >
          <DiffView before={draftOf(profile)} after={drafted} label="Difference to what is saved" />
        </Card>
      )}
    </>
  );
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
  const path = `/api/v1/profiles/${encodeURIComponent(slug)}${dryRun ? "?dry_run=true" : ""}`;
  const headers = revision === null ? undefined : { "if-match": `"${revision}"` };
  return client.request<Profile>("PUT", path, document, headers);
}

interface RecipesProps {
  readonly rules: Rules;
  readonly choose: (text: string) => void;
}

function Recipes({ rules, choose }: RecipesProps): JSX.Element {
  return (
    <select
      class="input"
      aria-label="Begin with a document for a workload"
      value=""
      onChange={(event) => {
        const recipe = rules.workload_recipes.find(({ id }) => id === event.currentTarget.value);
        if (recipe !== undefined) choose(textOf(recipe.document));
      }}
    >
      <option value="">Begin with…</option>
      {rules.workload_recipes.map(({ id, purpose }) => (
        <option key={id} value={id} title={purpose}>
          {id}
        </option>
      ))}
    </select>
  );
}

interface ProblemsProps {
  readonly read: ReturnType<typeof parseDraft>;
  readonly problems: ReturnType<typeof checkDocument>;
}

function Problems({ read, problems }: ProblemsProps): JSX.Element | null {
  if (read.kind === "wrong")
    return (
      <p class="notice bad" role="alert">
        This is no JSON: {read.why}
      </p>
    );
  if (problems.length === 0) return null;
  return (
    <ul class="notice warn" role="status">
      {problems.map(({ path, message }) => (
        <li key={`${path} ${message}`}>
          <code>{path === "" ? "the document" : path}</code> {message}
        </li>
      ))}
    </ul>
  );
}

function OutcomeNotice({ outcome }: { readonly outcome: Outcome }): JSX.Element | null {
  switch (outcome.kind) {
    case "none":
      return null;
    case "busy":
      return (
        <p class="notice" role="status">
          {outcome.words}
        </p>
      );
    case "checked":
      return (
        <p class="notice good" role="status">
          Every provider answered as it should.
        </p>
      );
    case "failed":
      return <FailureNotice failure={outcome.failure} />;
  }
}

function FailureNotice({ failure }: { readonly failure: Failure }): JSX.Element {
  const details = failure.kind === "refused" ? failure.details : [];
  const isConflict = failure.kind === "refused" && failure.code === "revision_conflict";
  return (
    <div class="notice bad" role="alert">
      {isConflict
        ? "Somebody saved another revision meanwhile. Compare below, load the page again, and save."
        : failureText(failure)}
      {details.length === 0 ? null : (
        <ul>
          {details.map((path) => (
            <li key={path}>
              <code>{path}</code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface ProviderRow {
  readonly chain: string;
  readonly name: string;
  readonly url: string | null;
  readonly ws_url: string | null;
  readonly status: "verified" | "verifying" | "failed";
}

function SavedCard({ profile }: { readonly profile: Profile }): JSX.Element {
  const rows = Object.entries(profile.chains).flatMap(([chain, { providers }]) =>
    providers.map(
      ({ name, url, ws_url, status }): ProviderRow => ({ chain, name, url, ws_url, status }),
    ),
  );
  return (
    <Card
      title={`Revision ${profile.revision}`}
      lead={
        <>
          Saved <Time at={profile.updated_at} />, {profile.state}
        </>
      }
      flush
    >
      <Table
        name="providers"
        caption="Providers of the profile"
        columns={PROVIDER_COLUMNS}
        rows={rows}
        keyOf={(row) => `${row.chain} ${row.name}`}
        textOf={(row) => `${row.chain} ${row.name}`}
      />
    </Card>
  );
}

const TONES = { verified: "good", verifying: "warn", failed: "bad" } as const;

const PROVIDER_COLUMNS: readonly Column<ProviderRow>[] = [
  {
    id: "name",
    label: "Provider",
    kind: "lead",
    value: (row) => row.name,
    render: (row) => <bdi>{row.name}</bdi>,
  },
  { id: "chain", label: "Chain", value: (row) => row.chain, render: (row) => row.chain },
  {
    id: "status",
    label: "Now",
    value: (row) => row.status,
    render: (row) => <Badge tone={TONES[row.status]}>{row.status}</Badge>,
  },
  {
    id: "url",
    label: "Address",
    kind: "wide",
    render: (row) => (
      <span class="mono small">
        {[row.url, row.ws_url].filter((url) => url !== null).join(" ")}
      </span>
    ),
  },
];
