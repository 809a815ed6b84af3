import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { deferContinue } from '../http/body/unread-body.ts'
import { acceptForwarded } from './forwarded.ts'

/** Bytes of the longest path of a Unix socket. */
const longestPath = 107
/** How many connections may wait until they are accepted, as at the address of the server; at most net.core.somaxconn. */
const backlog = 4096

export interface ControlSocketOptions {
  dataDir: string
  handler: RequestListener
  asksForWebSocket: (req: IncomingMessage) => boolean
  upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/**
 * Opens the Unix socket on which control takes the requests of its fronts, readable for this user only. Limits of time and
 * size are those of the fronts. Requests without the secret get no answer.
 */
export async function openControlSocket({ dataDir, handler, asksForWebSocket, upgrade }: ControlSocketOptions) {
  const secret = randomBytes(24).toString('base64url')
  const path = socketPath(dataDir)
  const ours = (req: IncomingMessage) => {
    if (acceptForwarded(req, secret)) return true
    req.socket.destroy()
    return false
  }
  const server = createServer(
    {
      maxHeaderSize: 32 << 10,
      insecureHTTPParser: false,
      requireHostHeader: false,
      keepAliveTimeout: 0,
      headersTimeout: 0,
      requestTimeout: 0,
      highWaterMark: 16 << 10,
      shouldUpgradeCallback: asksForWebSocket,
    },
    (req, res) => {
      if (ours(req)) handler(req, res)
    },
  )
  server.on('checkContinue', (req, res) => {
    if (!ours(req)) return
    deferContinue(req, res)
    handler(req, res)
  })
  server.on('upgrade', (req, socket, head) => ours(req) && upgrade(req, socket, head))
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen({ path, backlog }, resolve))
  return {
    path,
    secret,
    async close(): Promise<void> {
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}
export type ControlSocket = Awaited<ReturnType<typeof openControlSocket>>

/** Returns the path of the socket of this process, and removes those of processes that were killed. */
function socketPath(dataDir: string): string {
  const folder = join(dataDir, 'run')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(folder)) {
    const pid = /^gateway-(\d+)\.sock$/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { force: true })
  }
  const name = `gateway-${process.pid}.sock`
  const path = join(folder, name)
  return Buffer.byteLength(path) <= longestPath ? path : join(mkdtempSync(join(tmpdir(), 'infer-')), name)
}

function isRunning(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
