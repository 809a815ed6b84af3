import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Where a running server can be reached and which process it is: `server.json` in the data directory while it runs. */
export interface ServerFile {
  /** Base address without a slash at its end, such as `http://127.0.0.1:8787`. */
  url: string
  pid: number
}

/** The file as it stands, also when the process it names is gone; undefined when there is none that can be read. */
function readServerFile(dataDir: string): ServerFile | undefined {
  try {
    const { url, pid } = JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8')) as Partial<ServerFile>
    return typeof url === 'string' && URL.canParse(url) && Number.isInteger(pid) ? { url, pid: pid! } : undefined
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
