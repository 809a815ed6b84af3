import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { refused } from '../terminal/exit-codes.ts'
import { controlPath, type TakeoverReport, type TakeoverRequest } from './protocol.ts'
import { RestartNeeded } from './restart-needed.ts'

/**
 * Asks the server of the data directory to let another one take its place. Resolves with the process id of the new
 * server when it serves. Rejects with Failure `conflict`, with the reason; then the old server still serves, or its
 * version was started again. Rejects with `RestartNeeded` if this server cannot be replaced while it runs.
 */
export async function takeOver(
  { dataDir, pid }: { dataDir: string; pid: number },
  request: TakeoverRequest,
  progress: (text: string) => void,
): Promise<number> {
  const path = controlPath(dataDir, pid)
  const socket = connect(path)
  const failed = new Promise<never>((_, reject) => {
    socket.once('error', cause => {
      const { code } = cause as NodeJS.ErrnoException
      const message = `Only the user of the server (process ${pid}) may replace it. Run this as that user.`
      if (code === 'EACCES') reject(refused('conflict', message, { cause }))
      else
        reject(
          new RestartNeeded(
            `The running server (process ${pid}) cannot be replaced while it runs (${code}). Stop it, and start the new one.`,
            { cause },
          ),
        )
    })
  })
  const answered = (async () => {
    for await (const line of createInterface({ input: socket })) {
      const report = JSON.parse(line) as TakeoverReport
      if (report.kind === 'progress') progress(report.text)
      else if (report.kind === 'failed')
        throw report.needsRestart ? new RestartNeeded(report.message) : refused('conflict', report.message)
      else return report.pid
    }
    throw refused('conflict', `The running server (process ${pid}) ended during the take-over. Read its log.`)
  })()
  socket.write(`${JSON.stringify(request)}\n`)
  try {
    return await Promise.race([answered, failed])
  } finally {
    socket.destroy()
  }
}
