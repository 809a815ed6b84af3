import { z } from 'zod'
import type { Client } from '../client.ts'
import { commandTasks } from '../command-tasks.ts'
import { refused } from '../exit-codes.ts'
import { type LoadWaitOptions, loadDeadline, untilLoaded, waitOrThrow } from '../load-wait.ts'
import { type Piece, readAnswer } from './answer.ts'

const path = '/std/v1/chat/completions'

/** How a chat speaks to its server. */
export interface AskOptions extends LoadWaitOptions {
  client: Client
}

/** Streams the answer to one request. While the model is being loaded the question is put again, up to ten minutes. */
export async function* streamAnswer(
  body: Record<string, unknown>,
  { client, ...patience }: AskOptions,
): AsyncGenerator<Piece, void, void> {
  const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
  const giveUpAt = loadDeadline()
  for (;;) {
    try {
      yield* readAnswer(client.url, client.stream(path, streamed, patience.signal))
      return
    } catch (thrown) {
      // It is refused before the first word, so nothing is said twice by asking again.
      await waitOrThrow(thrown, giveUpAt, patience)
    }
  }
}

/** The whole answer as the server words it, for `--json`. */
export function wholeAnswer(body: Record<string, unknown>, { client, ...patience }: AskOptions): Promise<unknown> {
  const { signal } = patience
  const answer = z.looseObject({ choices: z.array(z.unknown()) })
  return untilLoaded(() => client.ask({ method: 'POST', path, body, answer, ...(signal ? { signal } : {}) }), patience)
}

const Models = z.object({ data: z.array(z.object({ id: z.string(), tasks: z.array(z.string()).optional() })) })

/** Ids of the models that can chat, in the server's order. A server that does not say what its models do has them all. */
export async function chatModels(client: Client): Promise<string[]> {
  const { data } = await client.ask({ method: 'GET', path: '/std/v1/models', answer: Models })
  return data
    .filter(model => model.tasks === undefined || model.tasks.includes(commandTasks.chat))
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
