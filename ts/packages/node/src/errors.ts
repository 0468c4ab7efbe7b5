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

/** Another program has connected as this client. */
export class Superseded extends Error {
  override readonly name = "Superseded";

  constructor() {
    super("Another program has connected with this client id. Give each program its own client id.");
  }
}
