import type { Command } from '@commander-js/extra-typings'
import { unloadModel } from '../models/load.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer stop <model>`: does the same as `infer model unload`. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Unloads a model when its requests have ended, as infer model unload does. The next request loads it again. To stop the server, press Ctrl-C in its terminal, or send it SIGTERM.',
    )
    .argument('[id]', 'the model')
    .action((id, options) => {
      if (id === undefined)
        throw usageFailure(
          'Name the model to unload. To stop the server, press Ctrl-C in its terminal, or run systemctl stop infer if it is a service. See: infer ps',
        )
      return unloadModel(id, options, terminal)
    })
  withExamples(command, [['infer stop qwen3-8b', 'and wait until its memory is free']])
}
