import { readdir, readFile, readlink } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { keeperTitle } from './keeper-socket.ts'
import { identityOf, type ProcessIdentity, signal } from './processes.ts'

/** Milliseconds after which a keeper that was told to end is killed, and in which it must be gone then. */
const waitMs = { end: 4_000, kill: 2_000 }

/**
 * Ends every keeper of this folder, whatever its version and key, and its engines with it. Resolves with those that still run.
 * For a caller that holds the lock of the data directory.
 */
export async function endKeepers(run: string): Promise<ProcessIdentity[]> {
  let alive = await keepersOf(run)
  for (const [name, ms] of [
    ['SIGTERM', waitMs.end],
    ['SIGKILL', waitMs.kill],
  ] as const) {
    for (const one of alive) await signal(one, name)
    const deadline = performance.now() + ms
    while (alive.length > 0 && performance.now() < deadline) {
      await pause(20)
      const now = await Promise.all(alive.map(({ pid }) => identityOf(pid)))
      alive = alive.filter(({ startTime }, at) => now[at]?.startTime === startTime)
    }
  }
  return alive
}

async function keepersOf(run: string): Promise<ProcessIdentity[]> {
  const found: ProcessIdentity[] = []
  for (const pid of (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))) {
    if ((await readlink(`/proc/${pid}/cwd`).catch(() => null)) !== run) continue
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    const identity = command.startsWith(keeperTitle) ? await identityOf(Number(pid)) : undefined
    if (identity) found.push(identity)
  }
  return found
}
