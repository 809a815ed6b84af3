import { availableParallelism, cpus, totalmem } from 'node:os'
import { optionalText } from '../../core/optional-file.ts'
import { type Device, noReadings } from './device.ts'

/**
 * The processor as a device. Memory and cores are those that this process may use: in a container the limits of its
 * control groups. A model server with one thread for every core of the host would be very slow there.
 */
export function cpuDevice(machine = thisMachine()): Device {
  const groups = controlGroups(machine.read('/proc/self/cgroup') ?? '')
  const lowestLimit = (limit: (read: (name: string) => string | undefined, version: 1 | 2) => number | undefined) =>
    Math.min(
      ...groups.map(
        group => limit(name => machine.read(`${group.path}/${name}`), group.version) ?? Number.POSITIVE_INFINITY,
      ),
    )
  const memory = lowestLimit((read, version) => positive(read(version === 2 ? 'memory.max' : 'memory.limit_in_bytes')))
  const cores = lowestLimit((read, version) => {
    const [quota, period] =
      version === 2
        ? (read('cpu.max')?.trim().split(' ') ?? [])
        : [read('cpu.cfs_quota_us')?.trim(), read('cpu.cfs_period_us')?.trim()]
    const share = Number(quota) / Number(period)
    return share > 0 ? share : undefined
  })
  const usable = Math.max(1, Math.floor(Math.min(machine.cores, cores)))
  const physical = Math.ceil(machine.cores / coreThreads(machine.read('/proc/cpuinfo') ?? ''))
  return {
    id: 'cpu',
    kind: 'cpu',
    name: machine.model,
    totalBytes: Math.min(machine.totalBytes, memory),
    usedBytes: null,
    ...noReadings,
    cudaId: null,
    uuid: null,
    cores: usable,
    physicalCores: Math.min(usable, physical),
  }
}

/** Hardware threads of one core by /proc/cpuinfo; 1 where it does not name the cores. */
function coreThreads(cpuinfo: string): number {
  const all = cpuinfo.match(/^physical id\s*:.*\n(?:.+\n)*?core id\s*:.*$/gm) ?? []
  const cores = new Set(all.map(text => (text.match(/^(?:physical|core) id\s*:.*$/gm) ?? []).join()))
  return Math.max(1, Math.round(all.length / Math.max(1, cores.size)))
}

const positive = (text: string | undefined): number | undefined => (Number(text) > 0 ? Number(text) : undefined)

/** The control groups of this process up to the root, its own first. The lowest of their limits applies. */
function controlGroups(listing: string): { path: string; version: 1 | 2 }[] {
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

const thisMachine = () => ({
  /** Returns the text of a file; undefined when it cannot be read. */
  read: optionalText,
  totalBytes: totalmem(),
  cores: availableParallelism(),
  model: cpus()[0]?.model.trim() || 'CPU',
})
