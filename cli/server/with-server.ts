import { setTimeout as sleep } from 'node:timers/promises'
import { remoteServer } from '../../core/config.ts'
import { openLog } from '../../core/log.ts'
import { type Client, memberOf, openClient } from '../client/client.ts'
import { runningServer } from '../client/find-server.ts'
import { interruptible } from '../terminal/interruption.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * Short, because only executions that a second Ctrl-C left still run then; their jobs return to the queue.
 * Milliseconds.
 */
const drainTimeoutMs = 1_000

/** Exit codes from here on mean that Ctrl-C ended the command, so it does not wait for other executions. */
const interrupted = 128
const pollEveryMs = 500
/** Time for other commands to fetch their results. Milliseconds. */
const fetchingMs = 3_000

/** Whether there is a server: at INFER_URL, or running on the data directory. */
export const hasServer = (dataDir: string): boolean =>
  remoteServer() !== undefined || runningServer(dataDir) !== undefined

/**
 * Runs work with a server. If none runs, starts one in this process on the same data directory until the work has
 * ended, and prints that on standard error.
 */
export async function withServer(
  terminal: Terminal,
  dataDir: string,
  work: (connect: () => Client) => Promise<void>,
): Promise<void> {
  const connect = () => openClient(dataDir)
  if (hasServer(dataDir)) return work(connect)
  terminal.remark(`No server is running on ${dataDir}, so this command starts one until the execution has ended.`)
  const { openApp } = await import('./app.ts')
  const app = await openApp({
    dataDir,
    configPath: undefined,
    listen: '127.0.0.1:0',
    drainTimeoutMs,
    log: openLog('error'),
  })
  try {
    await work(connect)
    if (terminal.exitCode() < interrupted)
      await interruptible(terminal, signal => waitForOthers(terminal, connect(), signal))
  } finally {
    await app.close()
  }
}

/** Waits for executions that other commands started on this server, or that an earlier process left in the queue. */
async function waitForOthers(terminal: Terminal, client: Client, signal: AbortSignal): Promise<void> {
  let announced = false
  for (let idleMs = 0; ; ) {
    const pages = await Promise.all(
      (['running', 'pending'] as const).map(status =>
        memberOf(
          client.api.GET('/api/workflow-executions', { params: { query: { status, limit: 1 } }, signal }),
          'executions',
        ),
      ),
    )
    const [other] = pages.flat()
    if (!other && (!announced || idleMs >= fetchingMs)) return
    if (!announced && other)
      terminal.remark(
        `${other.id} still runs on this server, which stops when it has ended. Press Ctrl-C to leave it in the queue.`,
      )
    announced = true
    idleMs = other ? 0 : idleMs + pollEveryMs
    await sleep(pollEveryMs, undefined, { signal })
  }
}
