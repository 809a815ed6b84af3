import { type Command, Option } from '@commander-js/extra-typings'
import { type Api, type Client, dataOf, openClient } from '../client/client.ts'
import { serverRefusal } from '../client/refusal.ts'
import { entryJson, entryText, type LogEntry } from '../logs/entry.ts'
import { refused } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { readCount, withDataDir, withExamples } from '../terminal/options.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** `infer logs [model]`: prints the newest lines of the server's log and of the engines' output; -f follows them. */
export function define(command: Command, terminal: Terminal): void {
  withDataDir(command)
    .description(
      "Shows the newest lines of the server's own log and of its engines' output. With --follow also prints new lines until Ctrl-C. The server keeps about a megabyte of each in memory; secrets are redacted.",
    )
    .argument('[model]', 'only lines about this model')
    .option('-f, --follow', 'print new lines as they are written')
    .option('-n, --lines <count>', 'number of newest lines', readCount(0, 10_000), 200)
    .addOption(
      new Option('--source <source>', "only the server's own log, or only the engines' output").choices([
        'server',
        'engine',
      ]),
    )
    .option('--json', 'print one JSON object per line')
    .action(async (model, { follow, lines, source, json, dataDir }) => {
      const client = openClient(dataDir)
      const query = new URLSearchParams({ lines: String(lines) })
      if (model !== undefined) query.set('model', model)
      if (source !== undefined) query.set('source', source)
      const show = (entry: LogEntry) =>
        terminal.print(json ? JSON.stringify(entryJson(entry)) : entryText(entry, terminal.paint))
      await interruptible(terminal, async signal => {
        if (follow) return followLogs(client, query, { terminal, show, signal })
        const all = { lines, model, source }
        const answer = await dataOf(client.api.GET('/api/system/logs', { params: { query: all }, signal }))
        for (const entry of (answer as Api['LogLines']).lines) show(entry)
      })
    })
  withExamples(command, [
    ['infer logs', 'the newest lines of server and engines'],
    ['infer logs qwen3-8b --follow', 'why a model does not start, as it happens'],
    ['infer logs --source engine --lines 20', "the newest lines of the engines' output"],
    ['infer logs --json | jq .message', 'for a program'],
  ])
}

/** Prints lines as they arrive. Returns when the server announces that it stops; a lost connection is an error. */
async function followLogs(
  client: Client,
  query: URLSearchParams,
  { terminal, show, signal }: { terminal: Terminal; show: (entry: LogEntry) => void; signal: AbortSignal },
): Promise<void> {
  query.set('follow', 'true')
  for await (const { event, data } of client.stream(`/api/system/logs?${query.toString()}`, undefined, signal)) {
    if (event === 'end') return terminal.remark('The server is stopping, so there are no more lines.')
    if (event === 'error') throw serverRefusal(client.url, data)
    if (event === 'missed')
      terminal.warn(`${(JSON.parse(data) as { lines: number }).lines} lines arrived too fast and were skipped.`)
    else if (event === 'message') show(JSON.parse(data) as LogEntry)
  }
  throw refused('worker_error', `The connection to ${client.url} was lost. Run the command again.`)
}
