/** The server refused this client; trying again would not help. */
export class Rejected extends Error {
  override readonly name = "Rejected";

  constructor(
    readonly status: number,
    reason: string,
  ) {
    super(`The server refused (${status}): ${reason}`);
  }
}

/** Another program listens as this client now. */
export class Superseded extends Error {
  override readonly name = "Superseded";

  constructor() {
    super("Another program listens as this client now. Give each program an id of its own.");
  }
}
