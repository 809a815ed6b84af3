import type { FoundFfmpeg } from '../../core/media/ffmpeg.ts'
import type { DeviceReadings } from '../../core/models/fleet.ts'
import type { SandboxLevel } from '../../core/schemas/sandbox-level.ts'
import type { Device, Discovery } from '../../gpu/devices/device.ts'
import type { BackendReport } from '../../gpu/engines/gguf/backend.ts'
import type { BackendChoice } from '../../gpu/engines/gguf/choose-backend.ts'
import { effectiveLevel, type SandboxSupport, sandboxLimits } from '../../gpu/sandbox/level.ts'
import { readingsText, sizeText } from '../terminal/quantities-text.ts'
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

/** What the cores are used for. */
export const checkGatewayProcesses = ({ processes, cores }: { processes: number; cores: number }): Finding =>
  processes <= cores
    ? fine('gateway', processes === 1 ? 'one process accepts connections' : `${processes} processes accept connections`)
    : warning(
        'gateway',
        `${processes} processes accept connections, on ${cores} processor ${cores === 1 ? 'core' : 'cores'}`,
        'More processes than cores are slower: lower gateway_processes in infer.yaml, or remove the line.',
      )

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

/** `limitBytes`: what saved conversations may use, by `caches.memory`; `bytes`: what the file system for them has. */
export function checkSavedConversations({
  path,
  bytes,
  limitBytes,
}: {
  path: string
  bytes: number
  limitBytes: number
}) {
  const name = 'conversations'
  if (limitBytes === 0) return fine(name, 'are not saved when their model is unloaded: caches.memory is 0')
  if (bytes === 0)
    return warning(
      name,
      `are not saved when their model is unloaded: ${path} is not in main memory`,
      `Mount a tmpfs at ${path}. To save none without this warning, set caches.memory to 0.`,
    )
  return bytes >= limitBytes
    ? fine(name, `are saved when their model is unloaded, up to ${sizeText(limitBytes)}`)
    : warning(
        name,
        `${path} has ${sizeText(bytes)}, less than the ${sizeText(limitBytes)} that saved ones may use`,
        `Make it larger (--shm-size of docker and podman), or lower caches.memory.`,
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

const lostAdvice =
  'Reset the GPU (nvidia-smi -r -i <number>), or restart the machine. A running server then uses it again by itself.'

export function checkCards({
  devices,
  reason,
  broken: faulty,
  left = [],
  lost = [],
}: {
  devices: readonly (Pick<Device, 'id' | 'name' | 'totalBytes' | 'usedBytes'> & Partial<DeviceReadings>)[]
  reason: string | null
  broken: boolean
  left?: Discovery['left']
  lost?: Discovery['lost']
}): Finding {
  const unusable = lost.map(({ id, reason }) => `${id} cannot be used: ${reason.replace(/\.$/, '')}`)
  if (devices.length > 0) {
    const cards = devices.map(({ id, name, totalBytes, usedBytes, ...readings }) => {
      const free = usedBytes === null ? '' : `${sizeText(totalBytes - usedBytes)} free of `
      return [`${id} ${name}`, `${free}${sizeText(totalBytes)}`, readingsText(readings)].filter(Boolean).join(', ')
    })
    const all = [...cards, ...left.map(one => one.reason)]
    return lost.length === 0
      ? fine('GPUs', all.join('; '))
      : warning('GPUs', [...unusable, ...all].join('; '), `The other GPUs are used. ${lostAdvice}`)
  }
  if (lost.length > 0) return broken('GPUs', unusable.join('; '), lostAdvice)
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

/**
 * Judges the backends of llama.cpp. Without that of the processor the built-in engine cannot work at all. Where there are
 * cards that none of the others uses, one finding says what to do. `needed`: what the cards need; null without a card
 * worth it. Pure.
 */
export function checkBackends(reports: readonly BackendReport[], needed: BackendChoice | null): Finding[] {
  const isServed = reports.some(({ name, state }) => name !== 'cpu' && state === 'works')
  const isUnused = needed !== null && !isServed
  const findings = reports.flatMap(({ name, state, detail, advice }) => {
    const title = `backend ${name}`
    if (state === 'works') return fine(title, detail)
    if (name === 'cpu') return broken(title, detail, advice ?? 'Report this with the message above.')
    if (isUnused) return []
    return advice === null || isServed ? fine(title, detail) : warning(title, detail, advice)
  })
  return isUnused ? [unusedCards(reports, needed), ...findings] : findings
}

function unusedCards(reports: readonly BackendReport[], { backend, why, advice }: BackendChoice): Finding {
  const failed = reports.filter(({ name, state }) => name !== 'cpu' && state === 'fails')
  const failure = failed.map(({ name, detail }) => `${name}: ${detail}`).join('; ')
  const detail = failure === '' ? (backend === null ? why : `not installed; it would be ${why}`) : failure
  const chosen = failed.find(({ name }) => name === backend)
  return warning(
    'GPU backend',
    detail,
    chosen?.advice ??
      (backend === null ? (advice ?? 'Run nvidia-smi.') : 'Run: infer engine setup gpu (or: infer doctor --fix)'),
  )
}

/** Checks of image and video support. Pure: the caller passes the results of the tests. */

/** `fault`: why an image could not be decoded, as a sentence; undefined when it could. */
export const checkImageSupport = (fault: string | undefined): Finding =>
  fault === undefined
    ? fine('images', 'JPEG, PNG, WebP, GIF and AVIF can be read')
    : broken(
        'images',
        fault,
        'Without this the server can neither accept nor generate images. Repair what the message reports.',
      )

/** Engines make videos without ffmpeg; infer needs it to inspect them and to make thumbnails. */
export function checkFfmpegFound(found: FoundFfmpeg | { missing: string }): Finding {
  if ('missing' in found) {
    const [what, ...advice] = found.missing.split(/(?<=\.) /)
    return warning(
      'ffmpeg',
      `${what!.replace(/\.$/, '')}: requests cannot contain video or audio, and videos have no thumbnails`,
      advice.join(' '),
    )
  }
  const { ffmpeg, version, libx264, minterpolate } = found
  const missing = [
    libx264 ? [] : ['libx264 (H.264)'],
    minterpolate ? [] : ['minterpolate (frame interpolation)'],
  ].flat()
  return missing.length === 0
    ? fine('ffmpeg', `${version} (${ffmpeg})`)
    : warning(
        'ffmpeg',
        `${version} (${ffmpeg}) is built without ${missing.join(' and ')}`,
        'Install a full build, such as the package of your distribution, or set media.ffmpeg in infer.yaml to one.',
      )
}

/** A model whose engine this machine starts, and the sandbox level that it should have. */
export interface SandboxedModel {
  id: string
  level: SandboxLevel
  /** Whether its configuration names the level. */
  required: boolean
}

const advice =
  'Install bubblewrap (or util-linux) and allow user namespaces, or run infer as root. In a container, allow them there.'

/**
 * Reports the sandbox level of each model, and the limits of the level. A level that the configuration requires
 * and that cannot be enforced is `broken`, because the model is unavailable. Pure.
 */
export function checkSandbox(support: SandboxSupport, models: readonly SandboxedModel[]): Finding {
  const name = 'engine sandbox'
  const unavailable = models.filter(
    ({ level, required }) => required && effectiveLevel(level, support).missing !== null,
  )
  if (unavailable.length > 0) {
    const missing = unavailable.map(({ id, level }) => `${id}: '${level}' ${effectiveLevel(level, support).missing}`)
    return broken(name, `not available: ${missing.join('; ')}`, `${advice} Or change 'sandbox' in infer.yaml.`)
  }
  if (support.tool === null)
    return warning(name, `no sandbox works here (${support.why}): ${sandboxLimits.none}`, advice)
  const inForce = (level: SandboxLevel) =>
    models.filter(model => effectiveLevel(model.level, support).level === level).map(({ id }) => id)
  const levels = (['strict', 'files', 'none'] as const).flatMap(level => {
    const ids = inForce(level)
    return ids.length === 0 ? [] : [`'${level}' applies to ${ids.join(', ')}: ${sandboxLimits[level]}`]
  })
  const { userNamespace, ownProc, network } = support.tool
  const remarks = [
    ...(userNamespace ? [] : ['engines run as root, as infer does, but without most privileges']),
    ...(ownProc ? [] : ['engines see the names and command lines of all processes']),
  ]
  const detail = [support.tool.name, ...remarks, ...levels].join('; ')
  return network
    ? fine(name, detail)
    : warning(
        name,
        `${detail}; network namespaces do not work here, so 'files' is the strictest level that can be enforced`,
        advice,
      )
}

/** `missing`: a sentence for each configured path that does not exist. Pure. */
export function checkSandboxPaths(missing: readonly string[]): Finding {
  const name = 'sandbox paths'
  if (missing.length === 0) return fine(name, 'none is missing')
  return warning(name, missing.join(' '), 'Running engines see a new path after their next start.')
}
