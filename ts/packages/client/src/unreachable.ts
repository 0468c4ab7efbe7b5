/** Closes a `switch`: a missing case does not compile. */
export function unreachable(value: never): never {
  throw new Error(`there is no case for ${JSON.stringify(value)}`);
}
