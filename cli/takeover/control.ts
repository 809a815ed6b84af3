import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import type { HandOver } from './hand-over.ts'
import { controlPath, type TakeoverReport, type TakeoverRequest } from './protocol.ts'
import { RestartNeeded } from './restart-needed.ts'

/**
 * Opens the Unix socket in the data directory over which its owner can replace this server: only that user can reach it.
 * `handedOver` is called once another server serves; it resolves when this one has ended its work.
 */
export function openControl(options: {
  dataDir: string
  handOver: Pick<HandOver, 'begin'>
  handedOver: (finished: Promise<void>) => void
  log: Log
}): { close: () => void } | undefined {
  const { dataDir, log } = options
  if (process.platform === 'win32') return undefined
  let path: string
  try {
    path = controlPath(dataDir, process.pid)
  } catch (thrown) {
    log.info(Failure.from(thrown).message)
    return undefined
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  rmSync(path, { force: true })
  const server = createServer(socket => {
    socket.on('error', () => socket.destroy())
    createInterface({ input: socket }).once('line', line => void answer(socket, line))
  })
  server.on('error', cause => log.warn('Another version cannot take over from this server', {}, cause))
  server.listen(path, () => chmodSync(path, 0o600))
  server.unref()

  async function answer(socket: Socket, line: string): Promise<void> {
    const tell = (report: TakeoverReport) => void (socket.writable && socket.write(`${JSON.stringify(report)}\n`))
    try {
      const request = JSON.parse(line) as TakeoverRequest
      const { pid, failure, settled, finished } = await options.handOver.begin(request, text =>
        tell({ kind: 'progress', text }),
      )
      options.handedOver(finished)
      // Whoever asked may end a process next: systemd has to know by then which one is the main one.
      await settled
      tell(
        failure === undefined
          ? { kind: 'done', pid }
          : {
              kind: 'failed',
              message: `${Failure.from(failure).message} The old version was started again and serves as process ${pid}.`,
              needsRestart: false,
            },
      )
    } catch (thrown) {
      tell({ kind: 'failed', message: Failure.from(thrown).message, needsRestart: thrown instanceof RestartNeeded })
    }
    socket.end()
  }

  return { close: () => void server.close() }
}
