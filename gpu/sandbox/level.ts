import type { SandboxLevel } from '../../core/schemas/sandbox-level.ts'
import type { DeviceFiles } from './system.ts'

export interface SandboxRequirements {
  level: SandboxLevel
  /** Whether the configuration sets the level: then the engine is refused if the level cannot be enforced. */
  required: boolean
  /** Additional absolute paths that the engine may read or write. Missing paths are ignored. */
  read: readonly string[]
  write: readonly string[]
  /** Programs that the engine starts, by name or path. */
  programs: readonly string[]
  /** The groups of device files that it needs for its cards; absent: none. */
  devices?: readonly DeviceFiles[]
}

export const unconfined: SandboxRequirements = { level: 'none', required: false, read: [], write: [], programs: [] }

export interface SandboxTool {
  name: 'bubblewrap' | 'unshare'
  /** Absolute paths of its programs, by name. */
  programs: Readonly<Record<string, string>>
  /** Whether it creates a user namespace. Without one it needs root, and engines run as root without capabilities. */
  userNamespace: boolean
  /**
   * Whether engines get a separate /proc. Otherwise they see the host's /proc, where the user namespace lets them read
   * only process names and command lines.
   */
  ownProc: boolean
  /** Whether network namespaces can be created. */
  network: boolean
}

/**
 * The capabilities that an engine running as root keeps, to read models of other users and to lock memory. Without
 * the others it cannot mount file systems, create devices or inspect other processes.
 */
export const keptCapabilities = ['dac_override', 'ipc_lock']

/** The tool, or the reason why there is none, as the end of a sentence. */
export type SandboxSupport = { tool: SandboxTool } | { tool: null; why: string }

/**
 * Returns the level that this machine can enforce, and why it is lower than the requested one, as a sentence without its
 * subject; null if it is not. Pure.
 */
export function effectiveLevel(
  requested: SandboxLevel,
  support: SandboxSupport,
): { level: SandboxLevel; missing: string | null } {
  if (requested === 'none') return { level: 'none', missing: null }
  if (support.tool === null) return { level: 'none', missing: `cannot be enforced on this machine: ${support.why}` }
  if (requested === 'strict' && !support.tool.network)
    return {
      level: 'files',
      missing: 'cannot be enforced on this machine: it cannot create a network namespace, so only `files` is possible',
    }
  return { level: requested, missing: null }
}

/** If the configured sandbox of a model cannot be enforced here: the reason, as a sentence. */
export function sandboxRefusal(
  modelId: string,
  { level, required }: Pick<SandboxRequirements, 'level' | 'required'>,
  support: SandboxSupport,
): string | undefined {
  const { missing } = effectiveLevel(level, support)
  return required && missing !== null
    ? `The sandbox '${level}' of '${modelId}' ${missing}. Run infer doctor, or change 'sandbox' in infer.yaml.`
    : undefined
}

/** The warning to log at start, as a sentence; undefined if every level can be enforced. */
export function sandboxWarning(support: SandboxSupport): string | undefined {
  if (support.tool === null)
    return `Engines run without a sandbox and can read the data directory with its keys: ${support.why}. Run infer doctor to see what to do.`
  return support.tool.network
    ? undefined
    : 'Engines can reach the network: this machine cannot create a network namespace.'
}

/** The limits of each level, for users who choose one: sentences in lower case, without a full stop. */
export const sandboxLimits: Record<SandboxLevel, string> = {
  strict:
    'it does not limit the use of CPU, memory, disk and GPU, or protect against bugs in the kernel and the GPU driver',
  files:
    'it does not block the network, including this server and other local services, limit the use of CPU, memory, disk and GPU, or protect against bugs in the kernel and the GPU driver',
  none: 'engines can do what the user who runs infer can do, including reading the database and the keys',
}
