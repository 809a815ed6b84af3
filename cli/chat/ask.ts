import { z } from 'zod'
import type { Client } from '../client/client.ts'
import { commandTasks } from '../client/command-tasks.ts'
import { type LoadWaitOptions, loadDeadline, untilLoaded, waitOrThrow } from '../client/load-wait.ts'
import { refused } from '../terminal/exit-codes.ts'
import { type AnswerPart, readAnswer } from './answer.ts'

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
  const answer = z.looseObject({ choices: z.array(z.unknown()) })
  return untilLoaded(
    () => client.ask({ method: 'POST', path, body, answer, ...(signal ? { signal } : {}) }),
    waitOptions,
  )
}

const Models = z.object({ data: z.array(z.object({ id: z.string(), tasks: z.array(z.string()).optional() })) })

/** Returns the ids of chat models in the server's order. A model without a list of tasks counts as a chat model. */
export async function chatModels(client: Client): Promise<string[]> {
  const { data } = await client.ask({ method: 'GET', path: '/std/v1/models', answer: Models })
  return data
    .filter(model => model.tasks === undefined || model.tasks.includes(commandTasks.chat))
    .map(model => model.id)
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
