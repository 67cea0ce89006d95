// A function that charges at most once for each invoice, whatever calls it, crashes or retries.
import { current, once, Refused } from "semel";

export function chargeOf(pay: (customer: string, idempotencyKey: string | undefined) => Promise<{ id: string; declined?: boolean }>) {
  return once(
    async function charge(invoice: string, customer: string) {
      const paid = await pay(customer, current().idempotencyKey);
      if (paid.declined) throw new Refused(`invoice ${invoice} was declined`);
      return paid;
    },
    { key: (invoice) => invoice },
  );
}
