import { setTimeout as sleep } from 'node:timers/promises'
import { remote } from '../../core/config.ts'
import { openLog } from '../../core/log.ts'
import { type Client, openClient } from '../client.ts'
import { ExecutionPage } from '../executions/execution.ts'
import { listPath } from '../executions/find.ts'
import { interruptible } from '../interruption.ts'
import { runningServer } from '../server-file.ts'
import type { Terminal } from '../terminal.ts'

/** What runs when the work is over was left by a second Ctrl-C: it goes back to the queue. Milliseconds. */
const drainTimeoutMs = 1_000

/** The exit code of a program that was ended with Ctrl-C: whoever pressed it does not wait for others. */
const interrupted = 128
const lookEveryMs = 500
/** Whoever else was served fetches what came out. */
const fetchingMs = 3_000

/** Whether there is a server to speak to: one that INFER_URL names, or one that runs on the data directory. */
export const hasServer = (dataDir: string): boolean => remote() !== undefined || runningServer(dataDir) !== undefined

/**
 * Does work with a server. Where none runs one is started in this process, on the same data directory, for as long as
 * the work takes; it is said on standard error.
 */
export async function withServer(
  terminal: Terminal,
  dataDir: string,
  work: (connect: () => Client) => Promise<void>,
): Promise<void> {
  const connect = () => openClient(dataDir)
  if (hasServer(dataDir)) return work(connect)
  terminal.remark(`No server is running on ${dataDir}, so one is started for this run.`)
  const { openApp } = await import('../app.ts')
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
      await interruptible(terminal, signal => othersEnd(terminal, connect(), signal))
  } finally {
    await app.close()
  }
}

/** Somebody else may have found this server meanwhile, and run something on it; or something goes on that was left before. */
async function othersEnd(terminal: Terminal, client: Client, signal: AbortSignal): Promise<void> {
  let announced = false
  for (let idleMs = 0; ; ) {
    const pages = await Promise.all(
      ['running', 'pending'].map(status =>
        client.ask({ method: 'GET', path: listPath({ status, limit: 1 }), answer: ExecutionPage, signal }),
      ),
    )
    const [other] = pages.flatMap(({ executions }) => executions)
    if (!other && (!announced || idleMs >= fetchingMs)) return
    if (!announced && other)
      terminal.remark(`${other.id} still runs on this server, which ends when it has. Ctrl-C leaves it for later.`)
    announced = true
    idleMs = other ? 0 : idleMs + lookEveryMs
    await sleep(lookEveryMs, undefined, { signal })
  }
}
