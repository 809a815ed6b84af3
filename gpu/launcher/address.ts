import { mkdirSync, mkdtempSync, realpathSync, rmdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { removeTree } from '../../core/files/remove-tree.ts'
import type { Endpoint } from './launcher.ts'

/** The kernel limits the path of a socket file to 108 bytes, including the final zero byte. */
const longestSocketPath = 104

/**
 * Allocates addresses for engines: a socket file in a separate directory with mode 0700, or a free loopback port.
 * In a sandbox an engine sees its own socket directory only.
 * Another process may take a free port before the engine binds it; the caller then retries the start.
 */
export function openEngineAddresses(runDirectory: string) {
  const taken = new Set<number>()
  let sockets: string | undefined
  let temporary: string | undefined

  function socketDirectory(): string {
    if (sockets) return sockets
    mkdirSync(runDirectory, { recursive: true, mode: 0o700 })
    const fits = Buffer.byteLength(join(runDirectory, 'x'.repeat(24))) <= longestSocketPath
    if (!fits) temporary = realpathSync(mkdtempSync(join(tmpdir(), 'infer-')))
    sockets = temporary ?? runDirectory
    return sockets
  }

  return {
    async take(channel: 'port' | 'socket', launchId: string): Promise<{ endpoint: Endpoint; port: number | null }> {
      if (channel === 'socket') {
        const directory = join(socketDirectory(), launchId.slice(-18))
        const socketPath = join(directory, 's')
        rmSync(socketPath, { force: true })
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        return { endpoint: { origin: 'http://engine', socketPath }, port: null }
      }
      let port = await freePort()
      while (taken.has(port)) port = await freePort()
      taken.add(port)
      return { endpoint: { origin: `http://127.0.0.1:${port}` }, port }
    },
    /** The port of an engine that was started by an earlier server. */
    adopt(port: number | null): void {
      if (port !== null) taken.add(port)
    },
    release({ socketPath }: Endpoint, port: number | null): void {
      if (port !== null) taken.delete(port)
      if (!socketPath) return
      const directory = dirname(socketPath)
      const parent = dirname(directory)
      removeDirectory(directory, socketPath, () => {
        // That of an earlier server, whose last engine this was.
        if (parent !== runDirectory && parent !== temporary) removeIfEmpty(parent)
      })
    },
    /** Another server gets the engines: their sockets stay where they are. */
    leave(): void {
      if (temporary) removeIfEmpty(temporary)
      temporary = undefined
    },
    close(): void {
      if (temporary) rmSync(temporary, { recursive: true, force: true })
    },
  }
}

/** If the engine put other files there, the directory is removed asynchronously. */
function removeDirectory(directory: string, socket: string, removed: () => void): void {
  try {
    rmSync(socket, { force: true })
    rmdirSync(directory)
    removed()
  } catch {
    void removeTree(directory).then(removed, () => {})
  }
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory)
  } catch {
    // Others have sockets there.
  }
}

/** A port of this machine that nothing listens on now. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
