// Checks the order of the chunks in a response for AI SDK clients, with a small state machine.

/** One chunk of the UI message stream, as it was sent. */
export interface Chunk {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** What is wrong with this response; empty if it is well-formed. */
export function faultsOf(chunks: readonly Chunk[]): string[] {
  const order = new Order();
  chunks.forEach((chunk, index) => order.read(chunk, index));
  order.end();
  return order.faults;
}

class Order {
  readonly faults: string[] = [];
  #started = false;
  #ended = false;
  #inStep = false;
  #chunksOfStep = 0;
  #outputInStep = false;
  #open: string | undefined;
  readonly #begun = new Set<string>();
  #at = 0;

  read(chunk: Chunk, index: number): void {
    this.#at = index;
    this.#must(!this.#ended, `${chunk.type} comes after the end`);
    this.#must(
      this.#started === (chunk.type !== "start"),
      `${chunk.type} comes ${this.#started ? "twice" : "before start"}`,
    );
    this.#course(chunk);
    this.#words(chunk);
    this.#tool(chunk);
  }

  end(): void {
    this.#must(this.#ended, "the response has no finish and no error");
    this.#must(!this.#inStep, "the last step is not finished");
  }

  #course(chunk: Chunk): void {
    switch (chunk.type) {
      case "start":
        this.#started = true;
        this.#must(typeof chunk["messageId"] === "string", "start names no message");
        return;
      case "start-step":
        this.#must(!this.#inStep, "a step starts inside a step");
        this.#inStep = true;
        this.#chunksOfStep = 0;
        this.#outputInStep = false;
        return;
      case "finish-step":
        this.#must(this.#inStep, "a step finishes that never started");
        this.#must(this.#chunksOfStep > 0, "an empty step");
        this.#must(this.#open === undefined, `${this.#open} is open at the end of its step`);
        this.#inStep = false;
        return;
      case "finish":
        this.#must(typeof chunk["finishReason"] === "string", "finish gives no reason");
        this.#ended = true;
        return;
      case "error":
        this.#ended = true;
        return;
      default:
        this.#chunksOfStep += 1;
    }
  }

  #words(chunk: Chunk): void {
    const [, kind, move] = /^(text|reasoning)-(start|delta|end)$/.exec(chunk.type) ?? [];
    if (kind === undefined) {
      return;
    }
    const block = `${kind} ${String(chunk["id"])}`;
    this.#must(this.#inStep, `${chunk.type} outside a step`);
    // a stock client would mistake this step for one whose results still have to be posted
    this.#must(!this.#outputInStep, `${chunk.type} in the step of a tool's output`);
    this.#must(
      this.#open === (move === "start" ? undefined : block),
      `${chunk.type} while ${this.#open ?? "nothing"} is open`,
    );
    this.#open = move === "end" ? undefined : block;
  }

  #tool(chunk: Chunk): void {
    const call = chunk["toolCallId"];
    if (typeof call !== "string") {
      return;
    }
    if (chunk.type === "tool-input-start") {
      this.#must(!this.#begun.has(call), `${call} begins twice`);
      this.#begun.add(call);
    }
    if (chunk.type.startsWith("tool-output-")) {
      this.#outputInStep = this.#inStep;
    }
    if (chunk.type === "tool-input-delta") {
      this.#must(this.#begun.has(call), `${call} gets input before it begins`);
    }
  }

  #must(holds: boolean, fault: string): void {
    if (!holds) {
      this.faults.push(`chunk ${this.#at}: ${fault}`);
    }
  }
}
