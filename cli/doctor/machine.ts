import type { DeviceReadings } from '../../core/models/fleet.ts'
import type { Device } from '../../gpu/devices/device.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { readingsText } from '../terminal/readings-text.ts'
import { broken, type Finding, fine, warning } from './finding.ts'

/** Checks of this machine. Pure: the caller passes the measurements. */

export function checkProgram({
  version,
  packaged,
  node,
  path,
}: {
  version: string
  packaged: boolean
  node: string
  path: string
}): Finding {
  const form = packaged ? `one executable, ${path}` : `from its folder, Node ${node}`
  return Number(node.split('.')[0]) >= 24
    ? fine('program', `infer ${version} (${form})`)
    : broken('program', `infer ${version} on Node ${node}`, 'Run it with Node 24, or use the packed executable.')
}

/** Native parts are built against glibc 2.34. */
export function checkLibc(glibc: string | undefined): Finding {
  if (glibc === undefined)
    return broken(
      'system library',
      'this system has no glibc (Alpine and other musl systems)',
      'Use a distribution with glibc 2.34 or newer: Debian 12, Ubuntu 22.04, RHEL 10.',
    )
  const [major = 0, minor = 0] = glibc.split('.').map(Number)
  return major > 2 || (major === 2 && minor >= 34)
    ? fine('system library', `glibc ${glibc}`)
    : broken(
        'system library',
        `glibc ${glibc} is older than 2.34`,
        'Use a newer distribution: Debian 12, Ubuntu 22.04, RHEL 10.',
      )
}

/** Each connection and each stream needs one open file; the server is designed for ten thousand clients. */
export function checkOpenFiles(limit: number): Finding {
  return limit >= 4096
    ? fine('open files', `up to ${Number.isFinite(limit) ? limit : 'any number'} at once`)
    : warning(
        'open files',
        `only ${limit} at once, so fewer connections`,
        'Raise it: ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit.',
      )
}

export function checkMemory({
  totalBytes,
  limitBytes,
  cores,
  oomScore,
}: {
  totalBytes: number
  limitBytes: number
  cores: number
  oomScore: number | undefined
}): Finding {
  const cap = limitBytes < totalBytes ? ` (control group limit; the machine has ${sizeText(totalBytes)})` : ''
  const detail = `${sizeText(Math.min(limitBytes, totalBytes))}${cap}, ${cores} ${cores === 1 ? 'core' : 'cores'}`
  return oomScore !== undefined && oomScore > 0
    ? warning(
        'memory',
        `${detail}; oom_score_adj is ${oomScore}`,
        'Under memory pressure the kernel kills the server before other processes. In the systemd unit: OOMScoreAdjust=-500.',
      )
    : fine('memory', detail)
}

/** Checks the wrapper that keeps engines from outliving the server. */
export function checkWrapper({
  wrapper,
  tried,
}: {
  wrapper: { name: string; promise: string }
  tried: readonly { command: string; why: string | null }[]
}): Finding {
  if (wrapper.name !== 'plain') return fine('engine wrapper', `${wrapper.name}: ${wrapper.promise}`)
  const why = tried.map(({ command, why }) => `${command.split(' ')[0]}: ${why}`)
  return warning(
    'engine wrapper',
    `none works here (${[...new Set(why)].join('; ')}). ${wrapper.promise}`,
    'Install util-linux and allow user namespaces, or install bubblewrap.',
  )
}

export function checkCards({
  devices,
  reason,
  broken: faulty,
}: {
  devices: readonly (Pick<Device, 'id' | 'name' | 'totalBytes' | 'usedBytes'> & Partial<DeviceReadings>)[]
  reason: string | null
  broken: boolean
}): Finding {
  if (devices.length > 0) {
    const cards = devices.map(({ id, name, totalBytes, usedBytes, ...readings }) => {
      const free = usedBytes === null ? '' : `${sizeText(totalBytes - usedBytes)} free of `
      return [`${id} ${name}`, `${free}${sizeText(totalBytes)}`, readingsText(readings)].filter(Boolean).join(', ')
    })
    return fine('GPUs', cards.join('; '))
  }
  if (faulty)
    return broken(
      'GPUs',
      reason ?? 'there are GPUs, but they cannot be used',
      'Run nvidia-smi and repair what it reports.',
    )
  return fine('GPUs', `${reason ?? 'none'} Models run on the processor.`)
}

/** Returns "Max open files" of /proc/self/limits; infinity when unlimited or unknown. */
export function openFilesLimit(limits: string): number {
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1]
  return soft === undefined || soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft)
}
