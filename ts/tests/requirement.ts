/** Says which promise in tests/requirements.toml a test proves. The list is held against the source text. */
export function requirement(id: string): void {
  if (!/^[a-z0-9-]+:[a-z0-9-]+$/.test(id)) {
    throw new Error(`"${id}" is not the id of a promise`);
  }
}
