// What a card can do with its call. The buttons are disabled by the first press: an answer is sent once.
import { useCardHost } from "../thread.tsx";
import type { CardView } from "../view.ts";

export interface Answering {
  readonly isOff: boolean;
  readonly answer: (output: unknown) => void;
  readonly fail: (error: string) => void;
  readonly skip: () => void;
  readonly decline: () => void;
}

export function useAnswer({ call, state }: CardView): Answering {
  const host = useCardHost();
  const fail = (error: string): void => host.answer(call.id, { kind: "failure", error });
  return {
    isOff: state.name !== "open" && state.name !== "parked" && state.name !== "no-client",
    answer: (output) => host.answer(call.id, { kind: "success", output }),
    fail,
    skip: () => fail("skipped by the user"),
    decline: () => fail("declined by the user"),
  };
}
