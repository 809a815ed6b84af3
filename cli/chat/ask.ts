import type { Failure } from '../../core/failure.ts'
import { type Api, type Client, dataOf, memberOf } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import type { SseEvent } from '../client/http.ts'
import { type LoadWaitOptions, loadDeadline, untilLoaded, waitOrThrow } from '../client/load-wait.ts'
import { errorInBody, serverRefusal } from '../client/refusal.ts'
import { refused } from '../terminal/exit-codes.ts'

const path = '/std/v1/chat/completions'

/** How a chat reaches its server, and how it waits while the model loads. */
export interface AskOptions extends LoadWaitOptions {
  client: Client
}

/** Streams the answer to one request. While the model loads, sends the request again for up to ten minutes. */
export async function* streamAnswer(
  body: Record<string, unknown>,
  { client, ...waitOptions }: AskOptions,
): AsyncGenerator<AnswerPart, void, void> {
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
  const giveUpAt = loadDeadline()
  for (;;) {
    try {
      yield* readAnswer(client.url, client.stream(path, streamed, waitOptions.signal))
      return
    } catch (thrown) {
      // The refusal comes before the first token, so a second request repeats no text.
      await waitOrThrow(thrown, giveUpAt, waitOptions)
    }
  }
}

/** Returns the complete response body of the API, for `--json`. */
export function askOnce(body: Record<string, unknown>, { client, ...waitOptions }: AskOptions): Promise<unknown> {
  const { signal } = waitOptions
  const request = body as Api['ChatCompletionRequest']
  return untilLoaded(() => dataOf(client.api.POST(path, { body: request, signal })), waitOptions)
}

/** Returns the ids of chat models in the server's order. A model without a list of tasks counts as a chat model. */
export async function chatModels({ api }: Client): Promise<string[]> {
  const models: { id: string; tasks?: string[] }[] = await memberOf(api.GET('/std/v1/models'), 'data')
  return models.filter(({ tasks }) => tasks?.includes(commandTasks.chat) ?? true).map(model => model.id)
}

/** Returns the first chat model. Throws Failure `model_not_found` when the server offers none. */
export async function defaultModel(client: Client): Promise<string> {
  const [first] = await chatModels(client)
  if (first === undefined)
    throw refused(
      'model_not_found',
      `${client.url} offers no chat model. Add one with 'infer model add', or under "models" in infer.yaml.`,
    )
  return first
}

/** One part of a streamed answer: text of the answer, text of its reasoning, or how it ended. */
export type AnswerPart =
  | { kind: 'text' | 'reasoning'; text: string }
  | { kind: 'end'; finishReason: string; tokens: { input: number; output: number } | undefined }

interface Chunk {
  choices?: { delta?: { content?: unknown; reasoning_content?: unknown }; finish_reason?: unknown }[]
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null
}

/**
 * Reads the parts of a chat answer from its event stream. Ends with exactly one `end`.
 * Throws the Failure that the server put into the stream, or `worker_error` when the stream stops without `[DONE]`.
 */
export async function* readAnswer(
  url: string,
  events: AsyncIterable<SseEvent>,
): AsyncGenerator<AnswerPart, void, void> {
  let finishReason = 'stop'
  let tokens: { input: number; output: number } | undefined
  for await (const { data } of events) {
    if (data === '[DONE]') {
      yield { kind: 'end', finishReason, tokens }
      return
    }
    if (errorInBody(data)) throw serverRefusal(url, data)
    const chunk = parse(data)
    const choice = chunk.choices?.[0]
    const { content, reasoning_content: reasoning } = choice?.delta ?? {}
    if (typeof reasoning === 'string' && reasoning !== '') yield { kind: 'reasoning', text: reasoning }
    if (typeof content === 'string' && content !== '') yield { kind: 'text', text: content }
    if (typeof choice?.finish_reason === 'string') finishReason = choice.finish_reason
    const { prompt_tokens: input, completion_tokens: output } = chunk.usage ?? {}
    if (typeof input === 'number' && typeof output === 'number') tokens = { input, output }
  }
  throw broken('The answer ended too early. Ask again.')
}

function parse(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // The error below is the same as for a value that is not an object.
  }
  throw broken('The server sent an event that is not a JSON object, so the answer was stopped. Ask again.')
}

const broken = (message: string): Failure => refused('worker_error', message)
