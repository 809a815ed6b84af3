import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { type Client, openClient } from '../client.ts'
import { storedSentence } from '../command-hints.ts'
import { interruptible } from '../interruption.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { printable } from '../paint.ts'
import { lengthText } from '../quantities-text.ts'
import type { Terminal } from '../terminal.ts'
import { ModelStatus, pathOf } from './status.ts'

/** `infer model load <id>`: loads a model, and says how far it is until it is warm. */
export function define(command: Command, terminal: Terminal): void {
  const load = withDataDir(withJson(command))
    .summary('load a model now, before the first request')
    .description(
      'Has the server load a model and waits until it is warm. It stays as long as its idle_ttl says, or until another model needs the room. Ctrl-C stops waiting, not the load.',
    )
    .argument('<id>', 'the model')
    .action((id: string, { dataDir, json }: { dataDir?: string; json?: boolean }) =>
      interruptible(terminal, async signal => {
        const loaded = await loadModel(openClient(dataDirectory(dataDir)), id, terminal, signal)
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

/** Resolves when the model is warm, saying meanwhile what is waited for. Throws why it cannot be loaded. */
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
      // Each answer comes when there is something new to say: the end, or a second on a live line.
      const path = `${pathOf(id)}/load?wait=${live ? 1 : 15}`
      const status = await client.ask({ method: 'POST', path, answer: ModelStatus, signal })
      if (status.status === 'warm') return { status, seconds: Math.round(seconds() * 1_000) / 1_000 }
      terminal.waiting(waitingText(status, live ? seconds() : undefined))
    }
  } finally {
    if (live) terminal.progress('')
  }
}

/** What is waited for, in one line; with the time that has passed where the line is overwritten. */
export function waitingText(status: ModelStatus, seconds: number | undefined): string {
  const passed = seconds === undefined ? '' : ` ${lengthText(seconds)}`
  const left = seconds !== undefined && status.eta_seconds ? `, about ${lengthText(status.eta_seconds)} left` : ''
  const why = status.reason ? `: ${storedSentence(status.reason)}` : ''
  return `${status.status === 'loading' ? 'Loading' : 'Waiting to load'} '${printable(status.model_id)}'${passed}${left}${why}`
}
