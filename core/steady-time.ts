import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { objectOf } from './json.ts'
import { optionalJson } from './optional-file.ts'

/** Milliseconds since 1970 on a clock that never jumps, even when somebody sets the clock of the machine. */
export interface SteadyTime {
  now(): number
}

/** Both clocks of the machine. The uptime shows how far the wall clock was set forward or back. */
export interface MachineTime {
  /** Identifies this boot of the machine; undefined where the system does not tell. */
  bootId: string | undefined
  /** Milliseconds since the boot. */
  uptimeMs: number
  wallMs: number
}

interface Origin {
  bootId: string
  /** Steady time at the boot of the machine. */
  at: number
}

/**
 * Returns the steady time at the boot of the machine. It keeps its first value until the machine is booted again. After
 * a boot it is computed from the wall clock, because nothing else is known.
 */
function originOf({ bootId, uptimeMs, wallMs }: MachineTime, stored: Origin | undefined): number {
  return stored !== undefined && stored.bootId === bootId ? stored.at : wallMs - uptimeMs
}

/**
 * Opens the steady time of a data directory. The origin is stored there, so that after a jump of the wall clock a
 * restarted server continues the time of the server before it.
 */
export function openSteadyTime(dataDir: string, machine: MachineTime = machineTime()): SteadyTime {
  const path = join(dataDir, 'steady-time.json')
  const stored = readOrigin(path)
  const at = originOf(machine, stored)
  if (machine.bootId !== undefined && stored?.bootId !== machine.bootId)
    writeOrigin(path, { bootId: machine.bootId, at })
  const base = at + machine.uptimeMs - performance.now()
  return { now: () => Math.round(base + performance.now()) }
}

function machineTime(): MachineTime {
  const wallMs = Date.now()
  try {
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    // The uptime includes time in suspend.
    const uptimeMs = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000
    if (Number.isFinite(uptimeMs)) return { bootId, uptimeMs, wallMs }
  } catch {
    // Without /proc a restarted server uses the wall clock.
  }
  return { bootId: undefined, uptimeMs: 0, wallMs }
}

function readOrigin(path: string): Origin | undefined {
  const { bootId, at } = objectOf(optionalJson(path))
  return typeof bootId === 'string' && typeof at === 'number' && Number.isFinite(at) ? { bootId, at } : undefined
}

function writeOrigin(path: string, origin: Origin): void {
  try {
    writeFileSync(`${path}.new`, JSON.stringify(origin), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch {
    // A full disk must not prevent the start: the next start uses the wall clock.
  }
}
