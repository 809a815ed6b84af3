import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { openAsIs } from '../../../core/store/sqlite/database.ts'
import { freePort } from '../../../gpu/launcher/address.ts'
import { fakeEngine } from '../../_app.ts'
import { inferProcess } from '../_infer.ts'

/** Whether a process runs, after it got the signal. */
export function isAlive(pid: number, signal: NodeJS.Signals | 0 = 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** Starts the fake engine on a port of its own. Resolves with its address. */
export async function startEngine(): Promise<string> {
  const port = await freePort()
  const engine = spawn(process.execPath, [fakeEngine, '--port', String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void engine.kill('SIGKILL'))
  const url = `http://127.0.0.1:${port}`
  const isReady = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(isReady).toBe(true)
  return url
}

/** Lets a new server take over, which the end of the test stops. Resolves with what the command wrote, and its process. */
export async function takeOver(dataDir: string, ...more: string[]) {
  const result = await inferProcess(['serve', '--takeover', '--data-dir', dataDir, ...more])
  const pid = Number(/process (\d+)\)/.exec(result.stdout)?.[1])
  if (pid) stopAtEnd(pid)
  return { ...result, pid }
}

/** Stops a server when the test ends: one that took over is no child of the test. */
export function stopAtEnd(pid: number): void {
  onTestFinished(async () => {
    if (isAlive(pid, 'SIGTERM')) await expect.poll(() => isAlive(pid)).toBe(false)
  })
}

/** Not 'close': the server that took over has the same standard output. */
export const exitOf = async (child: ChildProcess): Promise<number | null> =>
  child.exitCode ?? ((await once(child, 'exit')) as [number | null])[0]

/** How many calls and jobs were billed. */
export function billed(dataDir: string): number {
  const database = openAsIs(join(dataDir, 'infer.db'), { readonly: true })
  try {
    return database.prepare('SELECT count(*) FROM ledger').pluck().get() as number
  } finally {
    database.close()
  }
}

export const secretOf = (dataDir: string): string => readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
