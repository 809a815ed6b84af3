import type { Command } from 'commander'
import { z } from 'zod'
import { dataDirectory } from '../../core/config.ts'
import { type Client, openClient } from '../client.ts'
import { interruptible } from '../interruption.ts'
import { withDataDir, withExamples, withJson } from '../options.ts'
import { type Paint, printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import { findIds } from './find.ts'
import { followJob } from './follow.ts'
import { jobPath } from './job.ts'
import { LogLine } from './moment.ts'

const Logs = z.looseObject({ logs: z.array(LogLine) })

interface Options {
  follow?: boolean
  json?: boolean
  dataDir?: string
}

const levels: Record<string, keyof Paint> = { ERROR: 'bad', WARN: 'warning', STDERR: 'warning' }

/** `12:00:00 INFO step 12/30`, the time in UTC. */
export function lineText({ timestamp, level, message }: LogLine, paint: Paint): string {
  const time = /T(\d{2}:\d{2}:\d{2})/.exec(timestamp)?.[1] ?? printable(timestamp)
  return `${paint.faint(time)} ${paint[levels[level] ?? 'faint'](printable(level).padEnd(6))} ${printable(message)}`
}

/** `infer job logs <id>`: what the runs of a job have said. */
export function define(command: Command, terminal: Terminal): void {
  const logs = withDataDir(withJson(command.command('logs')))
    .summary('read what a job has said')
    .description(
      'Prints what the runs of a job have said, oldest first, and with --follow what they say until its end.',
    )
    .argument('<id>', 'the job, or the end of its id')
    .option('-f, --follow', 'go on until the job has ended')
    .action((text: string, { follow, json, dataDir }: Options) =>
      interruptible(terminal, async signal => {
        const connect = () => openClient(dataDirectory(dataDir))
        const client = connect()
        const [id] = await findIds(client, [text], signal)
        if (json && !follow) {
          const path = `${jobPath(id!)}/logs`
          return terminal.json(await client.ask({ method: 'GET', path, answer: Logs, signal }))
        }
        const print = (line: LogLine) => terminal.print(json ? JSON.stringify(line) : lineText(line, terminal.paint))
        if (follow) return await followLogs(connect, id!, signal, print)
        const lines = await logsOf(client, id!, signal)
        for (const line of lines) print(line)
        if (lines.length === 0) terminal.remark('It has said nothing.')
      }),
    )
  withExamples(logs, [
    ['infer job logs 7QK2M9XD', 'by the end of its id'],
    ['infer job logs job_… -f', 'until it has ended'],
  ])
}

const logsOf = async (client: Client, id: string, signal: AbortSignal): Promise<LogLine[]> =>
  (await client.ask({ method: 'GET', path: `${jobPath(id)}/logs`, answer: Logs, signal })).logs

/**
 * Prints lines as they come, each once. The list is read at every change of the job, not the lines of its events: so
 * none is missing where a connection broke. How many were printed is where to go on.
 */
async function followLogs(
  connect: () => Client,
  id: string,
  signal: AbortSignal,
  print: (line: LogLine) => void,
): Promise<void> {
  let printed = 0
  let last: LogLine | undefined
  let reading: Promise<void> | undefined
  let again = false
  const read = async () => {
    const lines = await logsOf(connect(), id, signal)
    // A server keeps so many lines and no more: then the last one that was printed says where to go on.
    const same = (line: LogLine | undefined) => line?.timestamp === last?.timestamp && line?.message === last?.message
    const from = same(lines[printed - 1]) ? printed : lines.findLastIndex(same) + 1
    for (const line of lines.slice(from)) print(line)
    printed = lines.length
    last = lines.at(-1)
  }
  const nudge = () => {
    if (reading) {
      again = true
      return
    }
    reading = read()
      // The next change is the next try; the last one of all is not passed over.
      .catch(() => undefined)
      .finally(() => {
        reading = undefined
        if (!again) return
        again = false
        nudge()
      })
  }
  await read()
  await followJob(connect, id, { signal, onChange: nudge, onLog: nudge })
  await reading
  await read()
}
