// Written by `farhand types` from the Python tools. Do not edit: write it again.

export interface FrontendTools {
  /**
   * Open a page beside the chat, where the user sees it.
   *
   * Returns: url and viewKey of the page that was opened.
   */
  readonly open_url: {
    readonly input: {
      /** The address, http or https. */
      readonly url: string;
      /** How many seconds to wait for the page to open; leave it out for one minute. */
      readonly timeout_sec?: number | null;
    };
    readonly output: {
      readonly url: string;
      readonly viewKey: string;
    };
  };
  /**
   * Ask the user a question that has yes or no for an answer, and wait for it.
   *
   * Returns: "yes" or "no".
   */
  readonly user_confirm: {
    readonly input: {
      /** The question, as the user will read it. */
      readonly message: string;
    };
    readonly output: string;
  };
  /**
   * Ask the user for a short text and wait for it.
   *
   * Returns: What the user typed.
   */
  readonly ask_text: {
    readonly input: {
      /** The question, as the user will read it. */
      readonly question: string;
    };
    readonly output: string;
  };
  /**
   * Let the user choose one of several options.
   *
   * Returns: The option that was chosen.
   */
  readonly select_option: {
    readonly input: {
      /** The question, as the user will read it. */
      readonly question: string;
      /** What there is to choose from, each once. */
      readonly options: ReadonlyArray<string>;
    };
    readonly output: string;
  };
  /**
   * Let the user pick a file from their own device and share it.
   *
   * Returns: name, type and size of the file, and a ref under which it was stored.
   */
  readonly pick_file: {
    readonly input: {
      /** What to pick, as the user will read it, for example "Pick the report". */
      readonly prompt: string;
    };
    readonly output: {
      readonly name: string;
      readonly type: string;
      readonly size: number;
      readonly ref: string;
    };
  };
  /**
   * Let the user pick a colour.
   *
   * Returns: hex, the colour as "#RRGGBB".
   */
  readonly pick_color: {
    readonly input: {
      /** What the colour is for, as the user will read it. */
      readonly prompt?: string;
    };
    readonly output: {
      readonly hex: string;
    };
  };
  /**
   * Ask the user to share where they are, once.
   *
   * Returns: lat, lon and accuracy in metres; or place, if the user typed one instead.
   */
  readonly get_location: {
    readonly input: {
      /** What it is needed for, as the user will read it. */
      readonly reason?: string;
    };
    readonly output: {
      readonly lat?: number | null;
      readonly lon?: number | null;
      readonly accuracy?: number | null;
      readonly place?: string | null;
    };
  };
  /**
   * Copy a text to the user's clipboard, if they allow it.
   *
   * Returns: true once it is copied.
   */
  readonly copy_to_clipboard: {
    readonly input: {
      /** What to copy. */
      readonly text: string;
    };
    readonly output: boolean;
  };
  /**
   * Take a photo with the user's camera. The user is asked for permission first.
   *
   * Returns: name, type and size of the photo, and a ref under which it was stored.
   */
  readonly take_photo: {
    readonly input: {
      /** "front" looks at the user, "back" at what is before them. */
      readonly camera?: "front" | "back";
    };
    readonly output: {
      readonly name: string;
      readonly type: string;
      readonly size: number;
      readonly ref: string;
    };
  };
  /**
   * Read a thermometer. It has no card of its own: the page makes one of its schema.
   *
   * Returns: The temperature in degrees Celsius, a number.
   */
  readonly read_thermometer: {
    readonly input: {
      /** Where the thermometer hangs. */
      readonly room: string;
    };
    readonly output: number;
  };
  /**
   * Ask the user to take a photo of something.
   *
   * Returns: name, type and size of the photo, and a ref under which it was stored.
   */
  readonly photograph: {
    readonly input: {
      /** What to photograph, as the user will read it. */
      readonly subject: string;
    };
    readonly output: {
      readonly name: string;
      readonly type: string;
      readonly size: number;
      readonly ref: string;
    };
  };
}

/** What a handler is told about the call beside its input. The signal fires when nobody waits any more. */
export interface HandlerContext {
  readonly callId: string;
  readonly signal: AbortSignal;
}

/** One handler for each frontend tool: a missing one, a wrong argument or a wrong return does not compile. */
export type Handlers = {
  readonly [Name in keyof FrontendTools]: (
    input: FrontendTools[Name]["input"],
    context: HandlerContext,
  ) => FrontendTools[Name]["output"] | Promise<FrontendTools[Name]["output"]>;
};
