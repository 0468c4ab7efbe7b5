/** Closes a `switch`: a case that was forgotten does not compile. */
export function unreachable(value: never): never {
  throw new Error(`there is no case for ${JSON.stringify(value)}`);
}
