import type { Command } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { openClient } from '../client.ts'
import { interruptible } from '../interruption.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import type { Terminal } from '../terminal.ts'
import { detailOf, ModelStatus, pathOf } from './status.ts'

/** `infer model unload <id>`: gives a model's memory back once its requests have ended. */
export function define(command: Command, terminal: Terminal): void {
  const unload = withDataDir(withJson(command))
    .summary('unload a model once its requests have ended')
    .description(
      'Has the server unload a model and waits until its memory is free. Requests that run end first; the next one loads it again. Ctrl-C stops waiting, not the unloading.',
    )
    .argument('<id>', 'the model')
    .action((id: string, options: { dataDir?: string; json?: boolean }) => unloadModel(id, options, terminal))
  withExamples(unload, [['infer model unload qwen3-8b', 'and wait until its memory is free']])
}

/** Has the server unload a model and waits until the engines that it has now are gone. */
export const unloadModel = (
  id: string,
  { dataDir, json }: { dataDir?: string; json?: boolean },
  terminal: Terminal,
): Promise<void> =>
  interruptible(terminal, async signal => {
    const client = openClient(dataDirectory(dataDir))
    // A new request may load it again at once: what must go are the engines that are there now.
    const leaving = new Set((await detailOf(client, id, signal)).engines.map(engine => engine.id))
    for (;;) {
      const path = `${pathOf(id)}/unload?wait=15`
      const status = await client.ask({ method: 'POST', path, answer: ModelStatus, signal })
      const left = (await detailOf(client, id, signal)).engines.filter(engine => leaving.has(engine.id))
      if (left.length === 0) {
        if (json) terminal.json(status)
        else terminal.print(leaving.size === 0 ? `'${id}' was not loaded.` : `'${id}' is unloaded.`)
        return
      }
      const busy = left.reduce((sum, engine) => sum + engine.busy, 0)
      terminal.waiting(`Waiting for ${busy === 1 ? 'one request' : `${busy} requests`} of '${id}' to end`)
    }
  })
