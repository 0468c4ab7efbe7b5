// Which open calls a person has to answer: what the inbox holds, and what its badges count. Pure.

/** A call that runs is no question: in a program, on the server, or in a browser that has taken it. */
export function isQuestion({ phase, executor }: { readonly phase: string; readonly executor: string }): boolean {
  return phase === "asking" || (phase === "ready" && executor === "frontend");
}
