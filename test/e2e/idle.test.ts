import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, test } from 'vitest'

/** Of the packed server before its first request; see "Resident memory" in bin/README.md. */
const maxResidentKb = 125_000

test('an idle server has less than 125 MB resident', async () => {
  const home = mkdtempSync(join(tmpdir(), 'infer-idle-'))
  const server = spawn(resolve('build/infer'), ['serve', '--listen', '127.0.0.1:0'], {
    env: { HOME: home, INFER_DATA_DIR: join(home, 'data') },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    for await (const line of createInterface(server.stdout)) if (line.startsWith('ready ')) break
    const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1])
    // V8 returns the memory of the start after some idle seconds.
    await expect.poll(resident, { interval: 500 }).toBeLessThan(maxResidentKb)
    expect(resident()).toBeGreaterThan(40_000)
  } finally {
    const exit = once(server, 'exit')
    server.kill('SIGKILL')
    await exit
    rmSync(home, { recursive: true, force: true })
  }
})
