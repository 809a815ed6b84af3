import type { SandboxLevel } from '../../core/schemas/sandbox-level.ts'

/** What a model needs of a sandbox. */
export interface SandboxRequirements {
  level: SandboxLevel
  /** Whether the configuration names the level: then the engine does not run with less. */
  required: boolean
  /** Absolute paths that the engine reads or writes besides the usual ones. Paths that do not exist are left out. */
  read: readonly string[]
  write: readonly string[]
  /** Programs that it starts, by name or path. */
  programs: readonly string[]
}

/** No sandbox at all. */
export const unconfined: SandboxRequirements = { level: 'none', required: false, read: [], write: [], programs: [] }

/** How sandboxes are made on this machine. */
export interface SandboxTool {
  name: 'bubblewrap' | 'unshare'
  /** Where its programs are. */
  programs: Readonly<Record<string, string>>
  /** Whether it makes a user namespace of its own. Without one it needs root, and engines are root without privileges. */
  userNamespace: boolean
  /**
   * Whether engines get a /proc of their own. Otherwise they see that of the machine, in which the user namespace keeps
   * them from everything but names and command lines.
   */
  ownProc: boolean
  /** Whether a network namespace can be made. */
  network: boolean
}

/**
 * The privileges that an engine of root keeps: models that belong to another user can be read, and memory can be locked.
 * No other is kept, so that it cannot mount, make devices, or look at other processes.
 */
export const kept = ['dac_override', 'ipc_lock']

/** The tool, or why there is none, as the end of a sentence. */
export type SandboxSupport = { tool: SandboxTool } | { tool: null; why: string }

/** The level that an engine runs with, and what is missing of the one that it should have. */
export interface EffectiveLevel {
  level: SandboxLevel
  /** As a sentence without its subject: "cannot be …". Null where nothing is missing. */
  missing: string | null
}

/** The level that this machine can give. Pure. */
export function effectiveLevel(wanted: SandboxLevel, support: SandboxSupport): EffectiveLevel {
  if (wanted === 'none') return { level: 'none', missing: null }
  if (support.tool === null) return { level: 'none', missing: `cannot be enforced on this machine: ${support.why}` }
  if (wanted === 'strict' && !support.tool.network)
    return {
      level: 'files',
      missing: 'cannot be enforced on this machine: a network namespace cannot be made, so only `files` is',
    }
  return { level: wanted, missing: null }
}

/** Why a model whose configuration names its sandbox cannot run here, as a sentence; undefined when it can. */
export function sandboxRefusal(
  modelId: string,
  { level, required }: Pick<SandboxRequirements, 'level' | 'required'>,
  support: SandboxSupport,
): string | undefined {
  const { missing } = effectiveLevel(level, support)
  return required && missing !== null
    ? `The sandbox '${level}' of '${modelId}' ${missing}. See infer doctor, or change 'sandbox' in infer.yaml.`
    : undefined
}

/** What is to be logged at the start, as a sentence; undefined where every level can be enforced. */
export function sandboxWarning(support: SandboxSupport): string | undefined {
  if (support.tool === null)
    return `Engines run without a sandbox and can read the data directory with its keys: ${support.why}. infer doctor says what to do.`
  return support.tool.network
    ? undefined
    : 'Engines can reach the network: a network namespace cannot be made on this machine.'
}

/** What each level does not stop, for people who decide which one they need. */
export const notStopped: Record<SandboxLevel, string> = {
  strict: 'use of processor, memory, disk and GPU; faults of the kernel and of the GPU driver',
  files:
    'everything on the network, the port of this server and other local services included; reading programs and data outside of /etc, /home, /root, /run, /var and the data directory; use of processor, memory, disk and GPU; faults of the kernel and of the GPU driver',
  none: 'anything that the user who runs infer may do, reading the database and the keys included',
}
