import { type Command, Option } from 'commander'
import { z } from 'zod'
import { dataDirectory } from '../../core/config.ts'
import { type Client, openClient } from '../client.ts'
import { refused } from '../exit-codes.ts'
import { interruptible } from '../interruption.ts'
import { entryJson, entryText, LogEntry } from '../logs/entry.ts'
import { readCount, withDataDir, withExamples } from '../options.ts'
import { refusal } from '../refusal.ts'
import type { Terminal } from '../terminal.ts'

interface Options {
  follow?: boolean
  lines: number
  source?: 'server' | 'engine'
  json?: boolean
  dataDir?: string
}

const Lines = z.looseObject({ lines: z.array(LogEntry) })
const Missed = z.looseObject({ lines: z.number() })

/** `infer logs [model]`: the end of the server's log and of what engines print, and with -f what comes. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(command)
    .description(
      "Shows the end of the server's own log and of what its engines print, and with --follow what comes, until Ctrl-C. The server keeps about a megabyte of each in memory; secrets are blacked out.",
    )
    .argument('[model]', 'only what concerns this model')
    .option('-f, --follow', 'go on with each line as it is written')
    .option('-n, --lines <count>', 'how many of the newest lines', readCount(0, 10_000), 200)
    .addOption(
      new Option('--source <source>', "only the server's own log, or only what engines print").choices([
        'server',
        'engine',
      ]),
    )
    .option('--json', 'print one JSON object a line')
    .action(async (model: string | undefined, { follow, lines, source, json, dataDir }: Options) => {
      const client = openClient(dataDirectory(dataDir))
      const query = new URLSearchParams({ lines: String(lines) })
      if (model !== undefined) query.set('model', model)
      if (source !== undefined) query.set('source', source)
      const show = (entry: LogEntry) =>
        terminal.print(json ? JSON.stringify(entryJson(entry)) : entryText(entry, terminal.paint))
      await interruptible(terminal, async signal => {
        if (follow) return followLogs(client, query, { terminal, show, signal })
        const answer = await client.ask({
          method: 'GET',
          path: `/api/system/logs?${query.toString()}`,
          answer: Lines,
          signal,
        })
        for (const entry of answer.lines) show(entry)
      })
    })
  withExamples(command, [
    ['infer logs', 'the newest lines of everything'],
    ['infer logs qwen3-8b --follow', 'why a model does not start, as it happens'],
    ['infer logs --source engine --lines 20', 'what engines said last'],
    ['infer logs --json | jq .message', 'for a program'],
  ])
}

/** Shows lines as they come. A server that stops says so; a connection that breaks is an error. */
async function followLogs(
  client: Client,
  query: URLSearchParams,
  { terminal, show, signal }: { terminal: Terminal; show: (entry: LogEntry) => void; signal: AbortSignal },
): Promise<void> {
  query.set('follow', 'true')
  for await (const { event, data } of client.stream(`/api/system/logs?${query.toString()}`, undefined, signal)) {
    if (event === 'end') return terminal.remark('The server is stopping; there is nothing more to follow.')
    if (event === 'error') throw refusal(client.url, data)
    if (event === 'missed')
      terminal.warn(`${Missed.parse(JSON.parse(data)).lines} lines came too fast and were left out.`)
    else if (event === 'message') show(LogEntry.parse(JSON.parse(data)))
  }
  throw refused('worker_error', `The connection to ${client.url} broke. Ask again.`)
}
