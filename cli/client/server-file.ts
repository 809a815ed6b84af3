import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Address and process of a running server: the content of `server.json` in the data directory. */
export interface ServerFile {
  /** Base URL without a trailing slash, such as `http://127.0.0.1:8787`. */
  url: string
  pid: number
  /** The address of its socket, such as `0.0.0.0:8787`. */
  listen?: string | undefined
  /** PEM: the only certificate that commands accept from it. Undefined for HTTP. */
  certificate?: string | undefined
}

const filePath = (dataDir: string): string => join(dataDir, 'server.json')

/** Writes the file for this process's server. Renames it into place, so that a command never reads half of it. */
export function writeServerFile(dataDir: string, { url, listen, certificate }: Omit<ServerFile, 'pid'>): void {
  const path = filePath(dataDir)
  writeFileSync(`${path}.new`, JSON.stringify({ url, pid: process.pid, listen, certificate }), { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

/** Removes the file of a server that has stopped. */
export function removeServerFile(dataDir: string): void {
  rmSync(filePath(dataDir), { force: true })
}

/** Reads the file, even if its process has ended; undefined when there is no readable file. */
function readServerFile(dataDir: string): ServerFile | undefined {
  try {
    const { url, pid, listen, certificate } = JSON.parse(readFileSync(filePath(dataDir), 'utf8')) as Partial<ServerFile>
    return typeof url === 'string' && URL.canParse(url) && Number.isInteger(pid)
      ? {
          url,
          pid: pid!,
          ...(typeof listen === 'string' ? { listen } : {}),
          ...(typeof certificate === 'string' ? { certificate } : {}),
        }
      : undefined
  } catch {
    return undefined
  }
}

/** Returns the server that runs on this data directory, or undefined. A killed server leaves its file behind. */
export function runningServer(dataDir: string): ServerFile | undefined {
  const server = readServerFile(dataDir)
  return server && isAlive(server.pid) ? server : undefined
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (cause) {
    // EPERM: the process is alive and belongs to another user.
    return (cause as NodeJS.ErrnoException).code === 'EPERM'
  }
}
