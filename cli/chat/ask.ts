import type { Failure } from '../../core/failure.ts'
import { type Api, type Client, dataOf, memberOf } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import type { SseEvent } from '../client/http.ts'
import {
  errorInBody,
  type LoadWaitOptions,
  loadDeadline,
  serverRefusal,
  untilLoaded,
  waitOrThrow,
} from '../client/refusal.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { tookText } from '../terminal/quantities-text.ts'
import { announceWait, readAll } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type ConversationOptions, chatRequest } from './conversation.ts'

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

/**
 * Writes a streamed answer: text to standard output, reasoning to standard error. On a terminal control characters are
 * removed; in a pipe the text is unchanged.
 */
export async function showAnswer(
  terminal: Terminal,
  parts: AsyncIterable<AnswerPart>,
  { reasoning, figures }: { reasoning: boolean; figures: boolean },
): Promise<void> {
  const { stdout, stderr, isTerminal } = terminal
  const startedAt = performance.now()
  let begun = false
  /** The output whose last line has no line break yet. */
  let open: 'answer' | 'reasoning' | undefined
  let end: Extract<AnswerPart, { kind: 'end' }> | undefined

  const begin = () => {
    if (!begun) terminal.progress('')
    begun = true
  }
  try {
    for await (const piece of parts) {
      begin()
      if (piece.kind === 'end') end = piece
      else if (piece.kind === 'text') {
        if (open === 'reasoning') stderr.write('\n\n')
        stdout.write(isTerminal ? printable(piece.text) : piece.text)
        open = piece.text.endsWith('\n') ? undefined : 'answer'
      } else if (reasoning) {
        stderr.write(terminal.remarkPaint.faint(printable(piece.text)))
        open = 'reasoning'
      }
    }
  } finally {
    begin()
    // An interrupted answer in a pipe gets no line break; on a terminal the next output begins on a new line.
    if (open === 'reasoning') stderr.write('\n')
    else if (open === 'answer' && (end || isTerminal)) stdout.write('\n')
  }
  if (end?.finishReason === 'length') terminal.remark('The answer reached its maximum length; --max-tokens raises it.')
  if (end && figures) terminal.remark(footer(end.finishReason, end.tokens?.output, performance.now() - startedAt))
}

/** Reads one prompt from standard input and writes the answer to standard output. */
export async function chatInPipe(
  terminal: Terminal,
  options: AskOptions,
  { model, system, settings, json }: ConversationOptions & { json: boolean },
): Promise<void> {
  const prompt = await announceWait(terminal, readAll(terminal.stdin))
  if (prompt.trim() === '')
    throw usageFailure('Standard input contains no prompt. Write: echo "Hello" | infer chat, or run it in a terminal.')
  const body = chatRequest({ model, system }, [{ role: 'user', content: prompt }], settings)
  const onWait = () => terminal.remark(`Loading ${model}…`)
  if (json) {
    terminal.json(await askOnce(body, { ...options, onWait }))
    return
  }
  let last = '\n'
  for await (const piece of streamAnswer(body, { ...options, onWait })) {
    if (piece.kind === 'text') {
      terminal.stdout.write(piece.text)
      last = piece.text
    } else if (piece.kind === 'end' && piece.finishReason === 'length') {
      terminal.remark('The answer reached its maximum length; --max-tokens raises it.')
    }
  }
  if (!last.endsWith('\n')) terminal.stdout.write('\n')
}

/** Returns the line under an answer: how it ended unless normally, tokens, speed and time. */
export function footer(finishReason: string, tokens: number | undefined, ms: number): string {
  const parts = [
    ...(finishReason === 'stop' ? [] : [finishReason === 'length' ? 'maximum length reached' : finishReason]),
    ...(tokens === undefined
      ? []
      : [
          `${tokens} ${tokens === 1 ? 'token' : 'tokens'}`,
          `${(tokens / Math.max(ms / 1000, 0.001)).toFixed(1)} tokens/s`,
        ]),
    tookText(ms),
  ]
  return parts.join(' · ')
}
