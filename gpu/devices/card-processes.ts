import type { DeviceProcess } from '../../core/models/fleet.ts'
import { valueOrNull } from './nvidia.ts'
import { nvidiaSmi, type RunOptions } from './nvidia-smi.ts'

/** A compute process as the driver reports it. */
export type CardProcess = Omit<DeviceProcess, 'engineId'>

/**
 * Lists the compute processes by the UUID of their card. Cards without processes are missing; the value is null for a
 * card whose processes cannot be read. Returns null when the query fails; never throws. Source: nvidia-smi's
 * `--help-query-compute-apps`.
 */
export async function cardProcesses(options: RunOptions = {}): Promise<Map<string, CardProcess[] | null> | null> {
  const query = ['--query-compute-apps=gpu_uuid,pid,process_name,used_gpu_memory', '--format=csv,noheader,nounits']
  const { exitCode, stdout } = await nvidiaSmi(query, options)
  return exitCode === 0 ? parseCardProcesses(stdout) : null
}

/** Parses the CSV output. A process name is its program or its title and may contain commas. */
export function parseCardProcesses(csv: string): Map<string, CardProcess[] | null> {
  const cards = new Map<string, CardProcess[] | null>()
  for (const line of csv.split('\n')) {
    const [, uuid, pid, name, mebibytes] = /^\s*(GPU-[^\s,]+)\s*,([^,]*),(.*),([^,]*)$/.exec(line.trim()) ?? []
    if (uuid === undefined) continue
    const number = positive(pid!)
    const others = cards.get(uuid)
    // With one unreadable row the list of its card is incomplete.
    if (number === null || others === null) {
      cards.set(uuid, null)
      continue
    }
    const used = positive(mebibytes!)
    const one = { pid: number, name: valueOrNull(name!), bytes: used === null ? null : used * 2 ** 20 }
    cards.set(uuid, [...(others ?? []), one])
  }
  return cards
}

const positive = (text: string): number | null => {
  const value = Number(valueOrNull(text) ?? Number.NaN)
  return Number.isInteger(value) && value > 0 ? value : null
}
