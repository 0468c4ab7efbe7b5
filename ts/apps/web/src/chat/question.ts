// Which open calls a person has to answer: the inbox shows them, and badges count them. Pure.

/** Whether a person has to answer it. A call that a program, the server or another browser runs is not a question. */
export function isQuestion({ phase, executor }: { readonly phase: string; readonly executor: string }): boolean {
  return phase === "asking" || (phase === "ready" && executor === "frontend");
}
