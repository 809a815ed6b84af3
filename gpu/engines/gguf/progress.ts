/**
 * llama.cpp's `return_progress`: a stream starts with its prompt length, so that the usage of a disconnected request is
 * known. The gateway sets it, not API clients.
 */
export const asksProgress = (body: unknown): boolean => (body as { return_progress?: unknown }).return_progress === true

/** The event with the prompt length; `head` is the start of every event of the stream, with an open brace. */
export const progressFrame = (head: string, promptTokens: number): string =>
  `data: ${head},"choices":[],"prompt_progress":{"total":${promptTokens}}}\n\n`
