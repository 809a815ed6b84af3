import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where a running server can be reached and which process it is: `server.json` in the data directory while it runs. */
export interface ServerFile {
  /** Base address without a slash at its end, such as `http://127.0.0.1:8787`. */
  url: string
  pid: number
  /** PEM: the only certificate that commands accept from it. Undefined for HTTP. */
  certificate?: string | undefined
}

const place = (dataDir: string): string => join(dataDir, 'server.json')

/** Writes the file of the server that this process runs. Renamed into place, so that a command never reads half of it. */
export function writeServerFile(dataDir: string, { url, certificate }: Omit<ServerFile, 'pid'>): void {
  const path = place(dataDir)
  writeFileSync(`${path}.new`, JSON.stringify({ url, pid: process.pid, certificate }), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Removes the file of a server that has stopped. */
export function removeServerFile(dataDir: string): void {
  rmSync(place(dataDir), { force: true })
}

/** The file as it stands, also when the process it names is gone; undefined when there is none that can be read. */
function readServerFile(dataDir: string): ServerFile | undefined {
  try {
    const { url, pid, certificate } = JSON.parse(readFileSync(place(dataDir), 'utf8')) as Partial<ServerFile>
    return typeof url === 'string' && URL.canParse(url) && Number.isInteger(pid)
      ? { url, pid: pid!, ...(typeof certificate === 'string' ? { certificate } : {}) }
      : undefined
  } catch {
    return undefined
  }
}

/** The server that runs on this data directory now, or undefined. A killed server leaves its file behind. */
export function runningServer(dataDir: string): ServerFile | undefined {
  const server = readServerFile(dataDir)
  return server && isAlive(server.pid) ? server : undefined
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // A process of somebody else is alive too.
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}
