import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { type Device, noReadings } from './device.ts'

export interface Machine {
  /** The text of a file, or undefined when it is not there. */
  read(path: string): string | undefined
  totalBytes: number
  cores: number
  model: string
}

/**
 * The processor as a device of its own. Memory and cores are what this process may use: in a container that is the
 * control group's limit, and a model server that starts a thread for every core of the host crawls there.
 */
export function cpuDevice(machine: Machine = thisMachine()): Device {
  const groups = directories(machine.read('/proc/self/cgroup') ?? '')
  const least = (ofGroup: (read: (name: string) => string | undefined, version: 1 | 2) => number | undefined) =>
    Math.min(
      ...groups.map(
        group => ofGroup(name => machine.read(`${group.path}/${name}`), group.version) ?? Number.POSITIVE_INFINITY,
      ),
    )
  const memory = least((read, version) => positive(read(version === 2 ? 'memory.max' : 'memory.limit_in_bytes')))
  const cores = least((read, version) => {
    const [quota, period] =
      version === 2
        ? (read('cpu.max')?.trim().split(' ') ?? [])
        : [read('cpu.cfs_quota_us')?.trim(), read('cpu.cfs_period_us')?.trim()]
    const share = Number(quota) / Number(period)
    return share > 0 ? share : undefined
  })
  return {
    id: 'cpu',
    kind: 'cpu',
    name: machine.model,
    totalBytes: Math.min(machine.totalBytes, memory),
    usedBytes: null,
    ...noReadings,
    cudaId: null,
    uuid: null,
    cores: Math.max(1, Math.floor(Math.min(machine.cores, cores))),
  }
}

const positive = (text: string | undefined): number | undefined => (Number(text) > 0 ? Number(text) : undefined)

/** Every control group above this process, its own first: the tightest limit of them all counts. */
function directories(listing: string): { path: string; version: 1 | 2 }[] {
  return listing.split('\n').flatMap(line => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    if (controllers === undefined || path === undefined) return []
    const roots =
      controllers === ''
        ? ['/sys/fs/cgroup']
        : controllers
            .split(',')
            .filter(name => name === 'memory' || name === 'cpu')
            .map(name => `/sys/fs/cgroup/${name}`)
    const parts = path.split('/').filter(Boolean)
    const paths = Array.from({ length: parts.length + 1 }, (_, up) =>
      ['', ...parts.slice(0, parts.length - up)].join('/'),
    )
    return roots.flatMap(root =>
      paths.map(below => ({ path: root + below, version: controllers === '' ? (2 as const) : (1 as const) })),
    )
  })
}

function thisMachine(): Machine {
  return {
    read: path => {
      try {
        return readFileSync(path, 'utf8')
      } catch {
        return undefined
      }
    },
    totalBytes: totalmem(),
    cores: availableParallelism(),
    model: cpus()[0]?.model.trim() || 'CPU',
  }
}
