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

interface FigureProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly unit?: string;
  readonly note?: ComponentChildren;
}

/** One large number with its name; stands in `Figures`. */
export function Figure({ label, value, unit, note }: FigureProps) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        {value}
        {unit === undefined ? null : <span class="unit">{unit}</span>}
        {note === undefined ? null : <small>{note}</small>}
      </dd>
    </div>
  );
}

/** A row of large numbers. */
export function Figures({ children }: { readonly children: ComponentChildren }) {
  return <dl class="card figures">{children}</dl>;
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
  const scale = Math.min(1, Math.max(0, value ?? 0));
  return (
    <span class="bar">
      <span class="bar-track">
        <i style={{ transform: `scaleX(${scale})` }} />
      </span>
      <b>{text}</b>
    </span>
  );
}
