// What a page is: a component with the named parts of its address.
import type { ComponentType } from "preact";

/** What a page is given. */
export interface PageProps {
  /** The named parts of its address. */
  readonly params: Readonly<Record<string, string>>;
}

/** A page as it is shown. */
export type PageComponent = ComponentType<PageProps>;
