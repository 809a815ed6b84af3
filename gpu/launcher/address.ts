import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Endpoint } from './launcher.ts'

/** The kernel's bound for the path of a socket file is 108 bytes with its final zero. */
const longestSocketPath = 104

/**
 * Hands out addresses for engines: a socket file in a directory that only we may enter, or a free loopback port.
 * A port is free when it is looked up and may be taken a moment later; whoever starts an engine tries again then.
 */
export function openAddresses(runDirectory: string) {
  const taken = new Set<number>()
  let sockets: string | undefined
  let temporary: string | undefined

  function socketDirectory(): string {
    if (sockets) return sockets
    mkdirSync(runDirectory, { recursive: true, mode: 0o700 })
    const fits = Buffer.byteLength(join(runDirectory, 'x'.repeat(24))) <= longestSocketPath
    if (!fits) temporary = mkdtempSync(join(tmpdir(), 'infer-'))
    sockets = temporary ?? runDirectory
    return sockets
  }

  return {
    async take(channel: 'port' | 'socket', launchId: string): Promise<{ endpoint: Endpoint; port: number | null }> {
      if (channel === 'socket') {
        const socketPath = join(socketDirectory(), `${launchId.slice(-18)}.sock`)
        rmSync(socketPath, { force: true })
        return { endpoint: { origin: 'http://engine', socketPath }, port: null }
      }
      let port = await freePort()
      while (taken.has(port)) port = await freePort()
      taken.add(port)
      return { endpoint: { origin: `http://127.0.0.1:${port}` }, port }
    },
    give(endpoint: Endpoint, port: number | null): void {
      if (port !== null) taken.delete(port)
      if (endpoint.socketPath) rmSync(endpoint.socketPath, { force: true })
    },
    close(): void {
      if (temporary) rmSync(temporary, { recursive: true, force: true })
    },
  }
}

const freePort = (): Promise<number> =>
  new Promise((found, failed) => {
    const server = createServer()
    server.once('error', failed)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => found(port))
    })
  })
