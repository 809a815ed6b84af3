import type { Command } from '@commander-js/extra-typings'
import { type Client, dataOf, openClient } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../terminal/options.ts'
import { lengthText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { detailOf, type ModelStatus } from './status.ts'

/** `infer model load <id>`: loads a model, and shows the progress until it is warm. */
export function defineLoad(command: Command, terminal: Terminal): void {
  const load = withCommon(command)
    .summary('load a model now, before the first request')
    .description(
      'Makes the server load a model and waits until it is warm. The model stays loaded for its idle_ttl, or until another model needs the memory. Ctrl-C stops waiting, not the load.',
    )
    .argument('<id>', 'the model')
    .action((id, { dataDir, json }) =>
      interruptible(terminal, async signal => {
        const loaded = await loadModel(openClient(dataDir), id, terminal, signal)
        if (json) terminal.json({ ...loaded.status, load_seconds: loaded.seconds })
        else
          terminal.print(
            loaded.seconds < 0.5
              ? `'${id}' is warm.`
              : `'${id}' is warm after ${lengthText(Math.ceil(loaded.seconds))}.`,
          )
      }),
    )
  withExamples(load, [['infer model load qwen3-8b', 'and wait until it is warm']])
}

/** Loads a model and resolves when it is warm. Shows the reason for waiting. Throws when it cannot be loaded. */
export async function loadModel(
  client: Client,
  id: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<{ status: ModelStatus; seconds: number }> {
  const since = performance.now()
  const seconds = () => (performance.now() - since) / 1_000
  const live = Boolean((terminal.stderr as Partial<typeof terminal.stderr>).isTTY)
  try {
    for (;;) {
      // The server answers when the load has ended, or after `wait` seconds: one for a live line.
      const params = { path: { id }, query: { wait: live ? 1 : 15 } }
      const status = await dataOf(client.api.POST('/api/models/{id}/load', { params, signal }))
      if (status.status === 'warm') return { status, seconds: Math.round(seconds() * 1_000) / 1_000 }
      terminal.waiting(waitingText(status, live ? seconds() : undefined))
    }
  } finally {
    if (live) terminal.progress('')
  }
}

/** Returns the reason for waiting in one line; with the elapsed time for a live line. */
export function waitingText(status: ModelStatus, seconds: number | undefined): string {
  const passed = seconds === undefined ? '' : ` ${lengthText(seconds)}`
  const left = seconds !== undefined && status.eta_seconds ? `, about ${lengthText(status.eta_seconds)} left` : ''
  const why = status.reason ? `: ${storedSentence(status.reason)}` : ''
  return `${status.status === 'loading' ? 'Loading' : 'Waiting to load'} '${printable(status.model_id)}'${passed}${left}${why}`
}

/** `infer model unload <id>`: unloads a model when its requests have ended. */
export function defineUnload(command: Command, terminal: Terminal): void {
  const unload = withCommon(command)
    .summary('unload a model when its requests have ended')
    .description(
      'Makes the server unload a model and waits until its memory is free. Running requests finish first; the next request loads it again. Ctrl-C stops waiting, not the unloading.',
    )
    .argument('<id>', 'the model')
    .action((id, options) => unloadModel(id, options, terminal))
  withExamples(unload, [['infer model unload qwen3-8b', 'and wait until its memory is free']])
}

/** Makes the server unload a model and waits until its current engines have stopped. */
export const unloadModel = (id: string, { dataDir, json }: CommonOptions, terminal: Terminal): Promise<void> =>
  interruptible(terminal, async signal => {
    const client = openClient(dataDir)
    // A new request may load the model again at once, so only the current engines count.
    const leaving = new Set((await detailOf(client, id, signal)).engines.map(engine => engine.id))
    for (;;) {
      const params = { path: { id }, query: { wait: 15 } }
      const status = await dataOf(client.api.POST('/api/models/{id}/unload', { params, signal }))
      const left = (await detailOf(client, id, signal)).engines.filter(engine => leaving.has(engine.id))
      if (left.length === 0) {
        terminal.result(json, status, leaving.size === 0 ? `'${id}' was not loaded.` : `'${id}' is unloaded.`)
        return
      }
      const busy = left.reduce((sum, engine) => sum + engine.busy, 0)
      terminal.waiting(`Waiting for ${busy === 1 ? 'one request' : `${busy} requests`} of '${id}' to end`)
    }
  })
