// Frames of pages: the head of a page, cards, figures.
import { type ComponentChildren, Fragment } from "preact";

interface HeadProps {
  readonly title: ComponentChildren;
  readonly lead?: ComponentChildren;
  /** What can be done on this page. */
  readonly children?: ComponentChildren;
}

/** Title and actions of a page. */
export function PageHead({ title, lead, children }: HeadProps) {
  return (
    <header class="page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {lead === undefined ? null : <p>{lead}</p>}
      </div>
      {children === undefined ? null : <div class="page-actions">{children}</div>}
    </header>
  );
}

interface CardProps {
  readonly title?: ComponentChildren;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** True = the content reaches to the edges, as tables do. */
  readonly flush?: boolean;
  readonly children: ComponentChildren;
}

/** A part of a page. */
export function Card({ title, lead, actions, flush = false, children }: CardProps) {
  return (
    <section class="card">
      {title === undefined ? null : (
        <div class="card-head">
          <div>
            <h2>{title}</h2>
            {lead === undefined ? null : <p>{lead}</p>}
          </div>
          {actions === undefined ? null : <div class="page-actions">{actions}</div>}
        </div>
      )}
      {flush ? children : <div class="card-body">{children}</div>}
    </section>
  );
}

/** A large number with its name, and a smaller line below; empty = none. */
export type Figure = readonly [label: string, value: ComponentChildren, note?: ComponentChildren];

/** A row of large numbers. */
export function figures(rows: readonly Figure[]) {
  return (
    <dl class="card figures">
      {rows.map(([label, value, note]) => (
        <div key={label} class="figure">
          <dt>{label}</dt>
          <dd>
            {value}
            <small>{note}</small>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** A value of a figure with its unit. */
export function inUnit(value: ComponentChildren, unit: string) {
  return [
    value,
    <span key={unit} class="unit">
      {unit}
    </span>,
  ];
}

interface FactsProps {
  readonly facts: readonly (readonly [string, ComponentChildren])[];
  readonly class?: string;
}

/** Names and what stands for each. */
export function Facts({ facts, class: look = "" }: FactsProps) {
  return (
    <dl class={`facts ${look}`}>
      {facts.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** A part of 1 as a bar and in words. */
export function ShareBar({
  value,
  text,
}: {
  readonly value: number | null;
  readonly text: string;
}) {
  return (
    <span class="bar">
      <progress value={value ?? 0} aria-hidden="true" />
      <span>{text}</span>
    </span>
  );
}
