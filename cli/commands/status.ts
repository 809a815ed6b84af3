import { type Command, Option } from 'commander'
import { dataDirectory } from '../../core/config.ts'
import { openClient } from '../client.ts'
import { readDuration, withDataDir, withExamples, withJson } from '../options.ts'
import { drawStatus } from '../status/draw.ts'
import { fetchStatus, watchStatus } from '../status/live.ts'
import type { Terminal } from '../terminal.ts'

interface Options {
  once?: boolean
  every: number
  json?: boolean
  dataDir?: string
}

/** `infer status`: a live view in a terminal, one JSON object in a pipe. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(withJson(command))
    .description(
      'Shows what the server does: devices with their memory, utilization, temperature and power, engines on them, slots, queues and tokens per second. In a terminal the view is live until q or Ctrl-C; in a pipe it is one JSON object.',
    )
    .option('--once', 'show it once and end, in a terminal too')
    .addOption(
      new Option('--every <time>', 'how often the view is drawn again').argParser(readDuration).default(1_000, '1s'),
    )
    .action(async ({ once, every, json, dataDir }: Options) => {
      const connect = () => openClient(dataDirectory(dataDir))
      if (terminal.isTerminal && !json && !once) return watchStatus(terminal, connect, Math.max(200, every))
      const client = connect()
      const snapshot = await fetchStatus(client)
      if (json || !terminal.isTerminal) terminal.json(snapshot)
      else {
        const room = { width: Math.max(20, terminal.stdout.columns || 80), height: 0 }
        terminal.print(drawStatus(snapshot, client.url, room, terminal.paint).join('\n'))
      }
    })
  withExamples(command, [
    ['infer status', 'the live view'],
    ['infer status --once', 'one look'],
    ['infer status --json', 'for a program'],
  ])
}
