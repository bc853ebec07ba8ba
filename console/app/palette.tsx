// The command palette: goes to pages, chains, providers, keys and decisions, and does what stands
// on no page, with the keyboard alone. Opened by Ctrl K or ⌘ K, and by a button.

import { useEffect, useId, useState } from "preact/hooks";
import type { Client, Result } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { Button, Dialog, useSend } from "../components/controls.tsx";
import { Icon } from "../components/icons.tsx";
import { Name } from "../components/inline.tsx";
import { plural } from "../format/text.ts";
import { useApp, useStore } from "./app.ts";
import { isOffered, PAGES } from "./pages.ts";
import { type PaletteItem, searchItems } from "./palette-search.ts";
import { pathTo, queryText, signInPath } from "./router.ts";
import type { SessionState } from "./session.ts";

/** Whether it is open, and the keys that change this. */
export function usePalette(): readonly [boolean, (isOpen: boolean) => void] {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const change = (event: KeyboardEvent): void => {
      const isKey = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
      if (!isKey || event.altKey || event.shiftKey) return;
      event.preventDefault();
      // A dialog that waits for an answer stays in front.
      setOpen((was) => !was && document.querySelector("dialog[open]") === null);
    };
    window.addEventListener("keydown", change);
    return () => window.removeEventListener("keydown", change);
  }, []);
  return [isOpen, setOpen];
}

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Opens the palette. */
export function PaletteButton({ open, isSmall }: { open: () => void; isSmall?: boolean }) {
  const words = "Search and commands";
  if (isSmall === true)
    return (
      <Button look="icon plain" label={words} title={words} press={open}>
        <Icon name="search" />
      </Button>
    );
  return (
    <Button look="palette-button" press={open}>
      <Icon name="search" />
      <span>Search</span>
      <kbd>{IS_MAC ? "⌘ K" : "Ctrl K"}</kbd>
    </Button>
  );
}

/** The open palette. */
export function Palette({ close }: { readonly close: () => void }) {
  const { router } = useApp();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const { items, left } = searchItems(useItems(), query);
  const current = Math.min(at, items.length - 1);
  useEffect(() => {
    document.getElementById(`${list}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [list, current]);
  const run = (item: PaletteItem | undefined): void => {
    if (item === undefined) return;
    close();
    if (typeof item.does === "string") router.go(item.does);
    else item.does();
  };
  const onKey = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((current + step + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter") run(items[current]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search and commands" close={close}>
      <input
        {...{ autofocus: true }}
        class="input"
        type="text"
        role="combobox"
        aria-label="Search"
        aria-expanded={items.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={items.length > 0 ? `${list}-${current}` : undefined}
        placeholder="A name, an action or a request id"
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        value={query}
        onInput={(event) => {
          setQuery(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKey}
      />
      <div id={list} class="palette" role="listbox" aria-label="Found" tabIndex={-1}>
        {items.map((item, index) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys are those of the field
          <div
            key={`${item.kind} ${item.title} ${item.note}`}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === current}
            onClick={() => run(item)}
          >
            <span>
              <Name text={item.title} />
              <small>
                <Name text={item.note} />
              </small>
            </span>
            <small>{item.kind}</small>
          </div>
        ))}
      </div>
      <p class="muted small" role="status">
        {items.length === 0 && "Nothing is called that."}
        {items.length > 0 && left === 0 && `${plural(items.length, "result")}`}
        {left > 0 && `The first ${items.length}; ${left} more. Type more to find them.`}
      </p>
    </Dialog>
  );
}

/** All that this session may find. */
function useItems(): readonly PaletteItem[] {
  const { client, session, router, theme } = useApp();
  const send = useSend();
  const state = useStore(session.state);
  const shown = useStore(theme.store);
  const role = state?.role ?? "none";
  const places = useResource(`palette ${role}`, 0, () => readPlaces(client, role));
  const signs: PaletteItem =
    role === "none"
      ? action("Sign in", signInPath(router.place.get()))
      : action("Sign out", () => void send(session.signOut(), "You are signed out."));
  const other = shown === "dark" ? "light" : "dark";
  return [
    ...Object.entries(PAGES)
      .filter(([, page]) => page.icon !== undefined && isOffered(page.audience, state))
      .map(([does, { title, audience }]): PaletteItem => {
        const note = audience === "account" && title !== "Account" ? "Account" : "";
        return { kind: "Page", title, note, does };
      }),
    signs,
    action(`Change to the ${other} theme`, () => theme.change()),
    ...(places.data ?? []),
  ];
}

function action(title: string, does: PaletteItem["does"], note = ""): PaletteItem {
  return { kind: "Action", title, note, does };
}

/** Chains, and what else the role may list; a list that cannot be read is left out. */
async function readPlaces(
  client: Client,
  role: SessionState["role"],
): Promise<Result<readonly PaletteItem[]>> {
  const [chains, ready, nodes, keys] = await Promise.all([
    client.call("GET /api/chains", {}),
    client.call("GET /api/ready", {}),
    role === "operator" ? client.call("GET /api/v1/operator/nodes", {}) : null,
    role === "account" ? client.call("GET /api/v1/keys", {}) : null,
  ]);
  if (chains.kind === "failed") return chains;
  if (ready.kind === "failed") return ready;
  const names = new Map(chains.body.chains.map((each) => [each.chain_name, each.name]));
  const items: PaletteItem[] = [
    ...ready.body.chains.map(({ chain, profile }): PaletteItem => {
      const note = `${chain}, profile ${profile}`;
      const does = pathTo("chain", profile, chain);
      return { kind: "Chain", title: names.get(chain) ?? chain, note, does };
    }),
    ...[...names].map(([chain, name]) =>
      action(`Open the tester with ${name}`, `/tester${queryText({ chain })}`, chain),
    ),
  ];
  if (nodes?.kind === "ok")
    for (const [provider, places] of Map.groupBy(nodes.body.providers, (each) => each.provider)) {
      const note = `Go to provider on ${[...new Set(places.map(({ chain }) => chain))].join(", ")}`;
      items.push({ kind: "Provider", title: provider, note, does: pathTo("provider", provider) });
    }
  if (keys?.kind === "ok")
    for (const { name, key_prefix: prefix } of keys.body.keys) {
      const does = `/account/keys${queryText({ "keys.find": prefix })}`;
      items.push({ kind: "Key", title: name || "Unnamed", note: `${prefix}…`, does });
    }
  return { kind: "ok", body: items };
}
