// The credit of an account that is leased to nodes, as an SQL expression.
import { sql } from "kysely";

/** Unspent credit leased to nodes of the account in the row and of the accounts merged into it. */
export const leasedN = sql<bigint>`(
  select cast(coalesce(sum(credit_lease.granted_n - credit_lease.spent_n), 0) as bigint)
  from credit_lease where credit_lease.account_id = account.id) + (
  select cast(coalesce(sum(credit_lease.granted_n - credit_lease.spent_n), 0) as bigint)
  from account as merged join credit_lease on credit_lease.account_id = merged.id where merged.merged_into = account.id)`;
