import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'vitest'
import { stringify } from 'yaml'
import { fronts } from '../_app.ts'
import { lastingPort } from '../e2e/_home.ts'

/** A server in a child process, on the same data and the same address after every kill. */
export async function openKillable(models: readonly object[] = []) {
  const dataDir = mkdtempSync(join(tmpdir(), 'infer-test-'))
  const configPath = join(dataDir, 'infer.yaml')
  writeFileSync(configPath, stringify({ models, ...fronts, limits: { min_free_disk: 0, ballast: 0 } }))
  const address = `127.0.0.1:${await lastingPort()}`
  const url = `http://${address}`
  const flags = ['--data-dir', dataDir, '--config', configPath, '--listen', address]
  let child: ChildProcess | undefined
  /** What the server has said since its last start. */
  const outputPath = join(dataDir, 'output')
  const secret = () => readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  /** Ends the server as a crash does. */
  async function kill(): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  const launch = (): void => {
    const output = openSync(outputPath, 'w')
    child = spawn(process.execPath, [resolve('dist/main.cjs'), 'serve', ...flags], {
      stdio: ['ignore', output, output],
    })
    closeSync(output)
  }
  return {
    url,
    dataDir,
    secret,
    kill,
    /** Starts the server, and does not wait until it answers. */
    launch,
    async start(this: void): Promise<void> {
      launch()
      const ready = () =>
        fetch(`${url}/readyz`).then(
          ({ status }) => status,
          () => `The server does not answer. It has said:\n${readFileSync(outputPath, 'utf8').slice(-4_000)}`,
        )
      await expect.poll(ready).toBe(200)
    },
    /** The answer to a request as JSON: a POST if it has a body. */
    async call<Answer>(this: void, path: string, body?: object): Promise<Answer> {
      const response = await fetch(url + path, {
        method: body ? 'POST' : 'GET',
        headers: { authorization: `Bearer ${secret()}`, 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      })
      return (await response.json()) as Answer
    },
    async [Symbol.asyncDispose]() {
      await kill()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}
