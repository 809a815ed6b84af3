import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Milliseconds since 1970 that only move as fast as time does, whatever is done to the clock of the machine. */
export interface SteadyTime {
  now(): number
}

/** How far a clock has been set forward is known from the time since the machine started. */
export interface MachineTime {
  /** Identifies this start of the machine; undefined where the system does not say. */
  bootId: string | undefined
  /** Since that start, milliseconds. */
  uptimeMs: number
  wallMs: number
}

interface Origin {
  bootId: string
  /** Steady time at the start of the machine. */
  at: number
}

/**
 * Returns the steady time at the start of the machine. While the machine runs it stays what it was first. After another
 * start of the machine only its clock is left to go by.
 */
export function originOf({ bootId, uptimeMs, wallMs }: MachineTime, stored: Origin | undefined): number {
  return stored !== undefined && stored.bootId === bootId ? stored.at : wallMs - uptimeMs
}

/**
 * Opens the steady time of a data directory, in which the origin is kept so that a restart of the server after a jump of
 * the clock goes on where the server before was.
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
    // Counts time in suspend too.
    const uptimeMs = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) * 1000
    if (Number.isFinite(uptimeMs)) return { bootId, uptimeMs, wallMs }
  } catch {
    // Without it a restart goes by the clock.
  }
  return { bootId: undefined, uptimeMs: 0, wallMs }
}

function readOrigin(path: string): Origin | undefined {
  try {
    const { bootId, at } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Origin>
    return typeof bootId === 'string' && typeof at === 'number' && Number.isFinite(at) ? { bootId, at } : undefined
  } catch {
    return undefined
  }
}

function writeOrigin(path: string, origin: Origin): void {
  try {
    writeFileSync(`${path}.new`, JSON.stringify(origin), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  } catch {
    // A full disk is no reason not to start: a later start goes by the clock.
  }
}
