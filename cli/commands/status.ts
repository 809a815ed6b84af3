import { type Command, Option } from '@commander-js/extra-typings'
import { openClient } from '../client/client.ts'
import { drawStatus } from '../status/draw.ts'
import { fetchStatus, watchStatus } from '../status/live.ts'
import { readDuration, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Columns in a pipe: all columns of the models, and reasons are not cut. */
const pipeWidth = 400

/** `infer status`: a live view in a terminal, one view in a pipe. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Shows the state of the server: devices with their memory, utilization, temperature and power, the engines on them, slots, queues, tokens per second, and what is left of the limits of the token. In a terminal the view is live until q or Ctrl-C; in a pipe, or with --once, it is printed once.',
    )
    .option('--once', 'print it once, also in a terminal')
    .addOption(
      new Option('--every <time>', 'time between updates of the view').argParser(readDuration).default(1_000, '1s'),
    )
    .action(async ({ once, every, json, dataDir }) => {
      const connect = () => openClient(dataDir)
      if (terminal.isTerminal && !json && !once) return watchStatus(terminal, connect, Math.max(200, every))
      const client = connect()
      const snapshot = await fetchStatus(client)
      if (json) return terminal.json(snapshot)
      const width = terminal.isTerminal ? Math.max(20, terminal.stdout.columns || 80) : pipeWidth
      const lines = drawStatus(snapshot, client.url, { width, height: 0 }, terminal.paint)
      terminal.print(lines.map(line => line.trimEnd()).join('\n'))
    })
  withExamples(command, [
    ['infer status', 'the live view'],
    ['infer status --once', 'print it once'],
    ['infer status --json', 'for a program'],
  ])
}
