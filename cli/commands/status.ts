import { type Command, Option } from '@commander-js/extra-typings'
import { openClient } from '../client/client.ts'
import { drawStatus } from '../status/draw.ts'
import { fetchStatus, watchStatus } from '../status/live.ts'
import { readDuration, withCommon, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer status`: a live view in a terminal, one JSON object in a pipe. */
export function define(command: Command, terminal: Terminal): void {
  withCommon(command)
    .description(
      'Shows the state of the server: devices with their memory, utilization, temperature and power, the engines on them, slots, queues, tokens per second, and what is left of the limits of the token. In a terminal the view is live until q or Ctrl-C; in a pipe it is one JSON object.',
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
      if (json || !terminal.isTerminal) terminal.json(snapshot)
      else {
        const size = { width: Math.max(20, terminal.stdout.columns || 80), height: 0 }
        terminal.print(drawStatus(snapshot, client.url, size, terminal.paint).join('\n'))
      }
    })
  withExamples(command, [
    ['infer status', 'the live view'],
    ['infer status --once', 'print it once'],
    ['infer status --json', 'for a program'],
  ])
}
