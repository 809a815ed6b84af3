import { readlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { optionalNames, optionalText } from './optional-file.ts'

/** The process that listens on a port. */
export interface PortHolder {
  pid: number
  /** The name of its program, such as `nginx`. */
  program: string
  /** The data directory of an infer server; undefined for any other program. */
  dataDir: string | undefined
  /** Whether it is a gateway process of infer: where its server runs, that is found first. */
  isGateway: boolean
}

/**
 * Finds the process that listens on a TCP port, from the tables of Linux in /proc. Undefined when nothing listens there,
 * or when the process belongs to a user whose /proc entries we cannot read.
 */
export function findPortHolder(port: number): PortHolder | undefined {
  const sockets = new Set(
    ['/proc/net/tcp', '/proc/net/tcp6'].flatMap(path => listeningInodes(optionalText(path) ?? '', port)),
  )
  if (sockets.size === 0) return undefined
  for (const pid of optionalNames('/proc').filter(name => /^\d+$/.test(name))) {
    const files = openFiles(pid)
    if (!files.some(file => sockets.has(file))) continue
    const lock = files.find(file => file.endsWith('/instance.lock'))
    return {
      pid: Number(pid),
      program: basename(readLink(`/proc/${pid}/exe`)),
      dataDir: lock === undefined ? undefined : dirname(lock),
      isGateway: optionalText(`/proc/${pid}/cmdline`)?.split('\0').includes('__front') ?? false,
    }
  }
  return undefined
}

/** Returns `socket:[inode]` of each socket that listens on the port, from a table in the form of /proc/net/tcp. */
export function listeningInodes(table: string, port: number): string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return table
    .split('\n')
    .slice(1)
    .map(line => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === '0A' && local?.endsWith(end))
    .map(fields => `socket:[${fields[9]}]`)
}

/** Returns what each file descriptor of a process refers to. */
const openFiles = (pid: string): string[] =>
  optionalNames(`/proc/${pid}/fd`).map(fd => readLink(`/proc/${pid}/fd/${fd}`))

function readLink(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
