// The banner for a person who is signed out, and the list of answers that the server refused: none of them is sent without another press.
import { mendsItself } from "@farhand/react";
import { LogIn } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { SIGN_IN } from "../server.ts";
import { MAIN, PLAIN } from "./parts.tsx";
import { useHands, useSite } from "./site.ts";
import { fill, useWords } from "./words.ts";

export function SignedOut(): ReactNode {
  const words = useWords();
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState("");
  const enter = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setProblem("");
    const result = await SIGN_IN.enter(tokenIn(token));
    if (result === "in") {
      // everything that waits for the server is retried
      dispatchEvent(new Event("online"));
      return;
    }
    setProblem({ refused: SIGN_IN.takesToken ? words.wrongToken : words.signedOut, "too-many": words.tooManyTokens, away: words.serverAway }[result]);
  };
  return (
    <section aria-label={words.signedOut} className="border-b border-line bg-amber-tint px-4 py-3 text-[13px]">
      <form onSubmit={(event) => void enter(event)} className="mx-auto flex w-full max-w-[660px] flex-wrap items-center gap-x-3 gap-y-2">
        <p role="alert" className="flex min-w-0 flex-1 basis-72 items-start gap-2 text-amber"><LogIn size={15} className="mt-0.5 shrink-0" aria-hidden="true" /><span><strong className="font-semibold">{words.signedOut}</strong> {SIGN_IN.takesToken ? words.signedOutToken : words.signedOutElsewhere}</span></p>
        {SIGN_IN.takesToken && (
          <input
            type="password" autoComplete="off" spellCheck={false} aria-label={words.token} placeholder={words.token} value={token} onChange={(event) => setToken(event.target.value)}
            aria-invalid={problem !== ""} aria-describedby="sign-in-problem" className="min-h-8 min-w-0 flex-1 basis-40 rounded-lg border border-line bg-surface px-3 text-text"
          />
        )}
        <button type="submit" className={MAIN} disabled={SIGN_IN.takesToken && token.trim() === ""}>{SIGN_IN.takesToken ? words.signIn : words.continueHere}</button>
        <p id="sign-in-problem" role="alert" className="basis-full text-red empty:hidden">{problem}</p>
      </form>
    </section>
  );
}

/** The token itself, or the whole address that contains it. */
export function tokenIn(text: string): string {
  return /[?&]token=([^&#\s]+)/.exec(text)?.[1] ?? text.trim();
}

/** Answers that the server refused and may accept later, from all chats. The card of any other one asks for a change. */
export function KeptAnswers(): ReactNode {
  const words = useWords();
  const { hands } = useSite();
  const { deliveries } = useHands();
  const kept = hands.kept.filter(({ id, path }) => {
    const delivery = deliveries.get(id);
    return path === "/api/tools/ack" && delivery?.state === "refused" && mendsItself(delivery);
  });
  if (kept.length === 0) {
    return null;
  }
  return (
    <section aria-label={words.keptAnswers} className="border-b border-line bg-surface px-4 py-3 text-[13px]">
      <div className="mx-auto flex w-full max-w-[660px] flex-col gap-2">
        <p><strong className="font-semibold">{words.keptAnswers}</strong> <span className="text-muted">{words.keptHint}</span></p>
        <ul className="flex flex-col gap-1.5">
          {kept.map(({ id, body }) => (
            <li key={id} className="flex items-center gap-2">
              <span className="min-w-0 flex-1 truncate">{fill(words.keptAnswer, { answer: answerIn(body) })}</span>
              <button type="button" className={PLAIN} disabled={SIGN_IN.isOut} onClick={() => hands.retry(id)}>{words.send}</button>
              <button type="button" className={PLAIN} onClick={() => void hands.discard(id)}>{words.discard}</button>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}

/** The answer in a few words. */
export function answerIn(body: string): string {
  const { output, errorText } = readBody(body);
  const { name } = (output ?? {}) as { name?: unknown };
  const told = errorText ?? (typeof output === "string" ? output : typeof name === "string" ? name : (JSON.stringify(output) ?? body));
  return told.length > 120 ? `${told.slice(0, 119)}…` : told;
}

function readBody(body: string): { readonly output?: unknown; readonly errorText?: string } {
  try {
    return JSON.parse(body) as { output?: unknown; errorText?: string };
  } catch {
    return {};
  }
}
