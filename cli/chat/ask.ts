import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import type { Client } from '../client.ts'
import { refused } from '../exit-codes.ts'
import { type Piece, readAnswer } from './answer.ts'

const path = '/std/v1/chat/completions'
const longestWaitMs = 600_000

/** How a chat speaks to its server. */
export interface Asking {
  client: Client
  signal?: AbortSignal
  /** Called each time the model is still being loaded and the question is put again. */
  onWait?: (failure: Failure) => void
}

/** Streams the answer to one request. While the model is being loaded the question is put again, up to ten minutes. */
export async function* streamAnswer(
  body: Record<string, unknown>,
  { client, signal, onWait }: Asking,
): AsyncGenerator<Piece, void, void> {
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
  const giveUpAt = performance.now() + longestWaitMs
  for (;;) {
    try {
      yield* readAnswer(client.url, client.stream(path, streamed, signal))
      return
    } catch (thrown) {
      await waitOrThrow(thrown, giveUpAt, signal, onWait)
    }
  }
}

/** The whole answer as the server words it, for `--json`. */
export async function wholeAnswer(body: Record<string, unknown>, { client, signal, onWait }: Asking): Promise<unknown> {
  const giveUpAt = performance.now() + longestWaitMs
  for (;;) {
    try {
      return await client.ask({
        method: 'POST',
        path,
        body,
        answer: z.looseObject({ choices: z.array(z.unknown()) }),
        ...(signal ? { signal } : {}),
      })
    } catch (thrown) {
      await waitOrThrow(thrown, giveUpAt, signal, onWait)
    }
  }
}

/** A model that is being loaded is refused before the first word, so nothing is said twice by asking again. */
async function waitOrThrow(
  thrown: unknown,
  giveUpAt: number,
  signal: AbortSignal | undefined,
  onWait: Asking['onWait'],
): Promise<void> {
  const retryAfterMs =
    thrown instanceof Failure && thrown.code === 'model_warming_up' ? (thrown.retryAfterMs ?? 5_000) : undefined
  if (retryAfterMs === undefined || performance.now() + retryAfterMs > giveUpAt) throw thrown
  onWait?.(thrown as Failure)
  await wait(retryAfterMs, undefined, signal ? { signal } : {})
}

const Models = z.object({ data: z.array(z.object({ id: z.string(), tasks: z.array(z.string()).optional() })) })

/** Ids of the models that can chat, in the server's order. A server that does not say what its models do has them all. */
export async function chatModels(client: Client): Promise<string[]> {
  const { data } = await client.ask({ method: 'GET', path: '/std/v1/models', answer: Models })
  return data
    .filter(model => model.tasks === undefined || model.tasks.includes('std/chat-completion'))
    .map(model => model.id)
}

/** The first model that can chat. Throws Failure `model_not_found` when the server offers none. */
export async function defaultModel(client: Client): Promise<string> {
  const [first] = await chatModels(client)
  if (first === undefined)
    throw refused(
      'model_not_found',
      `${client.url} offers no model that can chat. Add one under "models" in infer.yaml.`,
    )
  return first
}
