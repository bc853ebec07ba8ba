// How a bound of the whole service is divided between its workers. Pure.

/**
 * The part of one of `of` workers while nothing is known of demand; the parts add up to `total`.
 */
export function equalPart(
  total: number,
  { index, of }: { readonly index: number; readonly of: number },
): number {
  return Math.floor(total / of) + (index < total % of ? 1 : 0);
}

/**
 * Divides a whole number by demand: nobody gets more than he wants while another wants more than he
 * got, and what nobody wants is spread evenly. Everybody gets one, if there is one for each.
 */
export function divided(total: number, wanted: readonly number[]): readonly number[] {
  const parts = wanted.map(() => 0);
  let left = total;
  const give = (hungry: readonly number[], most: (index: number) => number): void => {
    let open = hungry;
    while (left > 0 && open.length > 0) {
      const each = Math.max(1, Math.floor(left / open.length));
      for (const index of open) {
        const more = Math.min(each, left, most(index) - (parts[index] ?? 0));
        parts[index] = (parts[index] ?? 0) + more;
        left -= more;
      }
      open = open.filter((index) => (parts[index] ?? 0) < most(index));
    }
  };
  const all = wanted.map((_, index) => index);
  give(all, (index) => Math.max(total < all.length ? 0 : 1, Math.ceil(wanted[index] ?? 0)));
  give(all, () => total);
  return parts;
}
