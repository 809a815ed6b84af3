import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { fakeEngine } from '../_app.ts'

/** A fake engine that the server started, as seen in /proc. */
export interface EngineProcess {
  pid: number
  stats(): Promise<{ requests: number; running: number }>
}

/** The command lines of the fake engines on this machine that were given `--id name`. */
function find(name: string): { pid: number; port: number } | undefined {
  for (const pid of readdirSync('/proc').filter(entry => /^\d+$/.test(entry))) {
    try {
      const argv = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      const after = (flag: string) => argv[argv.indexOf(flag) + 1]
      // A wrapper has the same arguments behind its own program.
      if (argv[0] === process.execPath && argv[1] === fakeEngine && argv.includes('--id') && after('--id') === name)
        return { pid: Number(pid), port: Number(after('--port')) }
    } catch {
      // The process ended while it was read.
    }
  }
  return undefined
}

/** The engine of that name, once it runs. */
export async function engineProcess(name: string): Promise<EngineProcess> {
  await expect.poll(() => find(name)).toBeDefined()
  const { pid, port } = find(name)!
  return {
    pid,
    stats: async () =>
      (await (await fetch(`http://127.0.0.1:${port}/stats`)).json()) as { requests: number; running: number },
  }
}
