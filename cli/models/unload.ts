import type { Command } from 'commander'
import { dataOf, openClient } from '../client/client.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { detailOf } from './status.ts'

/** `infer model unload <id>`: unloads a model when its requests have ended. */
export function define(command: Command, terminal: Terminal): void {
  const unload = withCommon(command)
    .summary('unload a model when its requests have ended')
    .description(
      'Makes the server unload a model and waits until its memory is free. Running requests finish first; the next request loads it again. Ctrl-C stops waiting, not the unloading.',
    )
    .argument('<id>', 'the model')
    .action((id: string, options: CommonOptions) => unloadModel(id, options, terminal))
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
        if (json) terminal.json(status)
        else terminal.print(leaving.size === 0 ? `'${id}' was not loaded.` : `'${id}' is unloaded.`)
        return
      }
      const busy = left.reduce((sum, engine) => sum + engine.busy, 0)
      terminal.waiting(`Waiting for ${busy === 1 ? 'one request' : `${busy} requests`} of '${id}' to end`)
    }
  })
