// What the server answers to a question that may stay unanswered.
import { ask, type Http } from "@farhand/client";

/** The fields of the answer; none if there is no answer. */
export async function received<T>(http: Http, path: string): Promise<Partial<T>> {
  const answer = await ask(http, path);
  return ((answer.kind === "answered" && answer.body) || {}) as Partial<T>;
}
