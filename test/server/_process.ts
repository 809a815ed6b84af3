import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { fakeEngine } from '../_app.ts'

/** A fake engine that the server started, as the machine sees it. */
export interface EngineProcess {
  pid: number
  stats(): Promise<{ requests: number; running: number }>
}

/** The command lines of this machine's fake engines that were given `--id name`. */
function find(name: string): { pid: number; port: number } | undefined {
  for (const pid of readdirSync('/proc').filter(entry => /^\d+$/.test(entry))) {
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      const after = (flag: string) => argv[argv.indexOf(flag) + 1]
      // What wraps it has the same words behind a program of its own.
      if (argv[0] === process.execPath && argv[1] === fakeEngine && argv.includes('--id') && after('--id') === name)
        return { pid: Number(pid), port: Number(after('--port')) }
    } catch {
      // It ended while it was looked at.
    }
  }
  return undefined
}

/** The engine of that name, once it runs. */
export async function engineProcess(name: string): Promise<EngineProcess> {
  await expect.poll(() => find(name), { timeout: 30_000 }).toBeDefined()
  const { pid, port } = find(name)!
  return {
    pid,
    stats: async () =>
      (await (await fetch(`http://127.0.0.1:${port}/stats`)).json()) as { requests: number; running: number },
  }
}
