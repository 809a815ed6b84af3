/**
 * llama.cpp's `return_progress`: a stream says how long its prompt is before it says anything else, so that whoever
 * leaves it early can be told what it used. Clients of the API do not send it; the gateway does.
 */
export const asksProgress = (body: unknown): boolean => (body as { return_progress?: unknown }).return_progress === true

/** The event that says it; `head` is the beginning of every event of the stream, its brace open. */
export const progressFrame = (head: string, promptTokens: number): string =>
  `data: ${head},"choices":[],"prompt_progress":{"total":${promptTokens}}}\n\n`
