import { realpathSync } from 'node:fs'
import { packaged } from '../../core/assets.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { protocolVersion, type ServeFlags } from './protocol.ts'
import { takeOver } from './take-over.ts'

/** Returns the executable of this process and the arguments before its command, with absolute paths. */
export const thisProgram = (): string[] =>
  packaged
    ? [realpathSync(process.execPath)]
    : [realpathSync(process.execPath), ...process.execArgv, realpathSync(process.argv[1] ?? '')]

/**
 * Replaces the running server by one of this program, or of `program`, and prints what happens. Rejects with Failure
 * `conflict` if the new one cannot take over.
 */
export async function replaceServer(
  {
    dataDir,
    pid,
    flags,
    program = thisProgram(),
    fallback,
    json,
  }: {
    dataDir: string
    pid: number
    flags: ServeFlags
    program?: string[]
    fallback?: string[] | undefined
    json?: boolean | undefined
  },
  terminal: Terminal,
): Promise<void> {
  const next = await takeOver({ dataDir, pid }, { protocol: protocolVersion, program, flags, fallback }, text =>
    terminal.remark(text),
  )
  terminal.result(
    json,
    { pid: next, previous_pid: pid },
    `The new server serves (process ${next}). The old one (process ${pid}) ends when its last requests have ended.`,
  )
}
