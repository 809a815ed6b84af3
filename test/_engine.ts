import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fakeEngine } from './_app.ts'

/** A fake engine for one test, for checks from the side of the engine. */
export interface OwnEngine extends AsyncDisposable {
  url: string
  pid: number
  stats(): Promise<{
    requests: number
    running: number
    maxRunning: number
    finished: number
    aborted: number
    connections: number
  }>
  /** Resolves with the stats once they satisfy the condition. */
  until(
    seen: (stats: Awaited<ReturnType<OwnEngine['stats']>>) => boolean,
  ): Promise<Awaited<ReturnType<OwnEngine['stats']>>>
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

export async function startEngine(flags: string[] = []): Promise<OwnEngine> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = spawn(process.execPath, [fakeEngine, '--port', String(port), ...flags], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const stats = async () => (await (await fetch(`${url}/stats`)).json()) as Awaited<ReturnType<OwnEngine['stats']>>
  const patiently = async <T>(ask: () => Promise<T | undefined>): Promise<T> => {
    const deadline = performance.now() + 20_000
    for (;;) {
      const found = await ask().catch(() => undefined)
      if (found !== undefined) return found
      if (performance.now() > deadline)
        throw new Error(`The fake engine was never seen so: ${JSON.stringify(await stats().catch(String))}`)
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  await patiently(stats)
  return {
    url,
    pid: child.pid!,
    stats,
    until: seen =>
      patiently(async () => {
        const now = await stats()
        return seen(now) ? now : undefined
      }),
    async [Symbol.asyncDispose]() {
      child.kill('SIGCONT')
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    },
  }
}
