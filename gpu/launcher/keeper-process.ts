import { createSecretKey } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { openKeeper } from './keeper.ts'
import { keeperSocket, keeperTitle } from './keeper-socket.ts'

/** Milliseconds in which the server that has started a keeper connects to it. */
const firstConnectionMs = 10_000

/**
 * Runs the keeper in this process: reads its key from standard input, listens in this folder, and then prints a line. Ends
 * the process with `exit` when no engine is left and no server needs it.
 */
export function runKeeper(runFolder: string, exit: () => void): void {
  process.umask(0o077)
  process.title = keeperTitle
  const keeper = openKeeper({ key: createSecretKey(readFileSync(0)), exit })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void keeper.end())
  process.on('SIGHUP', () => {})
  const { path } = keeperSocket(runFolder)
  // Of a keeper that was killed. A later keeper does the same to this one, so it is never removed at the end.
  rmSync(path, { force: true })
  createServer(socket => keeper.accept(socket)).listen({ path }, () => {
    process.stdout.on('error', () => {})
    process.stdout.write('ready\n')
    keeper.expect(firstConnectionMs)
  })
}
